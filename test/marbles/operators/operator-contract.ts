import {
  asyncScheduler,
  concat,
  defer,
  from,
  materialize,
  mergeMap,
  type Observable,
  of,
  type OperatorFunction,
  Subject,
  take,
  timer,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { marbles } from '../../support/marbles.ts';

/** What an operator under contract is like. */
export interface OperatorContract {
  /** Makes a new instance of the operator; values are single letters. */
  readonly operator: () => OperatorFunction<string, unknown>;
  /** Whether a source error becomes the error of the result at once. */
  readonly passesErrors: boolean;
  /** Whether values can come out while the source emits synchronously. */
  readonly emitsSynchronously: boolean;
  /** Whether each subscriber has a subscription of the source of its own. */
  readonly isUnicast: boolean;
}

interface Recorded {
  readonly frame: number;
  readonly kind: string;
  readonly value: unknown;
}

/** What `source` emits and when, counted in frames from its subscription. Complete once time has passed. */
function record(source: Observable<unknown>): Recorded[] {
  const log: Recorded[] = [];
  let start = 0;
  defer(() => {
    start = asyncScheduler.now();
    return source.pipe(materialize());
  }).subscribe((event) => {
    const value = 'value' in event ? event.value : undefined;
    log.push({ frame: asyncScheduler.now() - start, kind: event.kind, value });
  });
  return log;
}

/** How many timers of Node are running. */
export const activeTimers = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** The cases that every operator has in common, each for values and for subscriptions. */
export function describeOperatorContract(contract: OperatorContract): void {
  const { operator } = contract;

  describe('as any operator', () => {
    it('subscribes nothing when it is applied', () => {
      let subscriptions = 0;
      const source = defer(() => of(`${++subscriptions}`));
      const result = source.pipe(operator());
      expect(result).toBeDefined();
      expect(subscriptions).toBe(0);
    });

    it(
      'never emits for a source that never does',
      marbles(({ cold, expectObservable, expectSubscriptions }) => {
        const source = cold('-');
        expectObservable(source.pipe(operator()), '  ^---!').toBe('-');
        expectSubscriptions(source.subscriptions).toBe('^---!');
      }),
    );

    it(
      'completes with an empty source',
      marbles(({ cold, expectObservable, expectSubscriptions }) => {
        const source = cold('                --|');
        expectObservable(source.pipe(operator())).toBe('--|');
        expectSubscriptions(source.subscriptions).toBe('^-!');
      }),
    );

    if (contract.passesErrors)
      it(
        'passes an error of the source at once',
        marbles(({ cold, expectObservable, expectSubscriptions }) => {
          const source = cold('                --#');
          expectObservable(source.pipe(operator())).toBe('--#');
          expectSubscriptions(source.subscriptions).toBe('^-!');
        }),
      );

    if (contract.passesErrors)
      it(
        'passes an error that follows values, and nothing after it',
        marbles(({ cold, expectSubscriptions, flush }) => {
          const source = cold('                   -a-(ab#)');
          const log = record(source.pipe(operator()));
          expectSubscriptions(source.subscriptions).toBe('^--!    ');
          flush();
          expect(log.at(-1)).toMatchObject({ frame: 3, kind: 'E' });
        }),
      );

    it(
      'unsubscribes the source when it is unsubscribed, also inside a chain',
      marbles(({ cold, expectSubscriptions, flush }) => {
        const source = cold('                   -a-b-c-d-e-f');
        const chained = source.pipe(
          mergeMap((value) => of(value)),
          operator(),
          mergeMap((value) => of(value)),
        );
        const subscription = chained.subscribe();
        timer(6).subscribe(() => subscription.unsubscribe());
        expectSubscriptions(source.subscriptions).toBe('^-----!     ');
        flush();
        expect(subscription.closed).toBe(true);
      }),
    );

    if (contract.emitsSynchronously)
      it('stops a synchronous endless source by take', () => {
        let produced = 0;
        const endless = function* (): Generator<string> {
          for (;;) {
            if (++produced > 100) throw new Error('not stopped');
            yield 'abc'.charAt(produced % 3);
          }
        };
        const seen: unknown[] = [];
        from(endless())
          .pipe(operator(), take(3))
          .subscribe((value) => seen.push(value));
        expect(seen).toHaveLength(3);
        expect(produced).toBe(3);
      });

    it('leaves no timer and no subscription behind', () => {
      const source = new Subject<string>();
      const before = activeTimers();
      for (let round = 0; round < 100; round++) {
        const subscription = source.pipe(operator()).subscribe();
        for (const value of 'abcb') source.next(value);
        subscription.unsubscribe();
      }
      expect(activeTimers() - before).toBe(0);
      expect(source.observed).toBe(false);
    });

    if (contract.isUnicast)
      it(
        'keeps the state of two subscribers apart',
        marbles(({ cold, flush }) => {
          const source = cold('-a-(bc)--a-b-|');
          const result = source.pipe(operator());
          const alone = record(result);
          flush();
          const first = record(result);
          const second = record(result);
          const late: Recorded[][] = [];
          timer(4).subscribe(() => late.push(record(result)));
          flush();
          expect(alone.at(-1)).toMatchObject({ kind: 'C' });
          expect([first, second, ...late]).toStrictEqual([alone, alone, alone]);
        }),
      );

    it(
      'starts afresh when it is subscribed again after completion',
      marbles(({ cold, flush }) => {
        const source = cold('-a-(bc)--a-b-|');
        const result = source.pipe(operator());
        const once = record(result);
        flush();
        const twice = record(concat(result, result));
        flush();
        const end = once.at(-1)!;
        const values = once.slice(0, -1);
        const again = once.map((event) => ({ ...event, frame: event.frame + end.frame }));
        expect(end).toMatchObject({ kind: 'C' });
        expect(values).not.toStrictEqual([]);
        expect(twice).toStrictEqual([...values, ...again]);
      }),
    );
  });
}
