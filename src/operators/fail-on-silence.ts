import { type MonoTypeOperatorFunction, throwError, timeout } from 'rxjs';

/** Options of {@link failOnSilence}. */
export interface FailOnSilenceOptions {
  /** Longest time in milliseconds without a value, counted from the subscription and then from each value. */
  readonly afterMs: number;
  /** The error that silence becomes. */
  readonly error: () => Error;
}

/**
 * Turns silence into an error, so that a connection that died unnoticed is noticed.
 *
 * All values pass. When none arrives for `afterMs` the source is unsubscribed and the result errors. A source
 * that completes or errors in time passes so.
 *
 * ```marbles
 * source:   -a--b--------c|
 * after:        -----|
 * expected: -a--b----#
 * ```
 *
 * @param options how long, and the error
 */
export function failOnSilence<T>({
  afterMs,
  error,
}: FailOnSilenceOptions): MonoTypeOperatorFunction<T> {
  return timeout({ each: afterMs, with: () => throwError(() => error()) });
}
