import { from, map, of, Subject, take, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { switchMapWithin } from '../../../src/operators/switch-map-within.ts';
import { marbles } from '../../support/marbles.ts';
import { activeTimers, describeOperatorContract } from './operator-contract.ts';

describe('switchMapWithin', () => {
  describeOperatorContract({
    operator: () => switchMapWithin((value) => timer(2).pipe(map(() => value)), { maxWaitMs: 5 }),
    passesErrors: true,
    emitsSynchronously: false,
    isUnicast: true,
  });

  describeOperatorContract({
    operator: () => switchMapWithin((value) => of(value), { maxWaitMs: 5 }),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram (G2: past the maximum wait a render completes, newer ones are held)',
    marbles(({ cold, expectObservable, expectSubscriptions, time }) => {
      const source = '  -a--b--c--de-------|';
      const maxWait = '  --------|         ';
      const run = '            -----(r|)   ';
      const expected = '------------r----r-|';
      const source$ = cold(source);
      const run$ = cold(run);
      const result = source$.pipe(switchMapWithin(() => run$, { maxWaitMs: time(maxWait) }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(source$.subscriptions).toBe('^------------------!');
      expectSubscriptions(run$.subscriptions).toBe([
        '-^--!',
        '----^--!',
        '-------^----!',
        '------------^----!',
      ]);
    }),
  );

  it(
    'cancels the run for a newer value in time (G5)',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-b---------|');
      const run = cold('      ----(r|)');
      const runSubs = ['     -^-!', '---^---!'];
      const expected = '     -------r-----|';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 50 }))).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'completes runs under constant change, each at most one run after the maximum wait (G2)',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  a-b-c-d-e-f-g-h-i-j-k|');
      const run = (value: string) => cold('---(r|)', { r: value });
      const result = source.pipe(switchMapWithin(run, { maxWaitMs: 5 }));
      // c's run, started at 4, may finish because a is too old at 5.
      const expected = '     -------c-----f-----i---(k|)';
      expectObservable(result).toBe(expected);
    }),
  );

  it(
    'counts the wait of held values from the oldest of them',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a--bc----d-----------|');
      const run = cold('      --------(r|)');
      // a is too old at 3; b is held from 4 on and too old at 6, so c's run, started at 9, is not cancelled by d.
      const runSubs = ['     -^-------!', '---------^-------!', '-----------------^-------!'];
      const expected = '     ---------r-------r-------(r|)';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 2 }))).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'cancels again for values that came after a completed run',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a------b-c--------|');
      const run = cold('      -----(r|)');
      const runSubs = ['     -^----!', '--------^-!', '----------^----!'];
      const expected = '     ------r--------r---|';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 4 }))).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'keeps a run that has emitted but not completed cancellable',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a---b------|');
      const run = cold('      --r----(r|)');
      const runSubs = ['     -^---!', '-----^------!'];
      const expected = '     ---r---r----(r|)';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 9 }))).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'runs the newest of a synchronous burst and cancels the others',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -(abc)----|');
      const run = cold('      --(r|)');
      const runSubs = ['     -(^!)', '-(^!)', '-^-!'];
      const expected = '     ---r------|';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 9 }))).toBe(expected);
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'runs a held value after the source has completed',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a---b|');
      const run = cold('      ------(r|)');
      const runSubs = ['     -^-----!', '-------^-----!'];
      const expected = '     -------r-----(r|)';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 2 }))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^-----!');
      expectSubscriptions(run.subscriptions).toBe(runSubs);
    }),
  );

  it(
    'passes the error of a run at once, although a value is held',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a---b---|');
      const run = cold('      ------#');
      const expected = '     -------#';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 2 }))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^------!');
      expectSubscriptions(run.subscriptions).toBe('   -^-----!');
    }),
  );

  it(
    'cancels the run when the source errors',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-#');
      const run = cold('      -----(r|)');
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 2 }))).toBe('---#');
      expectSubscriptions(run.subscriptions).toBe('-^-!');
    }),
  );

  it(
    'passes an error thrown by project',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a--|');
      const fail = (): never => {
        throw new Error('project');
      };
      const result = source.pipe(switchMapWithin(fail, { maxWaitMs: 2 }));
      expectObservable(result).toBe('-#', {}, new Error('project'));
      expectSubscriptions(source.subscriptions).toBe('^!');
    }),
  );

  it(
    'unsubscribes source and run early',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-----b---|');
      const run = cold('      --------(r|)');
      const unsub = '        ^-------!';
      expectObservable(source.pipe(switchMapWithin(() => run, { maxWaitMs: 2 })), unsub).toBe('-');
      expectSubscriptions(source.subscriptions).toBe('^-------!');
      expectSubscriptions(run.subscriptions).toBe('   -^------!');
    }),
  );

  it('leaves no run behind when project or the consumer re-enters', () => {
    const values = new Subject<string>();
    const runs: Record<string, Subject<string>> = {
      a: new Subject(),
      b: new Subject(),
      c: new Subject(),
    };
    const seen: string[] = [];
    const project = (value: string): Subject<string> => {
      if (value === 'a') values.next('b');
      return runs[value]!;
    };
    values.pipe(switchMapWithin(project, { maxWaitMs: 1000 })).subscribe((value) => {
      seen.push(value);
      if (value === 'fromB') values.next('c');
    });
    values.next('a');
    expect([runs['a']!.observed, runs['b']!.observed]).toStrictEqual([false, true]);
    runs['b']!.next('fromB');
    expect([runs['b']!.observed, runs['c']!.observed]).toStrictEqual([false, true]);
    values.complete();
    runs['c']!.next('fromC');
    runs['c']!.complete();
    expect(seen).toStrictEqual(['fromB', 'fromC']);
  });

  it('uses no stack for runs that end at once and feed back', () => {
    const values = new Subject<number>();
    let last = 0;
    values
      .pipe(
        switchMapWithin((value) => of(value), { maxWaitMs: 10 }),
        take(50_000),
      )
      .subscribe((value) => {
        last = value;
        values.next(value + 1);
      });
    values.next(1);
    expect(last).toBe(50_000);
  });

  it('keeps no timer for values that a completed run contains', () => {
    const values = new Subject<number>();
    const before = activeTimers();
    values.pipe(switchMapWithin((value) => of(value), { maxWaitMs: 1_000_000 })).subscribe();
    for (let value = 0; value < 100; value++) values.next(value);
    expect(activeTimers() - before).toBe(0);
    values.complete();
  });

  it('stops a synchronous endless run by take', () => {
    let produced = 0;
    const endless = function* (): Generator<number> {
      for (;;) {
        if (++produced > 100) throw new Error('not stopped');
        yield produced;
      }
    };
    of('a')
      .pipe(
        switchMapWithin(() => from(endless()), { maxWaitMs: 10 }),
        take(2),
      )
      .subscribe();
    expect(produced).toBe(2);
  });

  it(
    'renders once in each second when a 150 ms render meets a change every 100 ms (G2, in real units)',
    marbles(({ cold, expectObservable }) => {
      const source = cold(`${'a 99ms '.repeat(40)} |`);
      const run = cold('   150ms (r|)');
      const result = source.pipe(
        switchMapWithin(() => run, { maxWaitMs: 1000 }),
        take(3),
      );
      // The run that starts at 1000 ms (cancelled no more) ends at 1150; the change of 1100 waits from there on, to 2100.
      expectObservable(result).toBe('1150ms r 1099ms r 1099ms (r|)');
    }),
  );
});
