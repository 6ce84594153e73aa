import { from, map, of, Subject, take, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { handOver } from '../../../src/operators/hand-over.ts';
import { marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

/** Digits are ready results, letters are not. */
const ready = (result: string): boolean => /\d/.test(result);

describe('handOver', () => {
  describeOperatorContract({
    operator: () => handOver((value) => of(value), { ready: () => true }),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  describeOperatorContract({
    operator: () => handOver((value) => timer(2).pipe(map(() => value)), { ready: () => true }),
    passesErrors: true,
    emitsSynchronously: false,
    isUnicast: true,
  });

  it(
    'matches its diagram (G13: a valid new run takes over without a gap)',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = '  -a----b-----|';
      const first = '    --1--1--1--1';
      const second = '        --n--2--|';
      const expected = '---1--1-n1-2--|';
      const source$ = hot(source);
      const runs = { a: cold(first), b: cold(second) };
      const result = source$.pipe(handOver((value) => runs[value as 'a' | 'b'], { ready }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(source$.subscriptions).toBe('^-----------!');
      expectSubscriptions(runs.a.subscriptions).toBe('-^---------!');
      expectSubscriptions(runs.b.subscriptions).toBe('------^-------!');
    }),
  );

  it(
    'keeps the old run when the newer one is never ready (G13: an invalid one changes nothing)',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a---b-------|');
      const runs = {
        a: cold('            --1---1---1|'),
        b: cold('                -n|'),
      };
      const expected = '     ---1--n1---1-|';
      const result = source.pipe(handOver((value) => runs[value as 'a' | 'b'], { ready }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(runs.a.subscriptions).toBe('-^----------!');
      expectSubscriptions(runs.b.subscriptions).toBe('-----^-!');
    }),
  );

  it(
    'cancels a candidate that a newer value overtakes before it was ready',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a--b-c------|');
      const runs = {
        a: cold('            -1---------|'),
        b: cold('               ---2---|'),
        c: cold('                 --3|'),
      };
      const expected = '     --1-----3----|';
      const result = source.pipe(handOver((value) => runs[value as 'a' | 'b' | 'c'], { ready }));
      expectObservable(result).toBe(expected);
      expectSubscriptions(runs.a.subscriptions).toBe('-^------!');
      expectSubscriptions(runs.b.subscriptions).toBe('----^-!');
      expectSubscriptions(runs.c.subscriptions).toBe('------^--!');
    }),
  );

  it(
    'passes the error of any run, and one thrown by project or ready',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a--b--|');
      const runs = { a: cold('-1-----'), b: cold('--#') };
      const fail = (): never => {
        throw new Error('thrown');
      };
      const thrown = new Error('thrown');
      const result = source.pipe(handOver((value) => runs[value as 'a' | 'b'], { ready }));
      expectObservable(result).toBe('--1---#');
      expectObservable(source.pipe(handOver(fail, { ready }))).toBe('-#', undefined, thrown);
      const judged = source.pipe(handOver(() => runs.a, { ready: fail }));
      expectObservable(judged).toBe('--#', undefined, thrown);
      expectSubscriptions(source.subscriptions).toBe(['^-----!', '^!', '^-!']);
    }),
  );

  it(
    'unsubscribes both runs early and with an error of the source',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a--b-#');
      const run = cold('      -n-----');
      const unsub = '        ^----!';
      const result = source.pipe(handOver(() => run, { ready: () => true }));
      expectObservable(result, unsub).toBe('--n--');
      expectObservable(result).toBe('       --n--n#');
      expectSubscriptions(source.subscriptions).toBe([unsub, '^-----!']);
      expectSubscriptions(run.subscriptions).toBe(['-^---!', '-^---!', '----^!', '----^-!']);
    }),
  );

  it('leaves one run when the consumer re-enters', () => {
    const values = new Subject<string>();
    const runs = { a: new Subject<string>(), b: new Subject<string>() };
    const seen: string[] = [];
    values.pipe(handOver((value) => runs[value as 'a' | 'b'], { ready })).subscribe((result) => {
      seen.push(result);
      if (result === '1') values.next('b');
    });
    values.next('a');
    runs.a.next('1');
    runs.b.next('2');
    expect([runs.a.observed, runs.b.observed]).toStrictEqual([false, true]);
    expect(seen).toStrictEqual(['1', '2']);
  });

  it('stops a synchronous endless run by take', () => {
    let produced = 0;
    const endless = function* (): Generator<string> {
      for (;;) {
        if (++produced > 100) throw new Error('not stopped');
        yield `${produced}`;
      }
    };
    of('a')
      .pipe(
        handOver(() => from(endless()), { ready }),
        take(2),
      )
      .subscribe();
    expect(produced).toBe(2);
  });
});
