import type { RuntimeState } from './change-set.ts';
import { differences } from './merkle-map.ts';
import type { Backend, Plan } from './plan.ts';
import { runtimeState, sameStructure } from './runtime-state.ts';

/**
 * The accepted plan's runtime part with the newest servers of every backend that is in both and has equal structure:
 * where workers go while the gate holds, so that a held route never freezes endpoints (docs/gate.md).
 */
export function graftServers(accepted: Plan, newest: Plan): RuntimeState {
  const grafted = new Map<string, Backend>();
  for (const { key, before, after } of differences(accepted.backends, newest.backends)) {
    if (before === undefined || after === undefined) continue;
    if (sameStructure(before, after) && before.dynamic === after.dynamic) grafted.set(key, after);
  }
  return { ...runtimeState(accepted), backends: accepted.backends.with(grafted) };
}
