import { BehaviorSubject, EMPTY, NEVER, of, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { holdUntil } from '../../../src/operators/hold-until.ts';
import { marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

const gate = { t: true, f: false };

describe('holdUntil', () => {
  describeOperatorContract({
    operator: () => holdUntil(of(true)),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram (G2, G4: what is held is released when the gate opens)',
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const open = '    ----t-----f------t--';
      const source = '  -a-b---c----d-e-----f|';
      const expected = '----b--c---------e--f|';
      const open$ = hot(open, gate);
      const source$ = hot(source);
      expectObservable(source$.pipe(holdUntil(open$))).toBe(expected);
      expectSubscriptions(source$.subscriptions).toBe('^--------------------!');
      expectSubscriptions(open$.subscriptions).toBe('  ^--------------------!');
    }),
  );

  it(
    'holds until the gate has said something',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-b-c--|');
      const unsub = '        ^-----------!';
      expectObservable(source.pipe(holdUntil(NEVER)), unsub).toBe('-');
      expectSubscriptions(source.subscriptions).toBe('^-------!');
    }),
  );

  it(
    'releases what is held after the source has completed, and completes with it',
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const open = hot('     ------f--t--', gate);
      const source = cold('  -a-b|');
      const openSubs = '     ^--------!';
      const expected = '     ---------(b|)';
      expectObservable(source.pipe(holdUntil(open))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^---!');
      expectSubscriptions(open.subscriptions).toBe(openSubs);
    }),
  );

  it(
    'completes without what is held when the gate can open no more',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a---|');
      const open = cold<boolean>('    ---|');
      const expected = '     -----|';
      expectObservable(source.pipe(holdUntil(open))).toBe(expected);
      expectObservable(source.pipe(holdUntil(EMPTY))).toBe(expected);
      expectSubscriptions(open.subscriptions).toBe('^--!');
    }),
  );

  it(
    'completes at once while closed when nothing is held',
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const source = cold('  ---|');
      const open = hot('     -f----', gate);
      expectObservable(source.pipe(holdUntil(open))).toBe('---|');
      expectSubscriptions(open.subscriptions).toBe('       ^--!');
    }),
  );

  it(
    'stays as it is when the gate completes',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -a-b-c-|');
      const open = cold('    --t|', gate);
      const expected = '     --ab-c-|';
      expectObservable(source.pipe(holdUntil(open))).toBe(expected);
    }),
  );

  it(
    'releases a value once, however often the gate says it is open',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -a-----|');
      const open = cold('    --tt-t-', gate);
      const expected = '     --a----|';
      expectObservable(source.pipe(holdUntil(open))).toBe(expected);
    }),
  );

  it(
    'holds the newest of a synchronous burst',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -(abc)-(de|)');
      const open = cold('    ------t-----', gate);
      const expected = '     ------c(de|)';
      expectObservable(source.pipe(holdUntil(open))).toBe(expected);
    }),
  );

  it(
    'passes an error of the gate or of the source at once and drops what is held',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a----|');
      const open = cold<boolean>('    ---#   ');
      const broken = cold('  -a-#   ');
      const closed = cold('  f-------t', gate);
      expectObservable(source.pipe(holdUntil(open))).toBe('  ---#');
      expectObservable(broken.pipe(holdUntil(closed))).toBe('---#');
      expectSubscriptions(source.subscriptions).toBe('      ^--!');
      expectSubscriptions(closed.subscriptions).toBe('      ^--!');
    }),
  );

  it(
    'unsubscribes source and gate early',
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a--b---');
      const open = hot('     --t-----', gate);
      const unsub = '        ^--!';
      expectObservable(source.pipe(holdUntil(open)), unsub).toBe('--a-');
      expectSubscriptions(source.subscriptions).toBe(unsub);
      expectSubscriptions(open.subscriptions).toBe(unsub);
    }),
  );

  it('holds and releases rightly when the consumer closes the gate and feeds back (re-entrant)', () => {
    const source = new Subject<number>();
    const open = new BehaviorSubject(true);
    const seen: number[] = [];
    source.pipe(holdUntil(open)).subscribe((value) => {
      seen.push(value);
      if (value === 1) {
        open.next(false);
        source.next(2);
        source.next(3);
      }
    });
    source.next(1);
    expect(seen).toStrictEqual([1]);
    open.next(true);
    expect(seen).toStrictEqual([1, 3]);
  });
});
