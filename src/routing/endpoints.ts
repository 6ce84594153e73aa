import { byCodeUnits } from '../cells/persistent-map.ts';
import type { Server } from '../plan/plan.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import { at, listAt, textAt } from './fields.ts';
import { isLocal, readAddress, type IpFamily } from './ip-address.ts';
import { isPortNumber, isSubdomain } from './names.ts';

/** Which endpoints of a Service are asked for. */
export interface EndpointQuery {
  /** Name of the Service's port, `` when it has none: slices name their ports alike. */
  readonly portName: string;
  /** `spec.ipFamilies[0]` of the Service. */
  readonly family: IpFamily | undefined;
  /** Accept loopback and link-local addresses. */
  readonly allowLocal: boolean;
}

/** What the slices of one Service hold. */
export interface Endpoints {
  /** Sorted by name; names and addresses are unique. */
  readonly servers: readonly Server[];
  /** Some slice names a port of that name. */
  readonly portFound: boolean;
  /** Addresses that are none, or that are refused. */
  readonly refused: readonly string[];
}

interface Candidate {
  readonly address: string;
  readonly port: number;
  readonly family: IpFamily;
  readonly pod: string | undefined;
  readonly ready: boolean;
}

/** Leaves room to give a server a fraction of what the others get. */
const WEIGHT = 100;
const NO_KEYWORDS: readonly string[] = [];
const MAX_SERVER_NAME = 127;

type Usability = 'ready' | 'terminating' | 'unusable';

/** Unset means ready; while pods end, those that still serve are the last resort (as kube-proxy does). */
const usability = (endpoint: unknown): Usability => {
  const conditions = at(endpoint, 'conditions');
  const ready = at(conditions, 'ready') !== false;
  if (at(conditions, 'terminating') !== true) return ready ? 'ready' : 'unusable';
  return at(conditions, 'serving') === true ? 'terminating' : 'unusable';
};

const podOf = (endpoint: unknown): string | undefined => {
  const name = textAt(endpoint, 'targetRef', 'name');
  const fits = name !== undefined && name.length <= MAX_SERVER_NAME && isSubdomain(name);
  return fits && textAt(endpoint, 'targetRef', 'kind') === 'Pod' ? name : undefined;
};

/** Name for an endpoint that has no pod, or that shares its pod's name with another address. */
const addressName = ({ address, port }: Candidate): string =>
  `ep-${address.replaceAll(/[.:]/g, '-')}-${port}`;

const collect = (slices: readonly KubeObject[], query: EndpointQuery): Collected => {
  const collected: Collected = { candidates: [], portFound: false, refused: [] };
  for (const slice of slices) {
    const family = slice['addressType'];
    if (family !== 'IPv4' && family !== 'IPv6') continue;
    if (query.family !== undefined && query.family !== family) continue;
    const entry = listAt(slice, 'ports').find(
      (port) => (at(port, 'name') ?? '') === query.portName,
    );
    const port = at(entry, 'port');
    if (!isPortNumber(port)) continue;
    collected.portFound = true;
    for (const endpoint of listAt(slice, 'endpoints')) {
      collectEndpoint(collected, { endpoint, family, port, allowLocal: query.allowLocal });
    }
  }
  return collected;
};

interface Collected {
  readonly candidates: Candidate[];
  portFound: boolean;
  readonly refused: string[];
}

interface SliceEndpoint {
  readonly endpoint: unknown;
  readonly family: IpFamily;
  readonly port: number;
  readonly allowLocal: boolean;
}

const collectEndpoint = (into: Collected, slice: SliceEndpoint): void => {
  const { endpoint, family, port, allowLocal } = slice;
  const usable = usability(endpoint);
  // Only the first address has a meaning (EndpointSlice API).
  const given = listAt(endpoint, 'addresses')[0];
  if (usable === 'unusable' || typeof given !== 'string') return;
  const address = readAddress(given, family);
  if (address === undefined || (!allowLocal && isLocal(address))) into.refused.push(given);
  else {
    const ready = usable === 'ready';
    into.candidates.push({ address, port, family, pod: podOf(endpoint), ready });
  }
};

const byAddress = (left: Candidate, right: Candidate): number =>
  byCodeUnits(left.address, right.address) || left.port - right.port;

/** One candidate per address and port: two slices may hold an endpoint while it moves from one to the other. */
const unique = (candidates: readonly Candidate[]): readonly Candidate[] =>
  [...candidates]
    .sort((left, right) => byAddress(left, right) || byCodeUnits(left.pod ?? '~', right.pod ?? '~'))
    .filter((candidate, index, order) => {
      const before = order[index - 1];
      return before === undefined || byAddress(before, candidate) !== 0;
    });

/** The pod's name where it is the only one of that name, so that a name stays what it is whoever joins or leaves. */
const nameAll = (candidates: readonly Candidate[]): ReadonlyMap<string, Candidate> => {
  const named = new Map<string, Candidate>();
  const unnamed: Candidate[] = [];
  for (const candidate of candidates) {
    if (candidate.pod === undefined || named.has(candidate.pod)) unnamed.push(candidate);
    else named.set(candidate.pod, candidate);
  }
  for (const candidate of unnamed) {
    let name = addressName(candidate);
    while (named.has(name)) name += '-x'; // a pod has taken the name of an address
    named.set(name, candidate);
  }
  return named;
};

/**
 * The servers behind one port of a Service: the merged endpoints of all its slices. Ready ones; only where there is
 * none, those that end but still serve. A Service that names no IP family gets IPv4 where there is any.
 */
export const readEndpoints = (slices: readonly KubeObject[], query: EndpointQuery): Endpoints => {
  const { candidates, portFound, refused } = collect(slices, query);
  const family = candidates.some((candidate) => candidate.family === 'IPv4') ? 'IPv4' : 'IPv6';
  const ofFamily = candidates.filter((candidate) => candidate.family === family);
  const ready = ofFamily.filter((candidate) => candidate.ready);
  const chosen = unique(ready.length > 0 ? ready : ofFamily);
  const servers = [...nameAll(chosen)]
    .sort(([left], [right]) => byCodeUnits(left, right))
    .map(([name, { address, port }]): Server => {
      const state = { weight: WEIGHT, state: 'ready' as const };
      return { name, address, port, ...state, keywords: NO_KEYWORDS };
    });
  return { servers, portFound, refused: [...new Set(refused)].sort() };
};
