import fc from 'fast-check';
import { map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { foldByKey } from '../../../src/operators/fold-by-key.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { frame, runs, type Timeline, timelines } from './timelines.ts';

interface Emission<V> {
  readonly at: number;
  readonly entries: readonly (readonly [key: string, value: V])[];
}

/** Plays the arrivals of a timeline, each as `toValue` makes it, and collects the maps. */
function play<V>(
  { diagram, arrivals }: Timeline,
  toValue: (id: number) => V,
  options: Parameters<typeof foldByKey<readonly [string, V], string>>[1],
): Emission<V>[] {
  return inVirtualTime(({ cold, flush }) => {
    const emissions: Emission<V>[] = [];
    cold(diagram)
      .pipe(
        map((_, id) => [arrivals[id]!.letter, toValue(id)] as const),
        foldByKey(([key]) => key, options),
      )
      .subscribe((folded) =>
        emissions.push({
          at: frame(),
          entries: [...folded].map(([key, [, value]]) => [key, value] as const),
        }),
      );
    flush();
    return emissions;
  });
}

const windows = fc.record({ quietMs: fc.nat({ max: 6 }), extraMs: fc.nat({ max: 10 }) });

describe('foldByKey on random timelines (P7)', () => {
  it('loses nothing, repeats nothing and keeps the order, per key and of keys (G1)', () => {
    fc.assert(
      fc.property(timelines('abc'), windows, (timeline, { quietMs, extraMs }) => {
        const emissions = play(timeline, (id) => [id], {
          quietMs,
          maxWaitMs: quietMs + extraMs,
          merge: ([key, pending], [, next]) => [key, [...pending, ...next]],
        });
        for (const letter of 'abc') {
          const wanted = timeline.arrivals.filter((it) => it.letter === letter).map((it) => it.id);
          const got = emissions.flatMap(({ entries }) =>
            entries.filter(([key]) => key === letter).flatMap(([, ids]) => ids),
          );
          expect(got).toStrictEqual(wanted);
        }
        for (const { entries } of emissions) {
          const first = entries.map(([, ids]) => ids[0]!);
          expect(first).toStrictEqual(first.toSorted((a, b) => a - b));
        }
      }),
      runs,
    );
  });

  it('ends a window after the quiet time, at the maximum wait or on completion, never later (G1, G2)', () => {
    fc.assert(
      fc.property(timelines('abc'), windows, (timeline, { quietMs, extraMs }) => {
        const maxWaitMs = quietMs + extraMs;
        const emissions = play(timeline, (id) => [id], {
          quietMs,
          maxWaitMs,
          merge: ([key, pending], [, next]) => [key, [...pending, ...next]],
        });
        for (const { at, entries } of emissions) {
          const arrived = entries.flatMap(([, ids]) => ids.map((id) => timeline.arrivals[id]!.at));
          const [first, last] = [Math.min(...arrived), Math.max(...arrived)];
          const ends = quietMs === 0 ? [first] : [last + quietMs, first + maxWaitMs];
          expect([Math.min(timeline.end, ...ends)]).toContain(at);
        }
      }),
      runs,
    );
  });

  it('gives each key its newest value when nothing is merged', () => {
    fc.assert(
      fc.property(timelines('abc'), windows, (timeline, { quietMs }) => {
        const emissions = play(timeline, (id) => id, { quietMs });
        for (const { at, entries } of emissions) {
          for (const [key, id] of entries) {
            const newer = timeline.arrivals.filter(
              (it) => it.letter === key && it.at < at && it.id > id,
            );
            expect(newer).toStrictEqual([]);
          }
        }
      }),
      runs,
    );
  });

  it('emits what is left of changes that partly cancel out, and never what cancelled out (G1)', () => {
    const delta = fc.constantFrom(-1, 1);
    const deltas = fc.array(delta, { minLength: 120, maxLength: 120 });
    fc.assert(
      fc.property(timelines('ab'), windows, deltas, (timeline, { quietMs, extraMs }, steps) => {
        const emissions = play(timeline, (id): number => steps[id]!, {
          quietMs,
          maxWaitMs: quietMs + extraMs,
          merge: ([key, pending], [, next]) =>
            pending + next === 0 ? undefined : [key, pending + next],
        });
        for (const letter of 'ab') {
          const sum = (numbers: number[]): number => numbers.reduce((total, it) => total + it, 0);
          const wanted = timeline.arrivals
            .filter((it) => it.letter === letter)
            .map((it) => steps[it.id]!);
          const got = emissions.flatMap(({ entries }) =>
            entries.filter(([key]) => key === letter).map(([, value]) => value),
          );
          expect(sum(got)).toBe(sum(wanted));
          expect(got).not.toContain(0);
        }
        expect(emissions.filter(({ entries }) => entries.length === 0)).toStrictEqual([]);
      }),
      runs,
    );
  });
});
