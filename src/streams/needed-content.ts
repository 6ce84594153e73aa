import {
  asapScheduler,
  catchError,
  concat,
  connect,
  defaultIfEmpty,
  defer,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  observeOn,
  of,
  scan,
  startWith,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import { foldByKey } from '../operators/fold-by-key.ts';
import type { ResourceSource } from '../ports.ts';
import type { ContentOutcome, Need, Needs } from '../snapshot/content.ts';
import { type ResourceChanges, type SnapshotState, snapshotStep } from '../snapshot/fold.ts';
import { type ContentAnswer, needKeyOf, OnDemandContent } from '../snapshot/on-demand.ts';
import type { WatchedResource } from '../snapshot/watch.ts';

/** Where the content of on-demand resources comes from, and what is needed of it. */
export interface NeededContent {
  readonly get: NonNullable<ResourceSource['get']>;
  /** The newest needs of the renders; may emit while a snapshot is being emitted. */
  readonly needs$: Observable<Needs>;
}

/** Answers that come close together make one snapshot. */
const QUIET_MS = 5;
const MAX_WAIT_MS = 50;

/**
 * Folds changes into snapshots, and brings into them the content of on-demand objects that is needed: asks for it, a few
 * objects at a time, and drops it when the need is gone. Objects of other resources pass as they are.
 *
 * Completes with the changes; what is being asked for is cancelled then, and on unsubscribing.
 */
export const foldWithContent = (
  initial: SnapshotState,
  watched: readonly WatchedResource[],
  { get, needs$ }: NeededContent,
) => {
  const byName = new Map(
    watched.filter(({ store }) => store === 'on-demand').map((one) => [one.name, one]),
  );
  return (batch$: Observable<readonly ResourceChanges[]>): Observable<SnapshotState> =>
    defer(() => {
      let newest = initial;
      const content = new OnDemandContent([...byName.keys()], (resource, key) =>
        newest.gathered.watched.get(resource)?.store.byKey(key),
      );
      const done$ = new Subject<void>();
      const answer$ = new Subject<ContentAnswer | undefined>();
      const ask = (need: Need): Observable<never> => {
        const resource = byName.get(need.resource);
        const outcome$: Observable<ContentOutcome> =
          resource === undefined ? of(NEVER_SAID) : get(resource, need.key);
        return concat(
          outcome$.pipe(
            catchError(() => of(NEVER_SAID)),
            defaultIfEmpty(NEVER_SAID),
            tap((outcome) => answer$.next(content.answered(need, outcome))),
            ignoreElements(),
          ),
          defer(() => {
            content.again(need);
            answer$.next(undefined);
            return [];
          }),
        );
      };
      const change$ = merge(
        batch$.pipe(
          map((batch) => batch.map((changes) => content.changed(changes))),
          tap({ complete: () => done$.next() }),
        ),
        needs$.pipe(
          // A need is told out of the middle of a snapshot.
          observeOn(asapScheduler),
          map((needs) => content.needed(needs)),
          takeUntil(done$),
        ),
        answer$.pipe(
          filter((answer) => answer !== undefined),
          foldByKey(({ need }) => needKeyOf(need), { quietMs: QUIET_MS, maxWaitMs: MAX_WAIT_MS }),
          map((answers) => content.shows(answers.values())),
          takeUntil(done$),
        ),
      );
      return change$.pipe(
        scan(snapshotStep, initial),
        tap((state) => (newest = state)),
        startWith(initial),
        connect((state$) =>
          merge(
            state$,
            merge(state$, answer$).pipe(
              mergeMap(() => content.starts()),
              mergeMap(ask),
              takeUntil(done$),
            ),
          ),
        ),
      );
    });
};

const NEVER_SAID: ContentOutcome = {
  type: 'Unreadable',
  reason: 'the API server did not say anything about it',
};
