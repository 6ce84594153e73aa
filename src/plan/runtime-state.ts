import type { Digest } from '../protocol/protocol.ts';
import { backendParts } from './build.ts';
import type { RuntimeState } from './change-set.ts';
import type { Backend, DigestFunction, Plan } from './plan.ts';

/**
 * What a worker holds that was started from this plan's files, or that every operation of a change set for this plan
 * reached (law P1). It shares all records with the plan, so it is the baseline to keep after a confirmed apply: the next
 * diff then costs the change alone.
 */
export const runtimeState = ({ backends, profiles, maps }: Plan): RuntimeState => ({
  backends,
  profiles,
  maps,
});

/** Equal except for servers, text and what was declared about them: what no operation can change. */
export const sameStructure = (left: Backend, right: Backend): boolean =>
  left.structure === right.structure &&
  left.mode === right.mode &&
  left.profile === right.profile &&
  left.balance === right.balance &&
  left.hashType === right.hashType;

/**
 * Digest of what two workers must agree on to behave alike: backends with servers, profiles and map entries; texts of
 * files are outside. Costs the whole state.
 */
export function runtimeDigest(state: RuntimeState, digest: DigestFunction): Digest {
  const backends = [...state.backends.values()].map(backendParts);
  const maps = [...state.maps.values()].map((map) => [map.path, map.ordered, map.entries.digest]);
  return digest(JSON.stringify(['runtime', backends, state.profiles.digest, maps]));
}
