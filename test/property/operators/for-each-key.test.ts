import fc from 'fast-check';
import { concat, defer, finalize, map, NEVER, type Observable, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { forEachKey } from '../../../src/operators/for-each-key.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { frame, runs, type Timeline, timelines } from './timelines.ts';

type Members = ReadonlyMap<string, number>;

/** What the letters of a timeline stand for: random sets of members, hostile names among them, with values. */
const sets = fc
  .array(
    fc.dictionary(fc.constantFrom('p', 'q', 'constructor', '__proto__'), fc.nat({ max: 2 }), {
      noNullPrototype: false,
    }),
    { minLength: 4, maxLength: 4 },
  )
  .map((dictionaries) => dictionaries.map((it): Members => new Map(Object.entries(it))));

const valuesOf = (letters: string, list: readonly Members[]): Record<string, Members> =>
  Object.fromEntries(Array.from(letters).map((letter, index) => [letter, list[index]!]));

/** What must happen for a series of sets, from the rules alone: added, changed and removed members. */
function expectedEvents({ arrivals }: Timeline, byLetter: Record<string, Members>): string[] {
  const events: string[] = [];
  let before: Members = new Map();
  for (const { letter, at } of arrivals) {
    const now = byLetter[letter]!;
    for (const key of before.keys()) if (!now.has(key)) events.push(`${at} -${key}`);
    for (const [key, value] of now) {
      if (!before.has(key)) events.push(`${at} +${key}`);
      if (before.get(key) !== value) events.push(`${at} ${key}=${value}`);
    }
    before = now;
  }
  return events.toSorted();
}

describe('forEachKey on random timelines (P7)', () => {
  it('runs exactly the members of the newest set, each with every value it had, afresh when it comes back (G8)', () => {
    fc.assert(
      fc.property(timelines('abcd'), sets, (timeline, list) => {
        const byLetter = valuesOf('abcd', list);
        inVirtualTime(({ cold, flush }) => {
          const events: string[] = [];
          const active = new Set<string>();
          const project = (key: string, value$: Observable<number>): Observable<unknown> =>
            defer(() => {
              expect(active).not.toContain(key);
              active.add(key);
              events.push(`${frame()} +${key}`);
              return concat(value$, NEVER).pipe(
                tap((value) => events.push(`${frame()} ${key}=${value}`)),
                finalize(() => {
                  active.delete(key);
                  events.push(`${frame()} -${key}`);
                }),
              );
            });
          // Without the completion, after which nothing can be added or removed.
          const diagram = timeline.diagram.replace('|', '-');
          const subscription = cold(diagram, byLetter).pipe(forEachKey(project)).subscribe();
          flush();
          expect(events.toSorted()).toStrictEqual(expectedEvents(timeline, byLetter));
          const last = timeline.arrivals.at(-1);
          const members = last === undefined ? [] : [...byLetter[last.letter]!.keys()];
          expect([...active].toSorted()).toStrictEqual(members.toSorted());
          subscription.unsubscribe();
          expect([...active]).toStrictEqual([]);
        });
      }),
      runs,
    );
  });

  it('completes all values of members that may finish, and completes when all have (G14)', () => {
    fc.assert(
      fc.property(timelines('abcd'), sets, (timeline, list) => {
        const byLetter = valuesOf('abcd', list);
        inVirtualTime(({ cold, flush }) => {
          let started = 0;
          let finished = 0;
          let completedAt: number | undefined;
          const project = (_: string, value$: Observable<number>): Observable<number> => {
            started++;
            return value$.pipe(tap({ complete: () => finished++ }));
          };
          cold(timeline.diagram, byLetter)
            .pipe(forEachKey(project, { onRemoved: 'finish' }))
            .subscribe({ complete: () => (completedAt = frame()) });
          flush();
          expect(finished).toBe(started);
          expect(completedAt).toBe(timeline.end);
        });
      }),
      runs,
    );
  });

  it('lets a failing member change nothing for the others', () => {
    fc.assert(
      fc.property(timelines('abcd'), sets, (timeline, list) => {
        const byLetter = valuesOf('abcd', list);
        const play = (failing: string | undefined): string[] =>
          inVirtualTime(({ cold, flush }) => {
            const seen: string[] = [];
            const project = (key: string, value$: Observable<number>): Observable<string> =>
              value$.pipe(
                map((value) => {
                  if (key === failing) throw new Error('failed');
                  return `${frame()} ${key}=${value}`;
                }),
              );
            cold(timeline.diagram, byLetter)
              .pipe(forEachKey(project, { onError: () => [] }))
              .subscribe((it) => seen.push(it));
            flush();
            return seen;
          });
        const healthy = play(undefined).filter((it) => !it.includes(' p='));
        expect(play('p')).toStrictEqual(healthy);
      }),
      runs,
    );
  });
});
