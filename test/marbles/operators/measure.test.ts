import { Subject, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { measure } from '../../../src/operators/measure.ts';
import { inVirtualTime, marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

type Record = readonly [ms: number, outcome: string];

/** A recorder and what it has recorded. */
const recorder = () => {
  const records: Record[] = [];
  return { records, record: (...entry: Record) => void records.push(entry) };
};

describe('measure', () => {
  describeOperatorContract({
    operator: () => measure({ record: () => undefined }),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram',
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const source = '  -a----b|';
      const expected = '-a----b|';
      const { records, record } = recorder();
      const source$ = cold(source);
      expectObservable(source$.pipe(measure({ record }))).toBe(expected);
      expectSubscriptions(source$.subscriptions).toBe('^------!');
      flush();
      expect(records).toStrictEqual([[7, 'ok']]);
    }),
  );

  it(
    'records an error and passes it',
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const source = cold('  -a--#');
      const expected = '     -a--#';
      const { records, record } = recorder();
      expectObservable(source.pipe(measure({ record }))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^---!');
      flush();
      expect(records).toStrictEqual([[4, 'error']]);
    }),
  );

  it(
    'records an unsubscription as cancelled',
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const source = cold('  -a------b|');
      const unsub = '        ^----!    ';
      const { records, record } = recorder();
      expectObservable(source.pipe(measure({ record })), unsub).toBe('-a----');
      expectSubscriptions(source.subscriptions).toBe(unsub);
      flush();
      expect(records).toStrictEqual([[5, 'cancelled']]);
    }),
  );

  it(
    'measures each subscription from its own start',
    marbles(({ cold, expectObservable, flush }) => {
      const source = cold('  ---|');
      const late = '         --^---';
      const { records, record } = recorder();
      const measured = source.pipe(measure({ record }));
      expectObservable(measured).toBe('      ---|');
      expectObservable(measured, late).toBe('-----|');
      flush();
      expect(records).toStrictEqual([
        [3, 'ok'],
        [3, 'ok'],
      ]);
    }),
  );

  it('takes another clock, and never records less than nothing', () => {
    inVirtualTime(({ cold, flush }) => {
      const { records, record } = recorder();
      const readings = [10.5, 12.75, 100, 50];
      const source = cold('-|');
      const measured = source.pipe(measure({ record, now: () => readings.shift()! }));
      measured.subscribe();
      flush();
      measured.subscribe();
      flush();
      expect(records).toStrictEqual([
        [2.25, 'ok'],
        [0, 'ok'],
      ]);
    });
  });

  it('records once when the consumer feeds back and leaves (re-entrant)', () => {
    const { records, record } = recorder();
    const source = new Subject<number>();
    const seen: number[] = [];
    source.pipe(measure({ record, now: () => 0 }), take(2)).subscribe((value) => {
      seen.push(value);
      if (value === 1) source.next(2);
    });
    source.next(1);
    expect(seen).toStrictEqual([1, 2]);
    expect(records).toStrictEqual([[0, 'cancelled']]);
  });

  it(
    'measures in milliseconds (in real units)',
    marbles(({ cold, flush }) => {
      const { records, record } = recorder();
      cold('1500ms |').pipe(measure({ record })).subscribe();
      flush();
      expect(records).toStrictEqual([[1500, 'ok']]);
    }),
  );
});
