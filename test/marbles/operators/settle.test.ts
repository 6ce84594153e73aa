import { Subject } from 'rxjs';
import { mergeMap, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { settle } from '../../../src/operators/settle.ts';
import { marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

const settled = {
  a: { ok: true, value: 'a' },
  b: { ok: true, value: 'b' },
  f: { ok: false, failure: 'failed: error' },
} as const;

const failure = (error: unknown): string => `failed: ${String(error)}`;

describe('settle', () => {
  describeOperatorContract({
    operator: () => settle(failure),
    passesErrors: false,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = '  -a--b--#';
      const expected = '-a--b--(f|)';
      const source$ = cold(source);
      expectObservable(source$.pipe(settle(failure))).toBe(expected, settled);
      expectSubscriptions(source$.subscriptions).toBe('^------!');
    }),
  );

  it(
    'turns an immediate error into a failure',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  #');
      expectObservable(source.pipe(settle(failure))).toBe('(f|)', settled);
      expectSubscriptions(source.subscriptions).toBe('(^!)');
    }),
  );

  it(
    'keeps the stream around a failing inner stream alive',
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const outer = hot('    -x--x---|');
      const inner = cold('    -a#');
      const innerSubs = ['   -^-!', '----^-!'];
      const expected = '     --af-af-|';
      const result = outer.pipe(mergeMap(() => inner.pipe(settle(failure))));
      expectObservable(result).toBe(expected, settled);
      expectSubscriptions(inner.subscriptions).toBe(innerSubs);
    }),
  );

  it(
    'passes an error thrown by toFailure',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a#');
      const fail = (): never => {
        throw new Error('toFailure');
      };
      expectObservable(source.pipe(settle(fail))).toBe('-a#', settled, new Error('toFailure'));
      expectSubscriptions(source.subscriptions).toBe('  ^-!');
    }),
  );

  it(
    'does not catch what fails downstream',
    marbles(({ cold, expectObservable }) => {
      const source = cold('-a-b|');
      const result = source.pipe(
        settle(failure),
        mergeMap(() => {
          throw new Error('downstream');
        }),
      );
      expectObservable(result).toBe('-#', {}, new Error('downstream'));
    }),
  );

  it('passes values that the consumer feeds back (re-entrant), and unsubscribes early', () => {
    const source = new Subject<number>();
    const seen: unknown[] = [];
    source.pipe(settle(failure), take(3)).subscribe((result) => {
      seen.push(result.ok && result.value);
      if (seen.length < 3) source.next(seen.length);
    });
    source.next(0);
    expect(seen).toStrictEqual([0, 1, 2]);
    expect(source.observed).toBe(false);
  });
});
