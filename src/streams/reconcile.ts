import {
  asyncScheduler,
  concat,
  connect,
  defer,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
} from 'rxjs';
import { switchMapWithin } from '../operators/switch-map-within.ts';
import type { ConfigEvent, Notification, RenderEngine, ResourceSource } from '../ports.ts';
import type { RenderResult } from '../render/render.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
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
    snapshots((resource) => open(source.watch(resource)), engine.watched).pipe(
      connect((snapshot$) =>
        merge(
          snapshot$.pipe(map((snapshot): Notification => ({ type: 'Snapshot', snapshot }))),
          snapshot$.pipe(
            switchMapWithin((snapshot) => timedRender(engine, snapshot), {
              maxWaitMs: MAX_WAIT_MS,
            }),
          ),
        ),
      ),
    ),
  );

const timedRender = (engine: RenderEngine, snapshot: Snapshot): Observable<Notification> =>
  defer(() => {
    const startedAt = asyncScheduler.now();
    return engine
      .render(snapshot)
      .pipe(mergeMap((result) => report(result, asyncScheduler.now() - startedAt)));
  });

/** On either path the reconciliation ends with `ReconciliationCompleted` (S43, T2). */
const report = (result: RenderResult, durationMs: number): Observable<Notification> =>
  of<Notification[]>(
    result.ok
      ? { type: 'Rendered', render: result.render, durationMs }
      : { type: 'RenderFailed', failure: result.failure, durationMs },
    { type: 'ReconciliationCompleted', ok: result.ok, durationMs },
  );
