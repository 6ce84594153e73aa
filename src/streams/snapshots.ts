import { filter, map, merge, type Observable, scan, startWith } from 'rxjs';
import { foldByKey } from '../operators/fold-by-key.ts';
import type { ResourceSource } from '../ports.ts';
import {
  eventKey,
  initialSnapshots,
  isReplacement,
  mergeEvents,
  snapshotStep,
} from '../snapshot/fold.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { WatchedResource } from '../snapshot/watch.ts';

/**
 * Snapshots of everything that is watched: each kind folds its changes in a window of its own (G1, G3), each batch gives one
 * snapshot, and none is seen before every kind has synced (G4). A batch that changes nothing gives none.
 */
export const snapshots = (
  watch: ResourceSource['watch'],
  watched: readonly WatchedResource[],
): Observable<Snapshot> => {
  const batches = watched.map((resource) =>
    watch(resource).pipe(
      foldByKey(eventKey, {
        quietMs: resource.debounceMs,
        maxWaitMs: resource.maxWaitMs,
        merge: mergeEvents,
        clears: isReplacement,
      }),
      map((changes) => ({ resource: resource.name, changes })),
    ),
  );
  const initial = initialSnapshots(watched);
  return merge(...batches).pipe(
    scan(snapshotStep, initial),
    startWith(initial),
    map(({ emit }) => emit),
    filter((snapshot) => snapshot !== undefined),
  );
};
