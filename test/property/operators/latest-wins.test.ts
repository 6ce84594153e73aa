import fc from 'fast-check';
import { finalize, map, type Observable, of, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { latestWins } from '../../../src/operators/latest-wins.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { frame, type Run, runs, type Timeline, timelines } from './timelines.ts';

interface Played {
  readonly started: readonly Run[];
  readonly results: readonly number[];
  readonly completedAt: number | undefined;
}

/** Plays a timeline; the n-th run lasts `durations[n]` frames, 0 meaning that it ends synchronously. */
function play({ diagram }: Timeline, durations: readonly number[], minIntervalMs: number): Played {
  return inVirtualTime(({ cold, flush }) => {
    const started: Run[] = [];
    const results: number[] = [];
    let completedAt: number | undefined;
    const project = (value: number): Observable<number> => {
      const run: Run = { id: value, from: frame(), to: undefined, completed: false };
      const duration = durations[started.length % durations.length]!;
      started.push(run);
      const work = duration === 0 ? of(value) : timer(duration).pipe(map(() => value));
      return work.pipe(
        tap({ complete: () => (run.completed = true) }),
        finalize(() => (run.to = frame())),
      );
    };
    cold(diagram)
      .pipe(
        map((_, id) => id),
        latestWins(project, { minIntervalMs }),
      )
      .subscribe({
        next: (value) => results.push(value),
        complete: () => (completedAt = frame()),
      });
    flush();
    return { started, results, completedAt };
  });
}

const durations = fc.array(fc.nat({ max: 8 }), { minLength: 1, maxLength: 6 });
const intervals = fc.nat({ max: 10 });

describe('latestWins on random timelines (P7)', () => {
  it('never runs two at once, starts in order of arrival and far enough apart (G8)', () => {
    fc.assert(
      fc.property(timelines('a'), durations, intervals, (timeline, lasting, minIntervalMs) => {
        const { started } = play(timeline, lasting, minIntervalMs);
        started.slice(1).forEach((run, index) => {
          const before = started[index]!;
          expect(before.to).toBeLessThanOrEqual(run.from);
          expect(before.id).toBeLessThan(run.id);
          expect(run.from - before.from).toBeGreaterThanOrEqual(minIntervalMs);
        });
        expect(started.filter((run) => !run.completed)).toStrictEqual([]);
      }),
      runs,
    );
  });

  it('always runs the last value, and completes exactly when all is done (G8)', () => {
    fc.assert(
      fc.property(timelines('a'), durations, intervals, (timeline, lasting, minIntervalMs) => {
        const { started, results, completedAt } = play(timeline, lasting, minIntervalMs);
        const last = timeline.arrivals.at(-1);
        expect(started.at(-1)?.id).toBe(last?.id);
        expect(results).toStrictEqual(started.map((run) => run.id));
        expect(completedAt).toBe(Math.max(timeline.end, started.at(-1)?.to ?? 0));
      }),
      runs,
    );
  });

  it('starts as soon as it may, and then the newest value there is (G8)', () => {
    fc.assert(
      fc.property(timelines('a'), durations, intervals, (timeline, lasting, minIntervalMs) => {
        const { started } = play(timeline, lasting, minIntervalMs);
        started.forEach((run, index) => {
          const before = started[index - 1];
          const free = before === undefined ? 0 : Math.max(before.to!, before.from + minIntervalMs);
          const waiting = timeline.arrivals.find((it) => it.id > (before?.id ?? -1))!;
          expect(run.from).toBe(Math.max(free, waiting.at));
          const newer = timeline.arrivals.filter((it) => it.id > run.id && it.at < run.from);
          expect(newer).toStrictEqual([]);
        });
      }),
      runs,
    );
  });
});
