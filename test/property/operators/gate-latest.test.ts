import fc from 'fast-check';
import { finalize, map, type Observable, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { gateLatest } from '../../../src/operators/gate-latest.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { frame, type Run, runs, type Timeline, timelines } from './timelines.ts';

interface Settings {
  readonly durations: readonly number[];
  readonly idleRatio: number;
  readonly urgent?: boolean;
  readonly unsubscribeAt?: number;
}

/** Plays a timeline in which `o` means that nothing is wanted; the n-th check lasts `durations[n]` frames. */
function play({ diagram }: Timeline, settings: Settings): { checks: Run[]; results: number[] } {
  const { durations, idleRatio, urgent = false, unsubscribeAt } = settings;
  return inVirtualTime(({ cold, flush }) => {
    const checks: Run[] = [];
    const results: number[] = [];
    const check = (value: number): Observable<number> => {
      const run: Run = { id: value, from: frame(), to: undefined, completed: false };
      const duration = durations[checks.length % durations.length]!;
      checks.push(run);
      return timer(duration).pipe(
        map(() => -value),
        tap({ complete: () => (run.completed = true) }),
        finalize(() => (run.to = frame())),
      );
    };
    const subscription = cold(diagram)
      .pipe(
        map((letter, id) => (letter === 'o' ? undefined : id)),
        gateLatest({ check, idleRatio, urgent: () => urgent }),
      )
      .subscribe(({ value, result }) => {
        expect(result).toBe(-value);
        results.push(value);
      });
    if (unsubscribeAt !== undefined)
      timer(unsubscribeAt).subscribe(() => subscription.unsubscribe());
    flush();
    return { checks, results };
  });
}

const settings = fc.record({
  durations: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 6 }),
  idleRatio: fc.constantFrom(0, 1, 2),
});

describe('gateLatest on random timelines (P7)', () => {
  it('checks one at a time, in order, to the end, and rests in between (G9)', () => {
    fc.assert(
      fc.property(timelines('abo'), settings, (timeline, given) => {
        const { checks, results } = play(timeline, given);
        checks.slice(1).forEach((run, index) => {
          const before = checks[index]!;
          const rest = (before.to! - before.from) * given.idleRatio;
          expect(before.id).toBeLessThan(run.id);
          expect(run.from).toBeGreaterThanOrEqual(
            Math.max(before.to!, Math.min(before.to! + rest, timeline.end)),
          );
        });
        expect(results).toStrictEqual(checks.filter((run) => run.completed).map((run) => run.id));
        expect(results).toHaveLength(checks.length);
      }),
      runs,
    );
  });

  it('makes progress under constant change: starts as soon as it may, with the newest (G9)', () => {
    fc.assert(
      fc.property(timelines('ab'), settings, (timeline, given) => {
        const { checks } = play(timeline, given);
        checks.forEach((run, index) => {
          const before = checks[index - 1];
          const waiting = timeline.arrivals.find((it) => it.id > (before?.id ?? -1))!;
          const rested =
            before === undefined ? 0 : before.to! + (before.to! - before.from) * given.idleRatio;
          const free = Math.max(before?.to ?? 0, Math.min(rested, timeline.end));
          expect(run.from).toBe(Math.max(free, waiting.at));
          const newer = timeline.arrivals.filter((it) => it.id > run.id && it.at < run.from);
          expect(newer).toStrictEqual([]);
        });
        expect(checks.at(-1)?.id).toBe(timeline.arrivals.at(-1)?.id);
      }),
      runs,
    );
  });

  it('checks only what is wanted when the check starts, and the last wanted value always (G9)', () => {
    fc.assert(
      fc.property(timelines('abo'), settings, (timeline, given) => {
        const { checks } = play(timeline, given);
        for (const run of checks) {
          const later = timeline.arrivals.filter((it) => it.id > run.id && it.at < run.from);
          expect(later).toStrictEqual([]);
          expect(timeline.arrivals[run.id]!.letter).not.toBe('o');
        }
        const last = timeline.arrivals.at(-1);
        if (last !== undefined && last.letter !== 'o') expect(checks.at(-1)?.id).toBe(last.id);
      }),
      runs,
    );
  });

  it('does not rest while it is urgent (G9)', () => {
    fc.assert(
      fc.property(timelines('ab'), settings, (timeline, given) => {
        const { checks } = play(timeline, { ...given, urgent: true });
        expect(checks).toStrictEqual(play(timeline, { ...given, idleRatio: 0 }).checks);
      }),
      runs,
    );
  });

  it('cancels the running check, and starts no other, when it is unsubscribed (G10)', () => {
    fc.assert(
      fc.property(
        timelines('abo'),
        settings,
        fc.nat({ max: 40 }),
        (timeline, given, unsubscribeAt) => {
          const { checks } = play(timeline, { ...given, unsubscribeAt });
          for (const run of checks) {
            expect(run.from).toBeLessThanOrEqual(unsubscribeAt);
            expect(run.to).toBeLessThanOrEqual(unsubscribeAt);
          }
        },
      ),
      runs,
    );
  });
});
