import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { objectCounts, planCounts, type Status } from '../http/status.ts';
import type { Notification, NotificationOf } from '../ports.ts';

/** Buckets in seconds for work that takes milliseconds to seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Registers the controller's metrics (docs/metrics in DESIGN section 11; prefix `haptic_`) and returns what is to be called
 * for every notification. Gauges that only reflect a state are read from `status` when somebody scrapes. Labels are
 * bounded: resource names of the configuration, verdicts, outcomes, causes; never object names.
 */
export const createMetrics = (
  registry: Registry,
  status: () => Status,
): ((event: Notification) => void) => {
  stateGauges(registry, status);
  const count = eventMetrics(registry);
  return (event) => {
    const record = count[event.type] as ((event: Notification) => void) | undefined;
    record?.(event);
  };
};

type Recorders = {
  readonly [T in Notification['type']]?: (event: NotificationOf<T>) => void;
};

const eventMetrics = (registry: Registry): Recorders => {
  const counter = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Counter({
      name: `haptic_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [registry],
    });
  const histogram = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Histogram({
      name: `haptic_${name}`,
      help,
      labelNames: [...labelNames],
      buckets: BUCKETS,
      registers: [registry],
    });
  const snapshotChanges = counter('snapshot_changes_total', 'Changed objects in snapshots.', [
    'resource',
  ]);
  const renderSeconds = histogram('render_duration_seconds', 'Duration of renders that ended.');
  const renderCells = counter('render_cells_total', 'Cells of renders.', ['result']);
  const renderFailures = counter('render_failures_total', 'Failed renders.', ['phase']);
  const deployments = counter('deployments_total', 'Answered applies.', ['verdict', 'outcome']);
  const applyFailures = counter('apply_failures_total', 'Applies that did not succeed.', ['cause']);
  const applySeconds = histogram('apply_duration_seconds', 'Duration of applies.', ['verdict']);
  const operations = counter('operations_total', 'Runtime operations sent.', ['outcome']);
  const reloads = counter('reloads_total', 'Reloads, by what they were needed for.', ['reason']);
  const reloadSeconds = histogram('reload_duration_seconds', 'Duration of reloads.');
  const checks = counter('gate_checks_total', 'Checks of the render gate.', ['verdict']);
  const checkSeconds = histogram('gate_check_duration_seconds', 'Duration of checks.');
  const reverts = counter('reverts_total', 'Refusals that took renders back.');
  const drift = counter('drift_found_total', 'Differences that a drift check found.', ['kind']);
  const transitions = counter('leader_transitions_total', 'Times leadership was gained or lost.');
  const configRefused = counter('config_refused_total', 'Configurations that were refused.');
  return {
    Snapshot: ({ snapshot }) => {
      for (const { resource } of snapshot.changes) snapshotChanges.inc({ resource });
    },
    Rendered: ({ render, durationMs }) => {
      renderSeconds.observe(durationMs / 1_000);
      renderCells.inc({ result: 'evaluated' }, render.cells.evaluated);
      renderCells.inc({ result: 'reused' }, render.cells.reused);
    },
    RenderFailed: ({ failure }) => {
      renderFailures.inc({ phase: failure.phase });
    },
    Applied: ({ verdict, outcome, causes }) => {
      deployments.inc({ verdict, outcome: outcome.outcome });
      applySeconds.observe({ verdict }, outcome.timings.total / 1_000);
      const failed = outcome.failedOperations.length;
      operations.inc({ outcome: 'ok' }, Math.max(0, outcome.operationsRun - failed));
      operations.inc({ outcome: 'failed' }, failed);
      if (outcome.outcome !== 'reload') return;
      reloadSeconds.observe(outcome.timings.reload / 1_000);
      for (const reason of causes) reloads.inc({ reason });
    },
    ReloadDone: ({ ok, durationMs }) => {
      reloadSeconds.observe(durationMs / 1_000);
      reloads.inc({ reason: ok ? 'scheduled' : 'scheduled-refused' });
    },
    ApplyFailed: ({ cause }) => {
      applyFailures.inc({ cause });
    },
    Checked: ({ checked }) => {
      checks.inc({ verdict: checked.verdict.result });
      checkSeconds.observe(checked.durationMs / 1_000);
    },
    Reverting: () => {
      reverts.inc();
    },
    DriftFound: ({ kind, details }) => {
      drift.inc({ kind }, Math.max(1, details.length));
    },
    Leadership: () => {
      transitions.inc();
    },
    ConfigRefused: () => {
      configRefused.inc();
    },
  };
};

/** Gauges computed when they are scraped, so that nothing is counted on the path of a change. */
const stateGauges = (registry: Registry, status: () => Status): void => {
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
  gauge('gate_state', '0 open, 1 holding, 2 pinned.', ({ gate }) =>
    ['open', 'holding', 'pinned'].indexOf(gate.phase),
  );
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
      const { snapshot } = status();
      const counts = snapshot === undefined ? {} : objectCounts(snapshot);
      for (const [resource, count] of Object.entries(counts)) this.set({ resource }, count);
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
