/** Which objects may be at fault when a snapshot cannot be served and an earlier one could. */
import { byCodeUnits } from '../cells/persistent-map.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import { hasContent } from '../snapshot/content.ts';
import { type KubeObject, objectKey, objectRef, type ObjectRef } from '../snapshot/objects.ts';
import { sameObject } from '../snapshot/same-object.ts';
import { objectAt, type Place } from './quarantine.ts';

/** An object that differs between two snapshots, in one place. */
export interface Difference extends Place {
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** An object that differs between two snapshots, in all places where it is watched. */
export interface Suspect {
  readonly object: ObjectRef;
  readonly differences: readonly Difference[];
}

/**
 * Everything that differs, in the order in which it is believed to be good: what others refer to before what refers,
 * deletions first, then older objects before younger ones. So of two objects that do not go together the younger one is at fault.
 *
 * @param good undefined: nothing was ever served, everything in `bad` is new
 */
export const suspectsBetween = (
  good: IndexedSnapshot | undefined,
  bad: IndexedSnapshot,
): readonly Suspect[] => {
  const suspects = new Map<string, Difference[]>();
  for (const difference of differences(good, bad)) {
    const id = identity(difference);
    const known = suspects.get(id);
    if (known === undefined) suspects.set(id, [difference]);
    else known.push(difference);
  }
  return [...suspects.values()]
    .map((all): Suspect => ({ object: refOf(all[0]), differences: all }))
    .map((suspect) => ({ suspect, rank: rankOf(suspect) }))
    .sort((left, right) => byCodeUnits(left.rank, right.rank))
    .map(({ suspect }) => suspect);
};

/** The places of a snapshot in which an object is, whatever its uid. */
export const placesOf = (snapshot: IndexedSnapshot, object: ObjectRef): readonly Place[] => {
  const key = `${object.namespace}/${object.name}`;
  return snapshot.resources
    .map((resource): Place => ({ resource, key }))
    .filter((place) => {
      const found = objectAt(snapshot, place);
      return found !== undefined && (found.kind === object.kind || !hasContent(found));
    });
};

/** Whether two snapshots hold the same in a place, for every reader. */
export const isUnchanged = (left: KubeObject | undefined, right: KubeObject | undefined): boolean =>
  left === right ||
  (left !== undefined &&
    right !== undefined &&
    (sameObject(left, right) || isSameVersion(left, right)));

/** The same version of an object, of which one is held without its content. */
const isSameVersion = (left: KubeObject, right: KubeObject): boolean =>
  hasContent(left) !== hasContent(right) &&
  left.metadata.resourceVersion !== undefined &&
  left.metadata.uid === right.metadata.uid &&
  left.metadata.resourceVersion === right.metadata.resourceVersion;

function* differences(
  good: IndexedSnapshot | undefined,
  bad: IndexedSnapshot,
): Generator<Difference> {
  for (const [resource, { store }] of bad.watched) {
    for (const key of store.keys()) {
      const place = { resource, key };
      const [before, after] = [objectAt(good, place), store.byKey(key)];
      if (!isUnchanged(before, after)) yield { ...place, before, after };
    }
    for (const key of good?.watched.get(resource)?.store.keys() ?? []) {
      if (store.byKey(key) !== undefined) continue;
      yield { resource, key, before: objectAt(good, { resource, key }), after: undefined };
    }
  }
}

/** The same for an object that is watched under two names. */
const identity = ({ resource, key, before, after }: Difference): string => {
  const object = after ?? before;
  return object !== undefined && hasContent(object)
    ? `${object.kind} ${key}`
    : `${resource} ${key}`;
};

const refOf = (difference: Difference | undefined): ObjectRef => {
  const object = difference?.after ?? difference?.before;
  if (object === undefined) throw new TypeError('a difference without an object');
  return objectRef(object);
};

/** What routes and templates refer to, and what says where requests go. */
const REFERRED: ReadonlySet<string> = new Set([
  'ConfigMap',
  'Endpoints',
  'EndpointSlice',
  'IngressClass',
  'Namespace',
  'PartialObjectMetadata',
  'Secret',
  'Service',
]);

/** Whether objects of a kind are only referred to, and say nothing of where requests go. */
export const isReferred = (kind: string): boolean => REFERRED.has(kind);

const rankOf = ({ object, differences: [first] }: Suspect): string => {
  const { after } = first ?? {};
  const order = after === undefined ? '0' : isReferred(object.kind) ? '1' : '2';
  const created = after?.metadata.creationTimestamp;
  const age = typeof created === 'string' ? created : '~';
  return `${order} ${age} ${object.kind} ${after === undefined ? '' : objectKey(after)}`;
};
