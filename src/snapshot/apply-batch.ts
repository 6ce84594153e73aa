import { byCodeUnits } from '../cells/persistent-map.ts';
import { admit } from './admit.ts';
import { type FoldedChanges, REPLACEMENT_KEY } from './folded-changes.ts';
import { IndexedStore } from './indexed-store.ts';
import type { Replacement } from './object-list.ts';
import { type KubeObject, type ObjectKey, objectKey } from './objects.ts';
import { sameObject } from './same-object.ts';
import type { ObjectChange, Snapshot, Store } from './snapshot.ts';
import type { WatchedResource } from './watch.ts';

interface Watched {
  readonly resource: WatchedResource;
  readonly store: IndexedStore;
}

/** The snapshot that {@link applyBatch} goes on from. */
export class IndexedSnapshot implements Snapshot {
  readonly version: number;
  readonly changes: readonly ObjectChange[];
  readonly resources: readonly string[];
  /** By name of the resource. */
  readonly watched: ReadonlyMap<string, Watched>;

  constructor(
    version: number,
    changes: readonly ObjectChange[],
    watched: ReadonlyMap<string, Watched>,
  ) {
    this.version = version;
    this.changes = changes;
    this.watched = watched;
    this.resources = [...watched.keys()];
  }

  store(resource: string): Store {
    return watchedOf(this, resource).store;
  }
}

/** A snapshot without objects. */
export const emptySnapshot = (resources: readonly WatchedResource[]): IndexedSnapshot =>
  new IndexedSnapshot(
    0,
    [],
    new Map(
      resources.map((resource) => [
        resource.name,
        { resource, store: IndexedStore.empty(resource) },
      ]),
    ),
  );

/**
 * The snapshot after one batch of folded changes. A replacement is compared with what is there: what it does not hold
 * is deleted, equal objects stay the objects they were. `changes` are sorted by resource (in watch order) and key; the
 * same name with another uid is one change with `before` and `after`.
 *
 * Returns the same snapshot when nothing really changed; throws RangeError for a resource that is not watched.
 *
 * @param batch folded changes by name of the resource
 */
export const applyBatch = (
  snapshot: IndexedSnapshot,
  batch: ReadonlyMap<string, FoldedChanges>,
): IndexedSnapshot => {
  for (const name of batch.keys()) watchedOf(snapshot, name);
  const watched = new Map(snapshot.watched);
  const changes: ObjectChange[] = [];
  for (const [name, { resource, store }] of snapshot.watched) {
    const folded = batch.get(name);
    if (folded === undefined) continue;
    const replacements = realChanges(store, wantedObjects(resource, store, folded));
    if (replacements.length === 0) continue;
    watched.set(name, { resource, store: store.with(replacements) });
    for (const replacement of replacements) changes.push({ resource: name, ...replacement });
  }
  return changes.length === 0
    ? snapshot
    : new IndexedSnapshot(snapshot.version + 1, changes, watched);
};

/**
 * What leads from one snapshot to another one of the same watched resources, whatever their versions say. The cost follows
 * the number of differences. Sorted as `changes` of a snapshot.
 */
export const changesBetween = (
  before: IndexedSnapshot,
  after: IndexedSnapshot,
): readonly ObjectChange[] =>
  after.resources.flatMap((resource) => {
    const [old, now] = [watchedOf(before, resource).store, watchedOf(after, resource).store];
    if (old === now) return [];
    return [...now.differences(old)]
      .sort(byKey)
      .map((replacement) => ({ resource, ...replacement }));
  });

const watchedOf = (snapshot: IndexedSnapshot, resource: string): Watched => {
  const watched = snapshot.watched.get(resource);
  if (watched === undefined) {
    throw new RangeError(`resource ${JSON.stringify(resource)} is not watched`);
  }
  return watched;
};

/** What the changes say about each object they touch; undefined = gone, or not admitted. */
const wantedObjects = (
  resource: WatchedResource,
  store: IndexedStore,
  folded: FoldedChanges,
): ReadonlyMap<ObjectKey, KubeObject | undefined> => {
  const wanted = new Map<ObjectKey, KubeObject | undefined>();
  const replaced = folded.get(REPLACEMENT_KEY);
  if (replaced?.type === 'Replaced') {
    for (const key of store.keys()) wanted.set(key, undefined);
    for (const object of replaced.objects) wanted.set(objectKey(object), admit(resource, object));
  }
  for (const [key, event] of folded) {
    if (event.type === 'Upserted') wanted.set(key, admit(resource, event.object));
    else if (event.type === 'Deleted') wanted.set(key, undefined);
  }
  return wanted;
};

const realChanges = (
  store: IndexedStore,
  wanted: ReadonlyMap<ObjectKey, KubeObject | undefined>,
): readonly Replacement[] => {
  const changes: Replacement[] = [];
  for (const [key, after] of wanted) {
    const before = store.byKey(key);
    if (before === undefined && after === undefined) continue;
    if (before !== undefined && after !== undefined && sameObject(before, after)) continue;
    changes.push({ key, before, after });
  }
  return changes.sort(byKey);
};

const byKey = (left: Replacement, right: Replacement): number => byCodeUnits(left.key, right.key);
