import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { shareLatest } from '../../../src/operators/share-latest.ts';
import { marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

describe('shareLatest', () => {
  describeOperatorContract({
    operator: () => shareLatest(),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: false,
  });

  it(
    'matches its diagram',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = '  -a--b--c--';
      const early = '   ^--------!';
      const late = '    -----^---!';
      const expected = '-a--b--c--';
      const replayed = '-----b-c--';
      const source$ = cold(source);
      const shared = source$.pipe(shareLatest());
      expectObservable(shared, early).toBe(expected);
      expectObservable(shared, late).toBe(replayed);
      expectSubscriptions(source$.subscriptions).toBe('^--------!');
    }),
  );

  it(
    'gives a late subscriber nothing before the first value',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('    ----a---|');
      const early = '          ^--------';
      const late = '           --^------';
      const shared = source.pipe(shareLatest());
      expectObservable(shared, early).toBe('----a---|');
      expectObservable(shared, late).toBe(' ----a---|');
      expectSubscriptions(source.subscriptions).toBe('^-------!');
    }),
  );

  it(
    'unsubscribes with the last subscriber and remembers nothing',
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('     -a---b---c--');
      const first = '          ^--!        ';
      const second = '         ------^---! ';
      const shared = source.pipe(shareLatest());
      expectObservable(shared, first).toBe('  -a--');
      expectObservable(shared, second).toBe(' ---------c--');
      expectSubscriptions(source.subscriptions).toBe([first, second]);
    }),
  );

  it(
    'keeps the source while one of two subscribers is left',
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('     -a---b---c--');
      const first = '          ^--!        ';
      const second = '         -^-----!    ';
      const shared = source.pipe(shareLatest());
      expectObservable(shared, first).toBe('  -a--');
      expectObservable(shared, second).toBe(' -a---b--');
      expectSubscriptions(source.subscriptions).toBe('^------!');
    }),
  );

  it(
    'errors all subscribers, and starts afresh for the next',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('    -a-#');
      const late = '           -----^---';
      const shared = source.pipe(shareLatest());
      expectObservable(shared).toBe('        -a-#');
      expectObservable(shared).toBe('        -a-#');
      expectObservable(shared, late).toBe('  ------a-#');
      expectSubscriptions(source.subscriptions).toBe(['^--!', '-----^--!']);
    }),
  );

  it(
    'starts afresh after completion',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('    -a-|');
      const late = '           -----^---';
      const shared = source.pipe(shareLatest());
      expectObservable(shared).toBe('        -a-|');
      expectObservable(shared, late).toBe('  ------a-|');
      expectSubscriptions(source.subscriptions).toBe(['^--!', '-----^--!']);
    }),
  );

  it(
    'replays the last of a synchronous burst only',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('    -(abc)---|');
      const late = '           --^';
      const shared = source.pipe(shareLatest());
      expectObservable(shared).toBe('        -(abc)---|');
      expectObservable(shared, late).toBe('  --c------|');
      expectSubscriptions(source.subscriptions).toBe('^--------!');
    }),
  );

  it('gives a subscriber that comes while a value is emitted that value once (re-entrant)', () => {
    const source = new Subject<number>();
    const shared = source.pipe(shareLatest());
    const inner: number[] = [];
    shared.subscribe((value) => {
      if (value === 1) shared.subscribe((late) => inner.push(late));
    });
    source.next(1);
    source.next(2);
    expect(inner).toStrictEqual([1, 2]);
  });
});
