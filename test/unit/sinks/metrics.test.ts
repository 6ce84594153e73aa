import { Registry } from 'prom-client';
import { of } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { initialStatus, statusStep } from '../../../src/http/status.ts';
import type { Notification, NotificationOf } from '../../../src/ports.ts';
import type { OutcomeKind } from '../../../src/protocol/answers.ts';
import type { Render } from '../../../src/render/render.ts';
import { createChangeLatency } from '../../../src/sinks/change-latency.ts';
import { createMetrics } from '../../../src/sinks/metrics.ts';
import { processMetrics } from '../../../src/sinks/process-metrics.ts';
import { countingWatchEvents } from '../../../src/sinks/watch-metrics.ts';
import { service } from '../../support/objects.ts';
import { makeRender } from '../../support/renders.ts';
import { watched } from '../../support/watched.ts';
import { pod } from '../../support/world.ts';

/** A render of a snapshot of its own. */
const renderOf = (id: string): Render => {
  const render = makeRender({ id });
  return { ...render, snapshot: { ...render.snapshot } };
};
const snapshotOf = ({ snapshot }: Render): Notification => ({ type: 'Snapshot', snapshot });
const rendered = (render: Render): Notification => ({ type: 'Rendered', render, durationMs: 5 });
const applied = (
  { plan }: Render,
  outcome: OutcomeKind,
  options: Partial<NotificationOf<'Applied'>> = {},
): Notification => ({
  type: 'Applied',
  pod: pod('p1'),
  planId: plan.id,
  verdict: 'runtime',
  reverted: false,
  outcome: {
    outcome,
    roles: { applied: plan.id, running: plan.id, workerOperations: 0, lkg: null },
    failedOperations: [],
    operationsRun: 3,
    timings: { stage: 0, write: 1, operations: 2, reload: 40, confirmed: 50, total: 50 },
  },
  operations: 3,
  reasons: [],
  causes: ['new-backend'],
  durationMs: 60,
  ...options,
});

describe('change to applied (R5)', () => {
  let now = 0;
  let take: (event: Notification) => readonly number[];
  beforeEach(() => {
    now = 0;
    take = createChangeLatency(() => now);
  });
  const at = (ms: number, ...events: readonly Notification[]): readonly number[] => {
    now = ms;
    return events.flatMap(take);
  };
  const [a, b, c] = [renderOf('a'), renderOf('b'), renderOf('c')];

  it('is from the snapshot with the change to the confirmed apply', () => {
    expect(at(0, snapshotOf(a), rendered(a))).toStrictEqual([]);
    expect(at(7, applied(a, 'runtime'))).toStrictEqual([7]);
    expect(at(9, applied(a, 'runtime'))).toStrictEqual([]);
  });

  it('waits for a scheduled reload, and counts nothing that was rejected', () => {
    at(0, snapshotOf(a), rendered(a));
    expect(at(3, applied(a, 'rejected'))).toStrictEqual([]);
    expect(at(5, applied(a, 'scheduled'))).toStrictEqual([]);
    const done = {
      type: 'ReloadDone',
      pod: pod('p1'),
      planId: a.plan.id,
      message: '',
      durationMs: 1,
    } as const;
    expect(at(6, { ...done, ok: false })).toStrictEqual([]);
    expect(at(8, { ...done, ok: true })).toStrictEqual([8]);
  });

  it('is of all changes that an apply brings, also those whose render was overtaken', () => {
    at(0, snapshotOf(a), rendered(a));
    at(10, snapshotOf(b), rendered(b));
    at(20, snapshotOf(c));
    expect(at(25, applied(b, 'runtime'))).toStrictEqual([25, 15]);
    expect(at(30, rendered(c), applied(c, 'runtime'))).toStrictEqual([10]);
  });

  it('ends where the worker had answered, however long the files took', () => {
    at(0, snapshotOf(a), rendered(a));
    const apply = applied(a, 'runtime');
    if (apply.type !== 'Applied') throw new TypeError('no apply');
    const timings = { ...apply.outcome.timings, confirmed: 4, total: 15 };
    const late = { ...apply, outcome: { ...apply.outcome, timings } };
    expect(at(20, late)).toStrictEqual([9]);
  });

  it('is of each pod, and a pod that is gone holds nothing up', () => {
    at(0, snapshotOf(a), rendered(a));
    expect(at(5, applied(a, 'reload'))).toStrictEqual([5]);
    expect(at(9, applied(a, 'reload', { pod: pod('p2') }))).toStrictEqual([]);
    at(10, snapshotOf(b), rendered(b));
    expect(at(12, applied(b, 'runtime'))).toStrictEqual([2]);
    expect(at(19, applied(b, 'runtime', { pod: pod('p2') }))).toStrictEqual([9]);
    at(20, { type: 'PodGone', pod: pod('p2') }, snapshotOf(c), rendered(c));
    expect(at(21, applied(c, 'runtime'))).toStrictEqual([1]);
  });

  it('is of no change that leaves the plan as it was', () => {
    at(0, snapshotOf(a), rendered(a));
    expect(at(1, applied(a, 'runtime'))).toStrictEqual([1]);
    const same = renderOf('a');
    at(10, snapshotOf(same), rendered(same));
    at(1_000, snapshotOf(b), rendered(b));
    expect(at(1_004, applied(b, 'runtime'))).toStrictEqual([4]);
  });

  it('is not of what goes back', () => {
    at(0, snapshotOf(a), rendered(a), applied(a, 'runtime'));
    at(10, snapshotOf(b), rendered(b), applied(b, 'files'));
    at(20, snapshotOf(c), rendered(c));
    expect(at(30, applied(a, 'files', { reverted: true }))).toStrictEqual([]);
    expect(at(40, applied(c, 'files'))).toStrictEqual([20]);
  });
});

describe('metrics (S23, R17)', () => {
  const exposition = async (...events: readonly Notification[]): Promise<string> => {
    const registry = new Registry();
    const status = events.reduce(
      (status, event) => statusStep(status, event),
      initialStatus('2026-01-01T00:00:00Z'),
    );
    const record = createMetrics(registry, () => status);
    events.forEach(record);
    return registry.metrics();
  };

  it('count applies, operations and reloads by cause', async () => {
    const render = renderOf('a');
    const text = await exposition(
      snapshotOf(render),
      rendered(render),
      applied(render, 'reload', { verdict: 'reload' }),
      applied(render, 'scheduled', { verdict: 'reload' }),
    );
    expect(text).toContain('haptic_deployments_total{verdict="reload",outcome="reload"} 1\n');
    expect(text).toContain('haptic_deployments_total{verdict="reload",outcome="scheduled"} 1\n');
    expect(text).toContain('haptic_operations_total{outcome="ok"} 6\n');
    expect(text).toContain('haptic_reloads_total{reason="new-backend"} 1\n');
    expect(text).toContain('haptic_reload_duration_seconds_count 1\n');
    expect(text).toContain('haptic_render_duration_seconds_sum 0.005\n');
    expect(text).toContain('haptic_change_to_applied_seconds_count 1\n');
    expect(text).toContain('haptic_agents{state="confirmed"} 1\n');
  });

  it('show how many cells and reads the newest render has left', async () => {
    const render = renderOf('a');
    const cells = { evaluated: 1, reused: 2, live: 3, reads: 4 };
    const text = await exposition(rendered({ ...render, cells }));
    expect(text).toContain('haptic_render_live_cells 3\n');
    expect(text).toContain('haptic_render_reads 4\n');
  });

  it('R3: count a scheduled reload by its causes when it is done, and a failed one as a failure', async () => {
    const render = renderOf('a');
    const done = { type: 'ReloadDone', planId: 'a', message: '', durationMs: 30 } as const;
    const text = await exposition(
      applied(render, 'scheduled', { causes: ['new-backend', 'core-changed'] }),
      { ...done, pod: pod('p1'), ok: true },
      { ...done, pod: pod('p1'), ok: true },
      applied(render, 'scheduled', { causes: ['file'] }),
      { ...done, pod: pod('p1'), ok: false },
    );
    expect(text).toContain('haptic_reloads_total{reason="new-backend"} 1\n');
    expect(text).toContain('haptic_reloads_total{reason="core-changed"} 1\n');
    expect(text).toContain('haptic_reloads_total{reason="unknown"} 1\n');
    expect(text).not.toContain('reason="file"');
    expect(text).toContain('haptic_reload_duration_seconds_count 2\n');
    expect(text).toContain('haptic_apply_failures_total{cause="rejected"} 1\n');
  });

  it('count failures of every phase and cause', async () => {
    const text = await exposition(
      { type: 'RenderFailed', failure: { phase: 'template', problems: [] }, durationMs: 1 },
      { type: 'ConfigRefused', problems: [] },
      {
        type: 'ApplyFailed',
        pod: pod('p1'),
        planId: undefined,
        cause: 'unreachable',
        message: '',
        retryInMs: 1,
      },
      { type: 'GateChanged', phase: 'holding', accepted: undefined },
      { type: 'Reverting', refused: ['a'], to: undefined },
      {
        type: 'Checked',
        checked: {
          planId: 'a',
          verdict: { result: 'refused', message: '', problems: [] },
          durationMs: 20,
        },
      },
    );
    expect(text).toContain('haptic_render_failures_total{phase="template"} 1\n');
    expect(text).toContain('haptic_config_refused_total 1\n');
    expect(text).toContain('haptic_apply_failures_total{cause="unreachable"} 1\n');
    expect(text).toContain('haptic_gate_state 1\n');
    expect(text).toContain('haptic_reverts_total 1\n');
    expect(text).toContain('haptic_gate_checks_total{verdict="refused"} 1\n');
    expect(text).toContain('haptic_gate_check_duration_seconds_sum 0.02\n');
  });

  it("S23: say what confines the gate's checks, and nothing before that is known", async () => {
    const registry = new Registry();
    const parts = { network: true, filesystem: false, user: true, memory: true };
    let status = initialStatus('2026-01-01T00:00:00Z');
    createMetrics(registry, () => status);
    expect(await registry.metrics()).not.toContain('haptic_gate_isolation{');
    status = { ...status, facts: { checkerIsolation: { ...parts, detail: '' } } };
    const text = await registry.metrics();
    expect(text).toContain('haptic_gate_isolation{part="network"} 1\n');
    expect(text).toContain('haptic_gate_isolation{part="filesystem"} 0\n');
    expect(text).toContain('haptic_gate_isolation{part="memory"} 1\n');
  });

  it('S23: exist at 0 before the first failure, and for a kind of object from its first write on', async () => {
    const registry = new Registry();
    const observe = createMetrics(registry, () => initialStatus('2026-01-01T00:00:00Z'));
    const before = await registry.metrics();
    expect(before).toContain('haptic_apply_failures_total{cause="stale-epoch"} 0\n');
    expect(before).toContain('haptic_render_failures_total{phase="plan"} 0\n');
    expect(before).toContain('haptic_drift_found_total{kind="file"} 0\n');
    expect(before).toContain('haptic_gate_checks_total{verdict="refused"} 0\n');
    expect(before).not.toContain('haptic_api_writes_total{');
    observe({ type: 'Written', kind: 'Ingress', bytes: 10 });
    observe({ type: 'Written', kind: 'Ingress', bytes: 10 });
    const after = await registry.metrics();
    expect(after).toContain('haptic_api_writes_total{kind="Ingress",outcome="forbidden"} 0\n');
    expect(after).toContain('haptic_api_writes_total{kind="Ingress",outcome="ok"} 2\n');
  });

  it('count the events of watches by resource and type', async () => {
    const registry = new Registry();
    const source = countingWatchEvents(
      {
        watch: () =>
          of(
            { type: 'Replaced' as const, objects: [service('a')] },
            { type: 'Upserted' as const, object: service('b') },
            { type: 'Upserted' as const, object: service('c') },
          ),
        problems$: of([]),
      },
      registry,
    );
    const types: string[] = [];
    source.watch(watched('services')).subscribe(({ type }) => types.push(type));
    expect(types).toStrictEqual(['Replaced', 'Upserted', 'Upserted']);
    const text = await registry.metrics();
    expect(text).toContain('haptic_watch_events_total{resource="services",type="replaced"} 1\n');
    expect(text).toContain('haptic_watch_events_total{resource="services",type="upserted"} 2\n');
  });

  it('show a blocked event loop once', async () => {
    const registry = new Registry();
    const stop = processMetrics(registry);
    const worst = async (): Promise<number> =>
      Number(/delay_seconds\{percentile="100"\} (\S+)/.exec(await registry.metrics())?.[1]);
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));
    await pause();
    await worst();
    // The first turn after a look is not measured.
    await pause();
    const end = performance.now() + 300;
    while (performance.now() < end);
    await pause();
    const blocked = await worst();
    stop();
    expect(blocked).toBeGreaterThan(0.2);
    expect(await worst()).toBeLessThan(blocked);
    expect(await registry.metrics()).toMatch(/^process_resident_memory_bytes [1-9]\d{6,}$/m);
  });
});
