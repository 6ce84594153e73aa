import { filter, map, merge, type Observable, scan, startWith } from 'rxjs';
import { foldByKey } from '../operators/fold-by-key.ts';
import type { ResourceSource } from '../ports.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import {
  eventKey,
  initialSnapshots,
  isReplacement,
  mergeChanges,
  mergeEvents,
  type ResourceChanges,
  snapshotStep,
} from '../snapshot/fold.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import { foldWithContent, type NeededContent } from './needed-content.ts';

/**
 * Snapshots of everything that is watched: each kind folds its changes in a window of its own (G1, G3), and none is seen
 * before every kind has synced (G4). Windows that end in one turn give one snapshot, so that an Ingress and the Service that
 * came with it are seen together; a kind without a window waits for nobody. Changes that change nothing give none.
 *
 * @param content brings content into resources with `store: on-demand`. Default: they are watched whole
 */
export const snapshots = (
  watch: ResourceSource['watch'],
  watched: readonly WatchedResource[],
  content?: NeededContent,
): Observable<IndexedSnapshot> => {
  const batches = (kinds: readonly WatchedResource[]): Observable<ResourceChanges> =>
    merge(...kinds.map((resource) => windows(watch, resource)));
  const together$ = batches(watched.filter(({ debounceMs }) => debounceMs > 0)).pipe(
    foldByKey(({ resource }) => resource, { quietMs: 0, merge: mergeChanges }),
    map((changes) => [...changes.values()]),
  );
  const alone$ = batches(watched.filter(({ debounceMs }) => debounceMs === 0)).pipe(
    map((changes) => [changes]),
  );
  const initial = initialSnapshots(watched);
  const fold =
    content === undefined
      ? (batch$: Observable<readonly ResourceChanges[]>) =>
          batch$.pipe(scan(snapshotStep, initial), startWith(initial))
      : foldWithContent(initial, watched, content);
  return merge(together$, alone$).pipe(
    fold,
    map(({ emit }) => emit),
    filter((snapshot) => snapshot !== undefined),
  );
};

const windows = (
  watch: ResourceSource['watch'],
  resource: WatchedResource,
): Observable<ResourceChanges> =>
  watch(resource).pipe(
    foldByKey(eventKey, {
      quietMs: resource.debounceMs,
      maxWaitMs: resource.maxWaitMs,
      merge: mergeEvents,
      clears: isReplacement,
    }),
    map((changes) => ({ resource: resource.name, changes })),
  );
