import { NEVER, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { failOnSilence } from '../../../src/operators/fail-on-silence.ts';
import { marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

const silence = new Error('silence');

describe('failOnSilence', () => {
  describeOperatorContract({
    operator: () => failOnSilence({ afterMs: 20, error: () => silence }),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram',
    marbles(({ cold, expectObservable, expectSubscriptions, time }) => {
      const source = '  -a--b--------c|';
      const after = '       -----|';
      const expected = '-a--b----#';
      const source$ = cold(source);
      const result = source$.pipe(failOnSilence({ afterMs: time(after), error: () => silence }));
      expectObservable(result).toBe(expected, undefined, silence);
      expectSubscriptions(source$.subscriptions).toBe('^--------!');
    }),
  );

  it(
    'counts from the subscription before the first value',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  ------a|');
      const expected = '     ----#';
      const result = source.pipe(failOnSilence({ afterMs: 4, error: () => silence }));
      expectObservable(result).toBe(expected, {}, silence);
      expectSubscriptions(source.subscriptions).toBe('^---!');
    }),
  );

  it(
    'lets a value pass that arrives just in time',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  ---a---(bc)|');
      const expected = '     ---a---(bc)|';
      expectObservable(source.pipe(failOnSilence({ afterMs: 5, error: () => silence }))).toBe(
        expected,
      );
      expectSubscriptions(source.subscriptions).toBe('^----------!');
    }),
  );

  it(
    'passes an error thrown by the error function',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  ------a|');
      const fail = (): never => {
        throw new Error('thrown');
      };
      const result = source.pipe(failOnSilence({ afterMs: 2, error: fail }));
      expectObservable(result).toBe('--#', {}, new Error('thrown'));
      expectSubscriptions(source.subscriptions).toBe('^-!');
    }),
  );

  it(
    'stops the watch when it is unsubscribed early',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-------');
      const unsub = '        ^---!';
      const result = source.pipe(failOnSilence({ afterMs: 5, error: () => silence }));
      expectObservable(result, unsub).toBe('-a---');
      expectSubscriptions(source.subscriptions).toBe(unsub);
    }),
  );

  it('takes a value that the consumer feeds back as a sign of life (re-entrant)', () => {
    const source = new Subject<number>();
    const seen: number[] = [];
    const result = source.pipe(failOnSilence({ afterMs: 1000, error: () => silence }));
    const subscription = result.subscribe((value) => {
      seen.push(value);
      if (value < 3) source.next(value + 1);
    });
    source.next(1);
    subscription.unsubscribe();
    expect(seen).toStrictEqual([1, 2, 3]);
  });

  it(
    'fails after 90 s when told so (in real units)',
    marbles(({ expectObservable }) => {
      const result = NEVER.pipe(failOnSilence({ afterMs: 90_000, error: () => silence }));
      expectObservable(result).toBe('90s #', {}, silence);
    }),
  );
});
