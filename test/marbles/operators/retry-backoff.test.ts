import { defer, of, Subject, take, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  type Retry,
  retryBackoff,
  type RetryBackoffOptions,
} from '../../../src/operators/retry-backoff.ts';
import { inVirtualTime, marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

/** The waits that a source which always fails at once gets, in order. */
function waitsOf(options: RetryBackoffOptions, count: number): number[] {
  return inVirtualTime(({ flush }) => {
    const waits: number[] = [];
    let left = count;
    defer(() => throwError(() => new Error('down')))
      .pipe(
        retryBackoff({
          ...options,
          shouldRetry: () => left-- > 0,
          onRetry: ({ delayMs }) => waits.push(delayMs),
        }),
      )
      .subscribe({ error: () => undefined });
    flush();
    return waits;
  });
}

describe('retryBackoff', () => {
  describeOperatorContract({
    operator: () => retryBackoff({ shouldRetry: () => false }),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = '  -a#';
      const first = '   ^-!';
      const second = '  -----^-!';
      const third = '   -------------^-!';
      const unsub = '   ^----------------!';
      const expected = '-a----a-------a---';
      const source$ = cold(source);
      const retried = source$.pipe(retryBackoff({ initialMs: 3, resetAfterMs: 2 }));
      expectObservable(retried, unsub).toBe(expected);
      expectSubscriptions(source$.subscriptions).toBe([first, second, third]);
    }),
  );

  it(
    'starts the waits over after an attempt that gave a value, by default',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-#');
      const unsub = '        ^----------------!';
      const subs = ['        ^--!', '-----^--!', '----------^--!', '---------------^-!'];
      const expected = '     -a----a----a----a-';
      expectObservable(source.pipe(retryBackoff({ initialMs: 2 })), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subs);
    }),
  );

  it(
    'starts the waits over only after an attempt that lasted from its first value on',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const attempts = ['---#', '-a-#', '--a---a#', '-|'].map((it) => cold(it));
      let attempt = 0;
      const source = defer(() => attempts[attempt++]!);
      // The waits are 1, 2 and, after the attempt that was stable for 5 ms, 1 again.
      const expected = '-----a-----a---a--|';
      expectObservable(source.pipe(retryBackoff({ initialMs: 1, resetAfterMs: 5 }))).toBe(expected);
      expectSubscriptions(attempts[3]!.subscriptions).toBe('-----------------^!');
    }),
  );

  it(
    'passes an error that no retry can help, at once',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a#', {}, 'fatal');
      const expected = '     -a#';
      const shouldRetry = (error: unknown) => error !== 'fatal';
      const result = source.pipe(retryBackoff({ shouldRetry }));
      expectObservable(result).toBe(expected, {}, 'fatal');
      expectSubscriptions(source.subscriptions).toBe('^-!');
    }),
  );

  it(
    'completes with the source unless it repeats',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a|');
      const unsub = '        ^-------!';
      const expected = '     -a----a--';
      expectObservable(source.pipe(retryBackoff())).toBe('-a|');
      expectObservable(source.pipe(retryBackoff({ initialMs: 3, repeat: true })), unsub).toBe(
        expected,
      );
      expectSubscriptions(source.subscriptions).toBe(['^-!', '^-!', '-----^-!']);
    }),
  );

  it(
    'backs off from a source that always closes at once without a value',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  |');
      const unsub = '        ^-------!';
      const subs = ['        (^!)', '-(^!)', '---(^!)', '-------(^!)'];
      const retried = source.pipe(retryBackoff({ initialMs: 1, repeat: true }));
      expectObservable(retried, unsub).toBe('-');
      expectSubscriptions(source.subscriptions).toBe(subs);
    }),
  );

  it(
    'ends during a wait when it is unsubscribed',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -#');
      const unsub = '        ^---!';
      expectObservable(source.pipe(retryBackoff({ initialMs: 9 })), unsub).toBe('-----');
      expectSubscriptions(source.subscriptions).toBe('^!');
    }),
  );

  it.each(['shouldRetry', 'retryAfter', 'maxMs', 'onRetry', 'random'] as const)(
    'passes an error thrown by %s',
    (culprit) => {
      inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
        const source = cold('-#');
        const fail = (): never => {
          throw new Error(culprit);
        };
        const result = source.pipe(retryBackoff({ [culprit]: fail }));
        expectObservable(result).toBe('-#', {}, new Error(culprit));
        expectSubscriptions(source.subscriptions).toBe('^!');
      });
    },
  );

  it('doubles the wait up to the longest', () => {
    expect(waitsOf({ initialMs: 100, maxMs: 700 }, 5)).toStrictEqual([100, 200, 400, 700, 700]);
    expect(waitsOf({ initialMs: 1, factor: 10, maxMs: 5000 }, 5)).toStrictEqual([
      1, 10, 100, 1000, 5000,
    ]);
  });

  it('waits at the longest however often it has tried', () => {
    expect(waitsOf({ initialMs: 1, maxMs: 2 }, 2000).at(-1)).toBe(2);
  });

  it('takes the longest wait of each error, and goes on doubling below it', () => {
    const longest = [1, 1, 1, 1, 900, 3];
    expect(waitsOf({ initialMs: 100, maxMs: () => longest.shift()! }, 6)).toStrictEqual([
      1, 1, 1, 1, 900, 3,
    ]);
  });

  it('takes off a random share of the wait', () => {
    const rolls = [0, 0.5, 0.25];
    const random = () => rolls.shift()!;
    expect(waitsOf({ initialMs: 1000, factor: 1, jitter: 0.5, random }, 3)).toStrictEqual([
      1000, 750, 875,
    ]);
  });

  it('takes the share off the longest wait too, so that many clients do not come back at once', () => {
    const options = { initialMs: 1000, maxMs: 1000, jitter: 0.5, random: () => 0.5 };
    expect(waitsOf(options, 3)).toStrictEqual([750, 750, 750]);
  });

  it('waits as long as the server asks, never less than its own wait and never above the longest', () => {
    const asked = [1000, 10, undefined, 99_999];
    const retryAfter = () => asked.shift();
    expect(waitsOf({ initialMs: 100, maxMs: 5000, retryAfter }, 4)).toStrictEqual([
      1000, 200, 400, 5000,
    ]);
  });

  it('tells of each retry what it waits for', () => {
    inVirtualTime(({ cold, flush }) => {
      const retries: Retry[] = [];
      const error = new Error('down');
      const failing = [cold('#', {}, error), cold('|'), cold('-a')];
      defer(() => failing.shift()!)
        .pipe(retryBackoff({ repeat: true, onRetry: (retry) => retries.push(retry) }), take(1))
        .subscribe();
      flush();
      expect(retries).toStrictEqual([
        { attempt: 1, delayMs: 500, error },
        { attempt: 2, delayMs: 1000, error: undefined },
      ]);
    });
  });

  it('lets a consumer that re-enters see every value once', () => {
    const source = new Subject<number>();
    const seen: number[] = [];
    source.pipe(retryBackoff()).subscribe((value) => {
      if (value < 3) source.next(value + 1);
      seen.push(value);
    });
    source.next(1);
    expect(seen.sort()).toStrictEqual([1, 2, 3]);
  });

  it(
    'waits 0.5 s, then twice as long each time, up to 30 s by default',
    marbles(({ cold, expectObservable }) => {
      const source = cold('#');
      const unsub = '^ 2m !';
      expectObservable(source.pipe(retryBackoff()), unsub).toBe('-');
      expectObservable(of(waitsOf({}, 8))).toBe('(a|)', {
        a: [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000],
      });
    }),
  );
});
