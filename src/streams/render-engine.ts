import { asyncScheduler, Observable, type SchedulerLike } from 'rxjs';
import type { RenderEngine } from '../ports.ts';
import type { RenderResult, TemplateEngine } from '../render/render.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** How long a slice works before the event loop gets a turn, in milliseconds. */
const SLICE_MS = 8;

/**
 * A compiled configuration whose renders run in slices: the first one at once on subscription, so that a small change is
 * rendered without waiting; each further one in a turn of its own. Unsubscribing ends the work between two steps. What
 * the engine throws is a defect of ours and becomes a failed render, so that it ends no pipeline.
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
  controller: engine.controller,
  podSelector: engine.podSelector,
  protective: engine.protective,
  readsFor: (objects) => engine.readsFor(objects),
  fork: () => renderEngine(engine.fork(), scheduler),
  render: (snapshot) => sliced(engine, snapshot, scheduler),
});

const sliced = (
  engine: TemplateEngine,
  snapshot: Snapshot,
  scheduler: SchedulerLike,
): Observable<RenderResult> =>
  new Observable((subscriber) => {
    const steps = engine.steps(snapshot);
    const work = (): RenderResult | undefined => {
      const end = scheduler.now() + SLICE_MS;
      do {
        const step = steps.next();
        if (step.done === true) return step.value;
      } while (scheduler.now() < end);
      return undefined;
    };
    const slice = (): RenderResult | undefined => {
      try {
        return work();
      } catch (error: unknown) {
        return { ok: false, failure: { phase: 'template', problems: [defect(error)] } };
      }
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

/** Tells where it happened and not the message, which may quote values of objects. */
const defect = (error: unknown): Problem => {
  const { name, stack = '' } = error instanceof Error ? error : new Error();
  const [frame = 'at an unknown place'] = /\bat .*/.exec(stack) ?? [];
  return {
    severity: 'error',
    reason: 'InternalError',
    message: `A defect of HAPTIC ended the render: ${name} ${frame.trim()}.`,
    nextStep: 'Report it with this line; what changed last may be the occasion.',
  };
};
