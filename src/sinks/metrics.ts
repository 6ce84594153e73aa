import { Counter, Histogram, type Registry } from 'prom-client';
import type { Status } from '../http/status.ts';
import type { Notification, NotificationOf } from '../ports.ts';
import { certificateMetrics } from './certificate-metrics.ts';
import { createChangeLatency } from './change-latency.ts';
import { stateGauges } from './state-metrics.ts';
import {
  APPLY_CAUSES,
  DRIFT_KINDS,
  RENDER_PHASES,
  startAtZero,
  VERDICTS,
  WRITE_FAILURES,
} from './zero-counters.ts';

/** Buckets in seconds for work that takes milliseconds to seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Registers the controller's metrics (docs/metrics.md; prefix `haptic_`) and returns what is to be called
 * for every notification. Gauges that only reflect a state are read from `status` when somebody scrapes. Labels are
 * bounded: resource names of the configuration, verdicts, outcomes, causes; never object names. `agentClientEnd` tells when
 * the certificate that agents see ends, in milliseconds since 1970; absent without TLS.
 */
export const createMetrics = (
  registry: Registry,
  status: () => Status,
  agentClientEnd?: () => number,
): ((event: Notification) => void) => {
  stateGauges(registry, status);
  certificateMetrics(registry, {
    status,
    now: Date.now,
    ...(agentClientEnd !== undefined && { agentClientEnd }),
  });
  const count = eventMetrics(registry);
  const latencies = createChangeLatency(() => performance.now());
  const latencySeconds = new Histogram({
    name: 'haptic_change_to_applied_seconds',
    help: 'From the snapshot that contains a change to the confirmed apply at a pod.',
    buckets: BUCKETS,
    registers: [registry],
  });
  return (event) => {
    const record = count[event.type] as ((event: Notification) => void) | undefined;
    record?.(event);
    for (const ms of latencies(event)) latencySeconds.observe(ms / 1_000);
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
  const reloads = counter('reloads_total', 'Reloads that succeeded, one for each cause.', [
    'reason',
  ]);
  const reloadSeconds = histogram('reload_duration_seconds', 'Duration of reloads that succeeded.');
  const checks = counter('gate_checks_total', 'Checks of the render gate.', ['verdict']);
  const checkSeconds = histogram('gate_check_duration_seconds', 'Duration of checks.');
  const reverts = counter('reverts_total', 'Refusals that took renders back.');
  const drift = counter('drift_found_total', 'Differences that a drift check found.', ['kind']);
  const transitions = counter('leader_transitions_total', 'Times leadership was gained or lost.');
  const configRefused = counter('config_refused_total', 'Configurations that were refused.');
  const apiWrites = counter('api_writes_total', 'Writes to the API server.', ['kind', 'outcome']);
  const apiBytes = counter('api_written_bytes_total', 'Bytes written to the API server.', ['kind']);
  startAtZero(renderFailures, ['phase', RENDER_PHASES]);
  startAtZero(applyFailures, ['cause', APPLY_CAUSES]);
  startAtZero(checks, ['verdict', VERDICTS]);
  startAtZero(drift, ['kind', DRIFT_KINDS]);
  const written = new Set<string>();
  const countWrite = (kind: string, outcome: string): void => {
    if (!written.has(kind)) startAtZero(apiWrites, ['outcome', WRITE_FAILURES], { kind });
    written.add(kind);
    apiWrites.inc({ kind, outcome });
  };
  /** Pod → causes of the reload that it has scheduled. */
  const scheduled = new Map<string, readonly string[]>();
  const countReload = (durationMs: number, causes: readonly string[]): void => {
    reloadSeconds.observe(durationMs / 1_000);
    for (const reason of causes) reloads.inc({ reason });
  };
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
    Applied: ({ pod, verdict, outcome, causes }) => {
      deployments.inc({ verdict, outcome: outcome.outcome });
      applySeconds.observe({ verdict }, outcome.timings.total / 1_000);
      const failed = outcome.failedOperations.length;
      operations.inc({ outcome: 'ok' }, Math.max(0, outcome.operationsRun - failed));
      operations.inc({ outcome: 'failed' }, failed);
      if (outcome.outcome === 'scheduled') scheduled.set(pod.key, causes);
      if (outcome.outcome === 'reload') countReload(outcome.timings.reload, causes);
    },
    ReloadDone: ({ pod, ok, durationMs }) => {
      if (ok) countReload(durationMs, scheduled.get(pod.key) ?? ['unknown']);
      else applyFailures.inc({ cause: 'rejected' });
      scheduled.delete(pod.key);
    },
    PodGone: ({ pod }) => {
      scheduled.delete(pod.key);
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
    Written: ({ kind, bytes }) => {
      countWrite(kind, 'ok');
      apiBytes.inc({ kind }, bytes);
    },
    WriteFailed: ({ kind, outcome }) => {
      countWrite(kind, outcome);
    },
  };
};
