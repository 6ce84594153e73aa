import {
  concat,
  connect,
  defaultIfEmpty,
  map,
  merge,
  type Observable,
  of,
  Subject,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import type { Checker, ConfigEvent, Leadership, Notification, ResourceSource } from '../ports.ts';
import type { Needs } from '../snapshot/content.ts';
import type { StoredQuarantine } from '../quarantine/stored.ts';
import type { NeededContent } from './needed-content.ts';
import { type GateVerdict, renderWithQuarantine } from './quarantine.ts';
import { snapshots } from './snapshots.ts';

/** Longest time in milliseconds that newer snapshots may go on cancelling a render (G2). */
const MAX_WAIT_MS = 1_000;

/** With what {@link reconcile} works. */
export interface ReconcileOptions {
  readonly source: ResourceSource;
  /** What the gate says about renders. */
  readonly verdict$: Observable<GateVerdict>;
  /** What was in quarantine before; nothing is watched before it is told. Cold. */
  readonly stored$: Observable<StoredQuarantine>;
  /** Judges tries when objects at fault are searched. */
  readonly check: Checker;
  /** A follower asks what its leader has in quarantine, and once more when it leads. */
  readonly leader$: Observable<Leadership>;
  /** Ends sources when the shutdown begins. */
  readonly open: <T>(source$: Observable<T>) => Observable<T>;
}

/**
 * One configuration at work: snapshots of what it watches, and a render of each without the objects that cannot be served.
 * A newer snapshot cancels the render in progress (G5) until the oldest change waits too long (G2). A failed render is a
 * value; the next snapshot is rendered as ever. What a render needs is told back to where its snapshots come from (ADR
 * 0011).
 *
 * On either path a reconciliation ends with `ReconciliationCompleted` (S43, T2). A render that awaits content is not one
 * yet: nothing is told of it, and another one follows.
 */
export const reconcile = (
  { engine, object, observedGeneration, spec }: Extract<ConfigEvent, { ok: true }>,
  { source, verdict$, stored$, leader$, check, open }: ReconcileOptions,
): Observable<Notification> =>
  concat(
    of<Notification>({
      type: 'ConfigLoaded',
      generation: engine.generation,
      watched: engine.watched.map(({ name }) => name),
      ...(object !== undefined && { object }),
      ...(observedGeneration !== undefined && { observedGeneration }),
      ...(spec !== undefined && { spec }),
    }),
    stored$.pipe(
      take(1),
      defaultIfEmpty(undefined),
      switchMap((stored) => {
        const needs$ = new Subject<Needs>();
        const render = renderWithQuarantine({
          engine,
          render: (snapshot) =>
            engine.render(snapshot).pipe(
              tap(({ needs }) => {
                if (needs !== undefined) needs$.next(needs);
              }),
            ),
          verdict$,
          stored,
          stored$: leader$.pipe(
            switchMap(({ leading }) => (leading ? stored$ : followed(stored$))),
          ),
          check,
          maxWaitMs: MAX_WAIT_MS,
        });
        return snapshots(
          (resource) => open(source.watch(resource)),
          engine.watched,
          neededContent(source, open, needs$),
        ).pipe(
          connect((snapshot$) =>
            merge(
              snapshot$.pipe(map((snapshot): Notification => ({ type: 'Snapshot', snapshot }))),
              snapshot$.pipe(render),
            ),
          ),
        );
      }),
    ),
  );

/** A follower knows what its leader has in quarantine before it has to lead. */
const FOLLOW_MS = 10_000;

const followed = <T>(stored$: Observable<T>): Observable<T> =>
  timer(FOLLOW_MS, FOLLOW_MS).pipe(switchMap(() => stored$));

const neededContent = (
  source: ResourceSource,
  open: ReconcileOptions['open'],
  needs$: Observable<Needs>,
): NeededContent | undefined => {
  const { get: content$ } = source;
  return content$ && { get: (resource, key) => open(content$(resource, key)), needs$ };
};
