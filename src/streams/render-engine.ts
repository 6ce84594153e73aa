import { asyncScheduler, Observable, type SchedulerLike } from 'rxjs';
import type { RenderEngine } from '../ports.ts';
import type { RenderResult, TemplateEngine } from '../render/render.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** How long a slice works before the event loop gets a turn, in milliseconds. */
const SLICE_MS = 8;

/**
 * A compiled configuration whose renders run in slices: the first one at once on subscription, so that a small change is
 * rendered without waiting; each further one in a turn of its own. Unsubscribing ends the work between two steps.
 *
 * ```
 * steps        ssss|
 * slices       (ss)(ss)
 * result       ----(r|)
 * ```
 *
 * @param engine its steps are pure and small
 * @param scheduler clock and turns. Default: the event loop
 */
export const renderEngine = (
  engine: TemplateEngine,
  scheduler: SchedulerLike = asyncScheduler,
): RenderEngine => ({
  generation: engine.generation,
  watched: engine.watched,
  settings: engine.settings,
  render: (snapshot) => sliced(engine, snapshot, scheduler),
});

const sliced = (
  engine: TemplateEngine,
  snapshot: Snapshot,
  scheduler: SchedulerLike,
): Observable<RenderResult> =>
  new Observable((subscriber) => {
    const steps = engine.steps(snapshot);
    const slice = (): RenderResult | undefined => {
      const end = scheduler.now() + SLICE_MS;
      do {
        const step = steps.next();
        if (step.done === true) return step.value;
      } while (scheduler.now() < end);
      return undefined;
    };
    const deliver = (result: RenderResult): void => {
      subscriber.next(result);
      subscriber.complete();
    };
    const first = slice();
    if (first !== undefined) {
      deliver(first);
      return undefined;
    }
    return scheduler.schedule(function () {
      const result = slice();
      if (result === undefined) this.schedule(undefined, 0);
      else deliver(result);
    });
  });
