import type { RuntimeState } from './change-set.ts';
import { sealBackend } from './build.ts';
import { differences, type MerkleMap } from './merkle-map.ts';
import type { Backend, DigestFunction, Plan } from './plan.ts';
import { runtimeState, sameStructure } from './runtime-state.ts';

/**
 * The accepted plan's runtime part with the newest servers of every backend that is in both and has equal structure:
 * where workers go while the gate holds, so that a held route never freezes endpoints (docs/gate.md).
 */
export const graftServers = (accepted: Plan, newest: Plan): RuntimeState => ({
  ...runtimeState(accepted),
  backends: graftBackends(accepted, newest.backends),
});

/** The plan's backends, each with the servers of its namesake where that has equal structure. */
export function graftBackends(
  plan: Pick<Plan, 'backends'>,
  newest: MerkleMap<Backend>,
): MerkleMap<Backend> {
  const grafted = new Map<string, Backend>();
  for (const { key, before, after } of differences(plan.backends, newest)) {
    if (before === undefined || after === undefined) continue;
    if (sameStructure(before, after) && before.dynamic === after.dynamic) grafted.set(key, after);
  }
  return plan.backends.with(grafted);
}

/** The backends with the servers that a worker has in those of equal structure; their text stays what it is. */
export function withServersOf(
  backends: MerkleMap<Backend>,
  worker: MerkleMap<Backend>,
  digest: DigestFunction,
): MerkleMap<Backend> {
  const changed = new Map<string, Backend>();
  for (const { key, before, after } of differences(backends, worker)) {
    if (before === undefined || after === undefined || !sameStructure(before, after)) continue;
    changed.set(key, sealBackend({ ...before, servers: after.servers }, digest));
  }
  return backends.with(changed);
}
