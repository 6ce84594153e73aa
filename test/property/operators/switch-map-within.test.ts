import fc from 'fast-check';
import { finalize, map, type Observable, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { switchMapWithin } from '../../../src/operators/switch-map-within.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { frame, type Run, runs, type Timeline, timelines } from './timelines.ts';

function play({ diagram }: Timeline, durations: readonly number[], maxWaitMs: number): Run[] {
  return inVirtualTime(({ cold, flush }) => {
    const started: Run[] = [];
    const project = (value: number): Observable<unknown> => {
      const run: Run = { id: value, from: frame(), to: undefined, completed: false };
      const duration = durations[started.length % durations.length]!;
      started.push(run);
      return timer(duration).pipe(
        tap({ complete: () => (run.completed = true) }),
        finalize(() => (run.to = frame())),
      );
    };
    cold(diagram)
      .pipe(
        map((_, id) => id),
        switchMapWithin(project, { maxWaitMs }),
      )
      .subscribe();
    flush();
    return started;
  });
}

const durations = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 6 });
const waits = fc.integer({ min: 1, max: 12 });

describe('switchMapWithin on random timelines (P7)', () => {
  it('never runs two at once and starts in order of arrival (G5)', () => {
    fc.assert(
      fc.property(timelines('a'), durations, waits, (timeline, lasting, maxWaitMs) => {
        const started = play(timeline, lasting, maxWaitMs);
        started.slice(1).forEach((run, index) => {
          expect(started[index]!.to).toBeLessThanOrEqual(run.from);
          expect(started[index]!.id).toBeLessThan(run.id);
        });
      }),
      runs,
    );
  });

  it('completes a run that contains a value at most one run after its maximum wait (G2)', () => {
    fc.assert(
      fc.property(timelines('a'), durations, waits, (timeline, lasting, maxWaitMs) => {
        const started = play(timeline, lasting, maxWaitMs);
        const longest = Math.max(...lasting);
        for (const { id, at } of timeline.arrivals) {
          const containing = started.find((run) => run.completed && run.id >= id);
          // A value that comes while an older run may no longer be cancelled waits for that run first.
          expect(containing?.to).toBeLessThanOrEqual(at + Math.max(maxWaitMs, longest) + longest);
        }
      }),
      runs,
    );
  });

  it('cancels a run only for a newer value, and only in time (G2, G5)', () => {
    fc.assert(
      fc.property(timelines('a'), durations, waits, (timeline, lasting, maxWaitMs) => {
        const started = play(timeline, lasting, maxWaitMs);
        const cancelled = started.filter((run) => !run.completed);
        for (const run of cancelled) {
          const contained = started.filter((it) => it.completed && it.id < run.id).at(-1)?.id ?? -1;
          const oldest = timeline.arrivals.find((it) => it.id > contained)!;
          expect(run.to! - oldest.at).toBeLessThanOrEqual(maxWaitMs);
          const cause = timeline.arrivals.filter((it) => it.id > run.id && it.at === run.to);
          expect(cause).not.toStrictEqual([]);
        }
      }),
      runs,
    );
  });
});
