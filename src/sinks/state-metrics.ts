import { Gauge, type Registry } from 'prom-client';
import { objectCounts, planCounts, type Status } from '../http/status.ts';
import type { Stand } from '../quarantine/quarantine.ts';
import type { RenderCells } from '../render/render.ts';

/** Registers gauges that are computed when they are scraped, so that nothing is counted on the path of a change. */
export const stateGauges = (registry: Registry, status: () => Status): void => {
  const gauge = (name: string, help: string, read: (status: Status) => number): void => {
    new Gauge({
      name: `haptic_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read(status()));
      },
    });
  };
  const plan = (read: (counts: ReturnType<typeof planCounts>) => number) => (state: Status) =>
    state.render === undefined ? 0 : read(planCounts(state.render.newest.plan));
  gauge('watch_synced', '1 when every watched resource has synced.', ({ snapshot }) =>
    Number(snapshot !== undefined),
  );
  gauge(
    'plan_backends',
    'Backends of the newest render.',
    plan(({ backends }) => backends),
  );
  gauge(
    'plan_servers',
    'Servers of the newest render.',
    plan(({ servers }) => servers),
  );
  gauge(
    'plan_map_entries',
    'Map entries of the newest render.',
    plan(({ mapEntries }) => mapEntries),
  );
  const cells = (read: (counts: RenderCells) => number) => (state: Status) =>
    state.render === undefined ? 0 : read(state.render.newest.cells);
  gauge(
    'render_live_cells',
    'Cells that are kept after the newest render.',
    cells(({ live }) => live),
  );
  gauge(
    'render_reads',
    'Distinct objects, lists and routes that kept cells have read.',
    cells(({ reads }) => reads),
  );
  gauge('gate_state', '0 open, 1 holding, 2 pinned.', ({ gate }) =>
    ['open', 'holding', 'pinned'].indexOf(gate.phase),
  );
  new Gauge({
    name: 'haptic_gate_isolation',
    help: "1 for what keeps the gate's checks away from the machine, 0 for what this machine does not offer.",
    labelNames: ['part'],
    registers: [registry],
    collect() {
      const { checkerIsolation } = status().facts;
      if (checkerIsolation === undefined) return;
      const { network, filesystem, user, memory } = checkerIsolation;
      for (const [part, inForce] of Object.entries({ network, filesystem, user, memory })) {
        this.set({ part }, Number(inForce));
      }
    },
  });
  gauge('leader', '1 while this replica leads.', ({ leading }) => Number(leading));
  gauge('epoch', 'Leader term this replica led last.', ({ epoch }) => epoch);
  gauge('workers', 'HAProxy workers of all pods, finishing ones included.', ({ agents }) =>
    Object.values(agents).reduce(
      (sum, { state }) => sum + (state === undefined ? 0 : 1 + state.haproxy.oldWorkers),
      0,
    ),
  );
  new Gauge({
    name: 'haptic_objects',
    help: 'Watched objects.',
    labelNames: ['resource'],
    registers: [registry],
    collect() {
      this.reset(); // a resource that is no longer watched has no objects
      const { snapshot } = status();
      const counts = snapshot === undefined ? {} : objectCounts(snapshot);
      for (const [resource, count] of Object.entries(counts)) this.set({ resource }, count);
    },
  });
  new Gauge({
    name: 'haptic_quarantined_objects',
    help: 'Objects that are not rendered as they are, by what is rendered instead.',
    labelNames: ['instead'],
    registers: [registry],
    collect() {
      const counts: Record<Stand, number> = { accepted: 0, closed: 0, nothing: 0 };
      for (const { stand } of status().quarantine) counts[stand] += 1;
      for (const [instead, count] of Object.entries(counts)) this.set({ instead }, count);
    },
  });
  new Gauge({
    name: 'haptic_agents',
    help: 'HAProxy pods by whether an apply was confirmed.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const agents = Object.values(status().agents);
      const confirmed = agents.filter((agent) => agent.confirmed).length;
      this.set({ state: 'confirmed' }, confirmed);
      this.set({ state: 'unconfirmed' }, agents.length - confirmed);
    },
  });
};
