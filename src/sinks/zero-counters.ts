import type { Counter } from 'prom-client';
import type { KubeErrorCode } from '../kube/client.ts';
import type { NotificationOf } from '../ports.ts';
import type { RenderPhase } from '../render/render.ts';

/** Every value that a label can take. */
type Values<T extends string> = Readonly<Record<T, 0>>;

export const APPLY_CAUSES: Values<NotificationOf<'ApplyFailed'>['cause']> = {
  rejected: 0,
  unreachable: 0,
  conflict: 0,
  'stale-epoch': 0,
};

export const RENDER_PHASES: Values<RenderPhase> = {
  config: 0,
  snapshot: 0,
  template: 0,
  plan: 0,
};

export const DRIFT_KINDS: Values<NotificationOf<'DriftFound'>['kind']> = {
  file: 0,
  mode: 0,
  runtime: 0,
  worker: 0,
  plan: 0,
};

export const VERDICTS: Values<NotificationOf<'Checked'>['checked']['verdict']['result']> = {
  passed: 0,
  refused: 0,
  inconclusive: 0,
};

export const WRITE_FAILURES: Values<KubeErrorCode> = {
  unreachable: 0,
  timeout: 0,
  unauthorized: 0,
  forbidden: 0,
  'not-found': 0,
  conflict: 0,
  gone: 0,
  invalid: 0,
  'too-many-requests': 0,
  server: 0,
  protocol: 0,
};

/**
 * Makes a series of a counter for each value of a label, at 0: Prometheus sees no increase in a series that
 * begins with 1, so the first failure would be missed.
 *
 * @param others the counter's other labels
 */
export const startAtZero = (
  counter: Counter,
  [label, values]: readonly [label: string, values: Values<string>],
  others: Readonly<Record<string, string>> = {},
): void => {
  for (const value of Object.keys(values)) counter.inc({ ...others, [label]: value }, 0);
};
