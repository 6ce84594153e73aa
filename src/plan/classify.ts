import { LIMITS, OPERATION_KINDS } from '../protocol/protocol.ts';
import type { Capabilities } from './change-set.ts';
import { diff } from './diff.ts';
import type { Plan } from './plan.ts';
import { runtimeState } from './runtime-state.ts';

/** What an agent of this version on the oldest supported HAProxy can do. */
export const BASE_CAPABILITIES: Capabilities = {
  haproxy: '3.0',
  operationKinds: new Set(OPERATION_KINDS),
  maxOperations: LIMITS.operations,
};

/**
 * How a plan travels after another one (G6, G7): `none` they are equal, `now` nothing needs a reload, `later` only a
 * reload brings anything, `both` a reload is needed and a part can go ahead of it.
 *
 * @param last undefined: nothing was sent yet, so a reload
 * @param capabilities of the fleet. Default: {@link BASE_CAPABILITIES}
 */
export function classify(
  last: Plan | undefined,
  next: Plan,
  capabilities: Capabilities = BASE_CAPABILITIES,
): 'now' | 'later' | 'both' | 'none' {
  if (last === undefined) return 'later';
  if (last.id === next.id) return 'none';
  const baseline = {
    applied: last,
    running: last,
    worker: runtimeState(last),
    workerOperations: 0,
  };
  const { verdict, inPlaceOperations } = diff(baseline, next, capabilities);
  if (verdict !== 'reload') return 'now';
  return inPlaceOperations.length === 0 ? 'later' : 'both';
}
