import { byCodeUnits } from '../cells/persistent-map.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { problemOf } from './complaint.ts';
import { byAge, type HostClaim, type PathClaim } from './contribution.ts';
import type { HostRoutes, PathRoute } from './model.ts';

/** The decision table of one host, and who lost a claim on it. */
export interface HostTable {
  /** Undefined: nobody claims the host. */
  readonly routes: HostRoutes | undefined;
  readonly problems: readonly Problem[];
}

const lost = (
  claim: HostClaim,
  winner: ObjectRef,
  what: { text: string; field: string },
): Problem =>
  problemOf(claim.owner.object, {
    reason: 'HostPathConflict',
    field: what.field,
    message: `${what.text} is already taken by ${holder(claim, winner)}; this entry has no effect.`,
    nextStep: 'Remove one of the two, or give them different hosts or paths.',
  });

const holder = ({ owner }: HostClaim, winner: ObjectRef): string =>
  owner.object === winner
    ? 'an earlier entry of the same object'
    : `the older ${winner.kind} ${winner.namespace}/${winner.name}`;

const describe = (host: string, { type, path }: PathClaim): string =>
  `The ${type === 'exact' ? 'exact path' : 'prefix'} ${path === '' ? '/' : path} of host ${host}`;

const sorted = (routes: ReadonlyMap<string, PathRoute>): readonly PathRoute[] =>
  [...routes.values()].sort((left, right) => byCodeUnits(left.path, right.path));

/**
 * Merges everything that is claimed of one host: where two claim the same path, or the default backend, the older
 * object wins and the other gets a problem (R24).
 */
export const hostTable = (host: string, claims: Iterable<HostClaim>): HostTable => {
  const order = [...claims].sort((left, right) => byAge(left.owner, right.owner));
  if (order.length === 0) return { routes: undefined, problems: [] };
  const problems: Problem[] = [];
  const tables = { exact: new Map<string, PathRoute>(), prefix: new Map<string, PathRoute>() };
  let fallback: { backend: string; object: ObjectRef } | undefined;
  for (const claim of order) {
    const { object } = claim.owner;
    for (const path of claim.paths) {
      const table = tables[path.type];
      const taken = table.get(path.path);
      if (taken === undefined) {
        table.set(path.path, { path: path.path, backend: path.backend, object });
      } else {
        const what = { text: describe(host, path), field: path.field };
        problems.push(lost(claim, taken.object, what));
      }
    }
    if (claim.defaultBackend === undefined) continue;
    const { backend, field } = claim.defaultBackend;
    const text = `The default backend of ${host === '*' ? 'all other hosts' : `host ${host}`}`;
    if (fallback === undefined) fallback = { backend, object };
    else problems.push(lost(claim, fallback.object, { text, field }));
  }
  const routes: HostRoutes = {
    host,
    exact: sorted(tables.exact),
    prefix: sorted(tables.prefix),
    defaultBackend: fallback?.backend,
    defaultObject: fallback?.object,
    httpsRedirect: order.some((claim) => claim.tls),
  };
  return { routes, problems };
};
