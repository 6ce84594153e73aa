import {
  asyncScheduler,
  EMPTY,
  from,
  map,
  type Observable,
  of,
  Subject,
  take,
  throwError,
} from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { foldByKey, type FoldByKeyOptions } from '../../../src/operators/fold-by-key.ts';
import { inVirtualTime, marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

/** Letters of one key differ in case only: `A` is the newer `a`. */
const keyOf = (value: string): string => value.toLowerCase();

/** Folds letters and joins each map to a readable text, in its own order: `a:A b:b`. */
const foldText = (options: FoldByKeyOptions<string>) => (source: Observable<string>) =>
  source.pipe(
    foldByKey(keyOf, options),
    map((folded) => [...folded].map(([key, value]) => `${key}:${value}`).join(' ')),
  );

/** `-` deletes what is pending, as a delete after an upsert does. */
const cancelling = (_pending: string, next: string): string | undefined =>
  next === next.toUpperCase() ? undefined : next;

describe('foldByKey', () => {
  describeOperatorContract({
    operator: () => foldByKey(keyOf, { quietMs: 2 }),
    passesErrors: true,
    emitsSynchronously: false,
    isUnicast: true,
  });

  it(
    'matches its diagram (G1: one map per burst, each key in its newest state)',
    marbles(({ cold, expectObservable, expectSubscriptions, time }) => {
      const source = '  -a-b-A-------c--|';
      const quiet = '         ----|';
      const expected = '---------x------(y|)';
      const source$ = cold(source);
      const result$ = source$.pipe(foldText({ quietMs: time(quiet) }));
      expectObservable(result$).toBe(expected, { x: 'a:A b:b', y: 'c:c' });
      expectSubscriptions(source$.subscriptions).toBe('^---------------!');
    }),
  );

  it(
    'folds a synchronous burst into one map in order of first arrival (G1)',
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('                                     --(baB)----|');
      expectObservable(source.pipe(foldText({ quietMs: 3 }))).toBe('-----x-----|', {
        x: 'b:B a:a',
      });
      expectSubscriptions(source.subscriptions).toBe('          ^----------!');
    }),
  );

  it(
    'emits one map for each quiet window',
    marbles(({ hot, expectObservable }) => {
      const source = hot('                                     -a---b---|');
      expectObservable(source.pipe(foldText({ quietMs: 2 }))).toBe('---x---y-|', {
        x: 'a:a',
        y: 'b:b',
      });
    }),
  );

  it(
    'hands changes of one key to merge, pending first',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -aAa-----|');
      const expected = '    -----x---|';
      const merge = (pending: string, next: string): string => pending + next;
      expectObservable(source.pipe(foldText({ quietMs: 2, merge }))).toBe(expected, { x: 'a:aAa' });
    }),
  );

  it(
    'emits nothing for changes that cancel out (G1)',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -aA---a---|');
      const expected = '    --------x-|';
      const result = source.pipe(foldText({ quietMs: 2, merge: cancelling }));
      expectObservable(result).toBe(expected, { x: 'a:a' });
    }),
  );

  it(
    'keeps a key that comes back after it was dropped, as a new arrival',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -abAa---|');
      const expected = '    ------x-|';
      const result = source.pipe(foldText({ quietMs: 2, merge: cancelling }));
      expectObservable(result).toBe(expected, { x: 'b:b a:a' });
    }),
  );

  it(
    'lets a clearing value supersede everything pending, and keeps what follows it',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -abrc---|');
      const expected = '    ------x-|';
      const clears = (value: string): boolean => value === 'r';
      expectObservable(source.pipe(foldText({ quietMs: 2, clears }))).toBe(expected, {
        x: 'r:r c:c',
      });
    }),
  );

  it(
    'ends a window after the maximum wait under constant churn (G2)',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -a-b-a-b-a-b-a|');
      const expected = '    ------x-----y-(z|)';
      expectObservable(source.pipe(foldText({ quietMs: 3, maxWaitMs: 5 }))).toBe(expected, {
        x: 'a:a b:b',
        y: 'b:b a:a',
        z: 'a:a',
      });
    }),
  );

  it(
    'counts the maximum wait from the first change of each window (G2)',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -a----b-c-d-e-----|');
      const expected = '    ----x------y---z--|';
      expectObservable(source.pipe(foldText({ quietMs: 3, maxWaitMs: 5 }))).toBe(expected, {
        x: 'a:a',
        y: 'b:b c:c d:d',
        z: 'e:e',
      });
    }),
  );

  it(
    'flushes on completion while a window is open',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('                                    -a-b|');
      expectObservable(source.pipe(foldText({ quietMs: 9 }))).toBe('----(x|)', { x: 'a:a b:b' });
      expectSubscriptions(source.subscriptions).toBe('          ^---!');
    }),
  );

  it(
    'drops what is pending when the source errors',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('                                    -a-b#');
      expectObservable(source.pipe(foldText({ quietMs: 9 }))).toBe('----#');
      expectSubscriptions(source.subscriptions).toBe('          ^---!');
    }),
  );

  it(
    'emits nothing after early unsubscription',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-b--------');
      const unsub = '        ^-----!';
      const expected = '     -------';
      expectObservable(source.pipe(foldText({ quietMs: 4 })), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(unsub);
    }),
  );

  it(
    'coalesces within one turn when the quiet time is 0, and waits no longer',
    marbles(({ hot, expectObservable }) => {
      const source = hot('                                     -(abA)-b|');
      expectObservable(source.pipe(foldText({ quietMs: 0 }))).toBe('-x-----y|', {
        x: 'a:A b:b',
        y: 'b:b',
      });
    }),
  );

  it('ends a zero window in one turn of the real event loop, with one timer for all changes', async () => {
    const schedule = vi.spyOn(asyncScheduler, 'schedule');
    const changes = new Subject<string>();
    const sizes: number[] = [];
    const done = new Promise<void>((resolve) => {
      changes.pipe(foldByKey(keyOf, { quietMs: 0 })).subscribe((folded) => {
        sizes.push(folded.size);
        resolve();
      });
    });
    for (const value of ['a', 'b', 'c']) {
      changes.next(value);
      await Promise.resolve();
    }
    expect(sizes).toStrictEqual([]);
    expect(schedule.mock.calls.map(([, delay]) => delay)).toStrictEqual([0]);
    await done;
    expect(sizes).toStrictEqual([3]);
    schedule.mockRestore();
  });

  it('ends the window at once when the limit of keys is reached', () => {
    const sizes: number[] = [];
    from(['a', 'A', 'b', 'c', 'd', 'e'])
      .pipe(foldByKey(keyOf, { quietMs: 5, limit: 2 }))
      .subscribe((folded) => sizes.push(folded.size));
    expect(sizes).toStrictEqual([2, 2, 1]);
  });

  it('stops a synchronous endless source by take when it has a limit', () => {
    let produced = 0;
    const endless = function* (): Generator<string> {
      for (;;) {
        if (++produced > 100) throw new Error('not stopped');
        yield `${produced}`;
      }
    };
    const maps: unknown[] = [];
    from(endless())
      .pipe(foldByKey(keyOf, { quietMs: 5, limit: 3 }), take(2))
      .subscribe((folded) => maps.push(folded));
    expect(maps).toHaveLength(2);
    expect(produced).toBe(6);
  });

  it.each(['key', 'merge', 'clears'] as const)('passes an error thrown by %s', (culprit) => {
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const fail = (): never => {
        throw new Error(culprit);
      };
      const source = cold('  -a-A--');
      const options = { quietMs: 9, merge: keyOf, clears: () => false };
      const result =
        culprit === 'key'
          ? source.pipe(foldByKey(fail, options))
          : source.pipe(foldByKey(keyOf, { ...options, [culprit]: fail }));
      const expected = culprit === 'merge' ? '---#' : '-#';
      expectObservable(result).toBe(expected, {}, new Error(culprit));
      expectSubscriptions(source.subscriptions).toBe(culprit === 'merge' ? '^--!' : '^!');
    });
  });

  it(
    'takes a change that the consumer feeds back while a map is emitted into a new window (re-entrant)',
    marbles(({ expectObservable }) => {
      const changes = new Subject<string>();
      let fed = 0;
      const result = changes.pipe(
        foldText({ quietMs: 3 }),
        map((text) => {
          if (fed++ < 2) changes.next('b');
          return text;
        }),
      );
      expectObservable(result, '^-----------!').toBe('---x--y--z--', {
        x: 'a:a',
        y: 'b:b',
        z: 'b:b',
      });
      expectObservable(of('a').pipe(map((value) => changes.next(value)))).toBe('(u|)', {
        u: undefined,
      });
    }),
  );

  it(
    'waits 100 ms of quiet and 1 s at most by default (G1, G2)',
    marbles(({ hot, expectObservable }) => {
      const burst = hot('a 49ms b 1s |');
      expectObservable(burst.pipe(foldText({ quietMs: 100 }))).toBe('150ms x 900ms |', {
        x: 'a:a b:b',
      });
      const churn = hot(`${'a 59ms '.repeat(20)} |`);
      expectObservable(churn.pipe(foldText({ quietMs: 100 }))).toBe('1s x 199ms (x|)', {
        x: 'a:a',
      });
      const short = hot(`${'a 4ms '.repeat(220)} |`);
      expectObservable(short.pipe(foldText({ quietMs: 10 }))).toBe('1s x 99ms (x|)', { x: 'a:a' });
      const long = hot(`${'a 149ms '.repeat(20)} |`);
      expectObservable(long.pipe(foldText({ quietMs: 200 }))).toBe('2s x 999ms (x|)', { x: 'a:a' });
    }),
  );

  it(
    'is transparent to sources that end at once',
    marbles(({ expectObservable }) => {
      expectObservable(EMPTY.pipe(foldText({ quietMs: 5 }))).toBe('|');
      expectObservable(throwError(() => 'error').pipe(foldText({ quietMs: 5 }))).toBe('#');
      expectObservable(of('a').pipe(foldText({ quietMs: 5 }))).toBe('(x|)', { x: 'a:a' });
    }),
  );
});
