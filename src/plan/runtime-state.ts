import type { Digest } from '../protocol/protocol.ts';
import { backendParts } from './build.ts';
import type { RuntimeState } from './change-set.ts';
import type { Backend, DigestFunction, Plan, PlanFile } from './plan.ts';

/**
 * What a worker holds that was started from this plan's files, or that every operation of a change set for this plan
 * reached (law P1). It shares all records with the plan, so it is the baseline to keep after a confirmed apply: the next
 * diff then costs the change alone.
 */
export const runtimeState = ({
  backends,
  profiles,
  maps,
  files,
  crtLists,
}: Plan): RuntimeState => ({ backends, profiles, maps, files, crtLists });

/** Kinds of files that a worker takes over at run time, under the name of the file. */
export const isTlsFile = ({ kind }: Pick<PlanFile, 'kind'>): boolean =>
  kind === 'cert' || kind === 'ca' || kind === 'crl';

/** Equal except for servers, text and what was declared about them: what no operation can change. */
export const sameStructure = (left: Backend, right: Backend): boolean =>
  left.structure === right.structure &&
  left.mode === right.mode &&
  left.profile === right.profile &&
  left.balance === right.balance &&
  left.hashType === right.hashType;

/**
 * Digest of what two workers must agree on to behave alike: backends with servers, profiles, map entries, TLS material and
 * lines of certificate lists; texts of files are outside. Costs the whole state.
 */
export function runtimeDigest(state: RuntimeState, digest: DigestFunction): Digest {
  const backends = [...state.backends.values()].map(backendParts);
  const maps = [...state.maps.values()].map((map) => [map.path, map.ordered, map.entries.digest]);
  const files = [...state.files.values()]
    .filter((file) => isTlsFile(file) || file.reloadOnChange)
    .map(({ path, kind, text }) => [path, kind, text]);
  const lists = [...state.crtLists.values()].map(({ path, first, lines }) => [
    path,
    first,
    lines.digest,
  ]);
  return digest(JSON.stringify(['runtime', backends, state.profiles.digest, maps, files, lists]));
}
