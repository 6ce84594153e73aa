import { catchError, map, type Observable, of } from 'rxjs';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import { collectionPath, objectPath } from './api-resource.ts';
import { KubeError, type KubeClient } from './client.ts';

/** Counter of leader terms on the Lease, in decimal. */
export const EPOCH_ANNOTATION = 'haproxy-haptic.org/epoch';
const API_VERSION = 'coordination.k8s.io/v1';
/** More terms than any installation sees; what lies above was written by a hand or by a fault. */
const MAX_EPOCH = 1e12;
const MAX_DURATION_S = 3_600;

/** Which Lease the replicas compete for. */
export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** A Lease as the election sees it. */
export interface Lease {
  /** Identity of who holds it; empty when it was released. */
  readonly holder: string;
  /** Undefined: there is none, or none that can be used. */
  readonly epoch: number | undefined;
  /** What the annotation says when it is no usable epoch. */
  readonly oddEpoch: string | undefined;
  /** How long its holder may be silent, in milliseconds; undefined when it says nothing usable. */
  readonly durationMs: number | undefined;
  /** Another text after each renewal: the holder's times are compared for equality only, never with a clock. */
  readonly mark: string;
  /** As the server has it; members that the election does not know are written back unchanged. */
  readonly object: KubeObject;
}

/** A mark of a Lease, and since when, by the reader's own clock in milliseconds, it has been that. */
export interface SeenLease {
  readonly mark: string;
  readonly since: number;
}

/** What is written when a term begins, goes on or ends. */
export interface LeaseWrite {
  /** Empty: released. */
  readonly holder: string;
  readonly epoch: number;
  readonly durationMs: number;
  /** Time of day for readers, in milliseconds since 1970. */
  readonly wallMs: number;
  /** Whether a term begins. */
  readonly acquires: boolean;
}

/** The number when an election could have given it, else undefined. */
export const usableEpoch = (value: number): number | undefined =>
  Number.isSafeInteger(value) && value >= 0 && value <= MAX_EPOCH ? value : undefined;

/** Who may take the Lease: `free` for everyone, `ours`, or `held` by another who has not been silent for too long. */
export const claimOf = (
  lease: Lease | undefined,
  me: { readonly identity: string; readonly silentMs: number; readonly durationMs: number },
): 'free' | 'ours' | 'held' => {
  if (lease === undefined || lease.holder === '') return 'free';
  if (lease.holder === me.identity) return 'ours';
  return me.silentMs >= (lease.durationMs ?? me.durationMs) ? 'free' : 'held';
};

/** What was seen, when `lease` is what there is `now`. */
export const seeLease = (
  before: SeenLease | undefined,
  lease: Lease | undefined,
  now: number,
): SeenLease | undefined => {
  if (lease === undefined) return undefined;
  return before?.mark === lease.mark ? before : { mark: lease.mark, since: now };
};

/** The epoch above all of these; undefined ones do not count. */
export const nextEpoch = (...epochs: readonly (number | undefined)[]): number =>
  Math.max(0, ...epochs.filter((epoch) => epoch !== undefined)) + 1;

/** @throws KubeError `protocol` when the answer is no Lease */
export const readLease = (value: unknown): Lease => {
  const metadata = member(value, 'metadata');
  if (!isObject(metadata)) throw new KubeError('protocol', 'the answer is not a Lease');
  const spec = member(value, 'spec');
  const holder = member(spec, 'holderIdentity');
  const annotation = member(member(metadata, 'annotations'), EPOCH_ANNOTATION);
  const epoch = typeof annotation === 'string' ? parseEpoch(annotation) : undefined;
  const seconds = member(spec, 'leaseDurationSeconds');
  const marks = ['holderIdentity', 'renewTime', 'acquireTime', 'leaseTransitions'];
  return {
    holder: typeof holder === 'string' ? holder : '',
    epoch,
    oddEpoch:
      annotation === undefined || epoch !== undefined
        ? undefined
        : JSON.stringify(annotation).slice(0, 40),
    durationMs: isDuration(seconds) ? seconds * 1_000 : undefined,
    mark: JSON.stringify([member(metadata, 'uid'), ...marks.map((name) => member(spec, name))]),
    object: value as KubeObject,
  };
};

/** The Lease to write: what is there with a term's facts in it, and its resourceVersion as the condition. */
export const leaseBody = (
  { namespace, name }: LeaseName,
  lease: Lease | undefined,
  { holder, epoch, durationMs, wallMs, acquires }: LeaseWrite,
): KubeObject => {
  const before: Members = lease?.object ?? {};
  const metadata: Members = membersOf(before['metadata']);
  const spec: Members = membersOf(before['spec']);
  const time = microTime(wallMs);
  const transitions = Number.isSafeInteger(spec['leaseTransitions'])
    ? Number(spec['leaseTransitions'])
    : 0;
  const changesHands = acquires && lease !== undefined && lease.holder !== holder;
  return {
    ...before,
    apiVersion: API_VERSION,
    kind: 'Lease',
    metadata: {
      ...metadata,
      namespace,
      name,
      annotations: { ...membersOf(metadata['annotations']), [EPOCH_ANNOTATION]: String(epoch) },
    },
    spec: {
      ...spec,
      holderIdentity: holder,
      leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1_000)),
      renewTime: time,
      ...(acquires && { acquireTime: time }),
      leaseTransitions: transitions + (changesHands ? 1 : 0),
    },
  };
};

/** The Lease as it is; undefined when there is none. */
export const getLease = (
  client: KubeClient,
  where: LeaseName,
  timeoutMs: number,
): Observable<Lease | undefined> =>
  client.request({ method: 'GET', path: pathOf(where), timeoutMs }).pipe(
    map(readLease),
    catchError((error: unknown) => {
      if (error instanceof KubeError && error.code === 'not-found') return of(undefined);
      throw error;
    }),
  );

/**
 * Writes a body of {@link leaseBody} where nothing has changed since it was read, or creates it where there was nothing;
 * errors with `conflict` or `not-found` otherwise.
 */
export const putLease = (
  client: KubeClient,
  where: LeaseName,
  { body, timeoutMs }: { readonly body: KubeObject; readonly timeoutMs: number },
): Observable<Lease> => {
  const exists = body.metadata.resourceVersion !== undefined;
  const path = exists ? pathOf(where) : collectionPath({ ...RESOURCE, namespace: where.namespace });
  return client
    .request({ method: exists ? 'PUT' : 'POST', path, body, timeoutMs })
    .pipe(map(readLease));
};

export const leaseRef = ({ namespace, name }: LeaseName, lease?: Lease): ObjectRef => ({
  apiVersion: API_VERSION,
  kind: 'Lease',
  namespace,
  name,
  uid: lease?.object.metadata.uid ?? '',
});

const RESOURCE = { apiVersion: API_VERSION, plural: 'leases' };

const pathOf = (where: LeaseName): string => objectPath({ ...RESOURCE, ...where });

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const membersOf = (value: unknown): Members => (isObject(value) ? value : {});

const member = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

const parseEpoch = (text: string): number | undefined =>
  /^\d{1,13}$/.test(text) ? usableEpoch(Number(text)) : undefined;

const isDuration = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_DURATION_S;

/** RFC 3339 with six digits, as the API's MicroTime is written. */
const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');
