import { applyBatch, changesBetween, emptySnapshot, IndexedSnapshot } from './apply-batch.ts';
import { type FoldedChanges, REPLACEMENT_KEY } from './folded-changes.ts';
import { type ObjectKey, objectKey } from './objects.ts';
import type { WatchedResource, WatchEvent } from './watch.ts';

/** Which entry of the folded changes an event belongs to; for `foldByKey`. */
export const eventKey = (event: WatchEvent): ObjectKey => {
  switch (event.type) {
    case 'Replaced':
      return REPLACEMENT_KEY;
    case 'Upserted':
      return objectKey(event.object);
    case 'Deleted':
      return event.key;
  }
};

/**
 * What is left of two events of one object: the newer one, as each holds the whole state. A deletion after an upsert
 * stays a deletion, for the object may have been there before the window; the snapshot knows, and drops it if not.
 */
export const mergeEvents = (_pending: WatchEvent, next: WatchEvent): WatchEvent => next;

/** Whether an event supersedes everything that is pending. */
export const isReplacement = (event: WatchEvent): boolean => event.type === 'Replaced';

/** The folded changes of one window of one resource. */
export interface ResourceChanges {
  readonly resource: string;
  readonly changes: FoldedChanges;
}

/** Where the fold of all resources stands. */
export interface SnapshotState {
  /** The snapshot this step leads to; undefined when it changes nothing, or not every resource has synced (G4). */
  readonly emit: IndexedSnapshot | undefined;
  /** What has been gathered so far, visible or not. */
  readonly gathered: IndexedSnapshot;
  /** Resources that had no replacement yet. */
  readonly awaited: ReadonlySet<string>;
}

/** The state before the first change: the seed of `scan`. */
export const initialSnapshots = (resources: readonly WatchedResource[]): SnapshotState => {
  const gathered = emptySnapshot(resources);
  return {
    emit: resources.length === 0 ? gathered : undefined,
    gathered,
    awaited: new Set(gathered.resources),
  };
};

/** The changes of two windows of one resource, the later one on top; a replacement in it supersedes the earlier. */
export const mergeChanges = (
  { resource, changes }: ResourceChanges,
  later: ResourceChanges,
): ResourceChanges =>
  later.changes.has(REPLACEMENT_KEY)
    ? later
    : { resource, changes: new Map([...changes, ...later.changes]) };

/**
 * One step of the fold, for `scan`: applies the changes of resources whose windows ended together, each resource once, and
 * shows the snapshot once every resource has had its first replacement. Pure; throws RangeError for a resource that is
 * not watched.
 */
export const snapshotStep = (
  state: SnapshotState,
  batches: readonly ResourceChanges[],
): SnapshotState => {
  const gathered = applyBatch(
    state.gathered,
    new Map(batches.map(({ resource, changes }) => [resource, changes])),
  );
  const awaited = new Set(state.awaited);
  for (const { resource, changes } of batches) {
    if (changes.has(REPLACEMENT_KEY)) awaited.delete(resource);
  }
  const justSynced = awaited.size === 0 && state.awaited.size > 0;
  const visible = justSynced || (awaited.size === 0 && gathered !== state.gathered);
  const shown = justSynced ? fromNothing(gathered) : gathered;
  return { emit: visible ? shown : undefined, gathered: visible ? shown : gathered, awaited };
};

/** The first snapshot that is seen: whatever it holds is new. */
const fromNothing = (snapshot: IndexedSnapshot): IndexedSnapshot => {
  const resources = [...snapshot.watched.values()].map(({ resource }) => resource);
  const changes = changesBetween(emptySnapshot(resources), snapshot);
  return new IndexedSnapshot(snapshot.version, changes, snapshot.watched);
};
