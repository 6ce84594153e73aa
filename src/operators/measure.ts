import { asyncScheduler, defer, type MonoTypeOperatorFunction, tap } from 'rxjs';

/** How a measured stage ended. */
export type MeasuredOutcome = 'ok' | 'error' | 'cancelled';

/** Options of {@link measure}. */
export interface MeasureOptions {
  /** Called once for each subscription, when it ends, with its duration in milliseconds. Must not throw. */
  readonly record: (ms: number, outcome: MeasuredOutcome) => void;
  /** The clock, in milliseconds. Default: RxJS's `asyncScheduler`; a finer, monotonic one is better. */
  readonly now?: () => number;
}

/**
 * Measures how long a stage takes from subscription to its end, and how it ended.
 *
 * The stream itself passes unchanged. `ok` is completion, `error` an error, `cancelled` an unsubscription before
 * either. A clock that was set back counts as 0.
 *
 * ```marbles
 * source:   -a----b|
 * expected: -a----b|
 * ```
 *
 * Records 7 ms, `ok`.
 *
 * @param options where the duration goes, and the clock
 */
export function measure<T>({
  record,
  now = () => asyncScheduler.now(),
}: MeasureOptions): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      const startedAt = now();
      let outcome: MeasuredOutcome = 'cancelled';
      return source.pipe(
        tap({
          error: () => (outcome = 'error'),
          complete: () => (outcome = 'ok'),
          finalize: () => record(Math.max(0, now() - startedAt), outcome),
        }),
      );
    });
}
