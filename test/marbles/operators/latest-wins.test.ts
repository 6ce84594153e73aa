import { defer, EMPTY, finalize, from, map, of, Subject, take, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { latestWins } from '../../../src/operators/latest-wins.ts';
import { marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

describe('latestWins', () => {
  describeOperatorContract({
    operator: () => latestWins((value) => timer(2).pipe(map(() => value)), { minIntervalMs: 1 }),
    passesErrors: true,
    emitsSynchronously: false,
    isUnicast: true,
  });

  describeOperatorContract({
    operator: () => latestWins((value) => of(value)),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram (G8: never two at once, the newest pending one wins)',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = '  -a--b-c-|';
      const run = '      -----r|';
      const runSubs = ['-^-----!', '-------^-----!'];
      const expected = '------r-----r|';
      const source$ = cold(source);
      const run$ = cold(run);
      expectObservable(source$.pipe(latestWins(() => run$))).toBe(expected);
      expectSubscriptions(run$.subscriptions).toBe(runSubs);
      expectSubscriptions(source$.subscriptions).toBe('^-------!');
    }),
  );

  it(
    'runs the newest of a synchronous burst after the first',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  --(abcd)----|');
      const run = {
        a: cold('              --a|'),
        d: cold('                 --d|'),
      };
      const aSubs = '        --^--!';
      const dSubs = '        -----^--!';
      const expected = '     ----a--d----|';
      const result = source.pipe(latestWins((value) => run[value as 'a' | 'd']));
      expectObservable(result).toBe(expected);
      expectSubscriptions(run.a.subscriptions).toBe(aSubs);
      expectSubscriptions(run.d.subscriptions).toBe(dSubs);
    }),
  );

  it(
    'starts a value that arrives exactly when a run ends, without losing it',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('   -a--b---|');
      const run = cold('      --r|');
      const runSubs = ['     -^--!', '----^--!'];
      const expected = '     ---r--r-|';
      expectObservable(source.pipe(latestWins(() => run))).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'keeps a value that arrives during the trailing run for a third one',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('   -ab----c-d------|');
      const run = (value: string) => cold('----r|', { r: value });
      const runs = { a: run('a'), b: run('b'), d: run('d') };
      const expected = '     -----a----b----d|';
      const result = source.pipe(latestWins((value) => runs[value as 'a' | 'b' | 'd']));
      expectObservable(result).toBe(expected);
      expectSubscriptions(runs.a.subscriptions).toBe('-^----!');
      expectSubscriptions(runs.b.subscriptions).toBe('------^----!');
      expectSubscriptions(runs.d.subscriptions).toBe('-----------^----!');
    }),
  );

  it(
    'runs the pending value after the source has completed, and completes with it',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab|');
      const run = cold('      ---r|');
      const runSubs = ['     -^---!', '-----^---!'];
      const expected = '     ----r---r|';
      expectObservable(source.pipe(latestWins(() => run))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^--!');
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'starts a short run no sooner than the interval after the one before',
    marbles(({ cold, expectObservable, expectSubscriptions, time }) => {
      const interval = '      -----|     ';
      const source = cold('  -ab-------c-----|');
      const run = cold('      r|          ');
      const runSubs = ['     -^!', '------^!', '-----------^!'];
      const expected = '     -r----r----r----|';
      const result = source.pipe(latestWins(() => run, { minIntervalMs: time(interval) }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'starts the next at the end of a run that is longer than the interval',
    marbles(({ cold, expectObservable, expectSubscriptions, time }) => {
      const interval = '      --|         ';
      const source = cold('  -ab-------|');
      const run = cold('      ----r|     ');
      const runSubs = ['     -^----!', '------^----!'];
      const expected = '     -----r----r|';
      const result = source.pipe(latestWins(() => run, { minIntervalMs: time(interval) }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'starts a value that arrives exactly at the end of the interval at once',
    marbles(({ hot, cold, expectObservable, expectSubscriptions, time }) => {
      const interval = '      ----|       ';
      const source = hot('   -a---b----|');
      const run = cold('      r|          ');
      const runSubs = ['     -^!', '-----^!'];
      const expected = '     -r---r----|';
      const result = source.pipe(latestWins(() => run, { minIntervalMs: time(interval) }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'starts at once after a quiet interval, and waits out the interval for a value pending at completion',
    marbles(({ cold, expectObservable, expectSubscriptions, time }) => {
      const interval = '      ----|          ';
      const source = cold('  -a--------bc|    ');
      const run = cold('      r|             ');
      const runSubs = ['     -^!', '----------^!', '--------------^!'];
      const expected = '     -r--------r---r|';
      const result = source.pipe(latestWins(() => run, { minIntervalMs: time(interval) }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'does not wait for the interval to complete when nothing is pending',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -a-|');
      const expected = '     -a-|';
      const result = source.pipe(latestWins((value) => of(value), { minIntervalMs: 50 }));
      expectObservable(result).toBe(expected);
    }),
  );

  it(
    'passes the error of a run at once, although a value is pending',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab-----|');
      const run = cold('      ---#     ');
      const expected = '     ----#';
      expectObservable(source.pipe(latestWins(() => run))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^---!');
      expectSubscriptions(run.subscriptions).toBe('   -^--!');
    }),
  );

  it(
    'cancels the run when the source errors',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab#');
      const run = cold('      -----r|');
      const expected = '     ---#';
      expectObservable(source.pipe(latestWins(() => run))).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe('-^-!');
    }),
  );

  it(
    'passes an error thrown by project, for the first value and for a pending one',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab-|');
      const run = cold('      --r|');
      const failing = (culprit: string) =>
        latestWins((value: string) => {
          if (value === culprit) throw new Error(culprit);
          return run;
        });
      expectObservable(source.pipe(failing('a'))).toBe('-#', {}, new Error('a'));
      expectObservable(source.pipe(failing('b'))).toBe('---r#', { r: 'r' }, new Error('b'));
      expectSubscriptions(source.subscriptions).toBe(['^!', '^---!']);
    }),
  );

  it(
    'unsubscribes source and run early',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab-----|');
      const run = cold('      --r--r-|');
      const unsub = '        ^----!   ';
      const expected = '     ---r--   ';
      expectObservable(source.pipe(latestWins(() => run)), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^----!');
      expectSubscriptions(run.subscriptions).toBe('   -^---!');
    }),
  );

  it(
    'waits for a run that never ends and starts no other',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab|');
      const run = cold('      r---');
      const unsub = '        ^--------!';
      const expected = '     -r--------';
      expectObservable(source.pipe(latestWins(() => run)), unsub).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe('-^-------!');
    }),
  );

  it('starts a run only after the one before has been torn down', () => {
    const log: string[] = [];
    const first = new Subject<never>();
    const values = new Subject<string>();
    const run = (value: string) =>
      defer(() => {
        log.push(`start ${value}`);
        return (value === 'a' ? first : EMPTY).pipe(finalize(() => log.push(`end ${value}`)));
      });
    values.pipe(latestWins(run)).subscribe();
    values.next('a');
    values.next('b');
    first.complete();
    expect(log).toStrictEqual(['start a', 'end a', 'start b', 'end b']);
  });

  it('keeps the newest of the values that a consumer feeds back during a run (re-entrant)', () => {
    const values = new Subject<number>();
    const seen: number[] = [];
    values.pipe(latestWins((value) => of(value))).subscribe((value) => {
      seen.push(value);
      if (value < 3) {
        values.next(value * 10);
        values.next(value + 1);
      }
    });
    values.next(1);
    values.complete();
    expect(seen).toStrictEqual([1, 2, 3]);
  });

  it('uses no stack for runs that end at once and feed back', () => {
    const values = new Subject<number>();
    let last = 0;
    values
      .pipe(
        latestWins((value) => of(value)),
        tap((value) => (last = value)),
        take(50_000),
      )
      .subscribe((value) => values.next(value + 1));
    values.next(1);
    expect(last).toBe(50_000);
    expect(values.observed).toBe(false);
  });

  it('stops a synchronous endless run by take', () => {
    let produced = 0;
    const endless = function* (): Generator<number> {
      for (;;) {
        if (++produced > 100) throw new Error('not stopped');
        yield produced;
      }
    };
    const seen: number[] = [];
    of('a')
      .pipe(
        latestWins(() => from(endless())),
        take(2),
      )
      .subscribe((value) => seen.push(value));
    expect(seen).toStrictEqual([1, 2]);
    expect(produced).toBe(2);
  });

  it(
    'has no interval by default and keeps one in real units',
    marbles(({ cold, expectObservable }) => {
      const source = cold('         a 99ms b 99ms c 9s |');
      const free = '                a 99ms b 99ms c 9s |';
      const paced = '               a 4999ms      c 4200ms |';
      const run = (value: string) => of(value);
      expectObservable(source.pipe(latestWins(run))).toBe(free);
      expectObservable(source.pipe(latestWins(run, { minIntervalMs: 5000 }))).toBe(paced);
    }),
  );
});
