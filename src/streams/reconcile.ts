import {
  asyncScheduler,
  concat,
  connect,
  defer,
  EMPTY,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  Subject,
  tap,
} from 'rxjs';
import { switchMapWithin } from '../operators/switch-map-within.ts';
import type { ConfigEvent, Notification, RenderEngine, ResourceSource } from '../ports.ts';
import type { RenderResult } from '../render/render.ts';
import type { Needs } from '../snapshot/content.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { NeededContent } from './needed-content.ts';
import { snapshots } from './snapshots.ts';

/** Longest time in milliseconds that newer snapshots may go on cancelling a render (G2). */
const MAX_WAIT_MS = 1_000;

/**
 * One configuration at work: snapshots of what it watches, and a render of each. A newer snapshot cancels the render in
 * progress (G5) until the oldest change waits too long (G2). A failed render is a value; the next snapshot is rendered
 * as ever.
 */
export const reconcile = (
  { engine, object, observedGeneration, spec }: Extract<ConfigEvent, { ok: true }>,
  source: ResourceSource,
  open: <T>(source$: Observable<T>) => Observable<T>,
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
    defer(() => {
      const needs$ = new Subject<Needs>();
      return snapshots(
        (resource) => open(source.watch(resource)),
        engine.watched,
        neededContent(source, open, needs$),
      ).pipe(
        connect((snapshot$) =>
          merge(
            snapshot$.pipe(map((snapshot): Notification => ({ type: 'Snapshot', snapshot }))),
            snapshot$.pipe(
              switchMapWithin((snapshot) => timedRender(engine, snapshot, needs$), {
                maxWaitMs: MAX_WAIT_MS,
              }),
            ),
          ),
        ),
      );
    }),
  );

const neededContent = (
  source: ResourceSource,
  open: <T>(source$: Observable<T>) => Observable<T>,
  needs$: Observable<Needs>,
): NeededContent | undefined => {
  const { get: content$ } = source;
  return content$ && { get: (resource, key) => open(content$(resource, key)), needs$ };
};

/** What a render needs is told back to where its snapshots come from (ADR 0011). */
const timedRender = (
  engine: RenderEngine,
  snapshot: Snapshot,
  needs$: Subject<Needs>,
): Observable<Notification> =>
  defer(() => {
    const startedAt = asyncScheduler.now();
    return engine.render(snapshot).pipe(
      tap(({ needs }) => {
        if (needs !== undefined) needs$.next(needs);
      }),
      mergeMap((result) => report(result, asyncScheduler.now() - startedAt)),
    );
  });

/**
 * On either path the reconciliation ends with `ReconciliationCompleted` (S43, T2). A render that awaits content is not one
 * yet: nothing is told of it, and another one follows.
 */
const report = (result: RenderResult, durationMs: number): Observable<Notification> => {
  if (!result.ok && result.awaits === true) return EMPTY;
  return of<Notification[]>(
    result.ok
      ? { type: 'Rendered', render: result.render, durationMs }
      : { type: 'RenderFailed', failure: result.failure, durationMs },
    { type: 'ReconciliationCompleted', ok: result.ok, durationMs },
  );
};
