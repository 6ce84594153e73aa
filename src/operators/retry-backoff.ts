import {
  asyncScheduler,
  defer,
  identity,
  type MonoTypeOperatorFunction,
  Observable,
  repeat as repeatOnComplete,
  retry,
  tap,
  timer,
} from 'rxjs';

const defaults = {
  initialMs: 500,
  maxMs: 30_000,
  factor: 2,
  jitter: 0,
  random: () => 0,
  resetAfterMs: 0,
  retryAfter: () => undefined,
  shouldRetry: () => true,
  repeat: false,
} satisfies RetryBackoffOptions;

/** One new attempt of {@link retryBackoff}, for logs and metrics. */
export interface Retry {
  /** How many attempts since the last stable time have ended; 1 for the first retry. */
  readonly attempt: number;
  /** Wait before the new attempt in milliseconds. */
  readonly delayMs: number;
  /** What ended the attempt before; `undefined` when it completed. */
  readonly error: unknown;
}

/** Options of {@link retryBackoff}. */
export interface RetryBackoffOptions {
  /** First wait in milliseconds. Default 500. */
  readonly initialMs?: number;
  /**
   * Longest wait in milliseconds, also for one the server asks; a function gives it for each error (`undefined` for a
   * completion). Default 30000.
   */
  readonly maxMs?: number | ((error: unknown) => number);
  /** By how much each wait is longer than the one before. Default 2. */
  readonly factor?: number;
  /** Share of the wait, 0 to 1, that `random` may take off. Default 0. */
  readonly jitter?: number;
  /** Source of randomness, from 0 up to 1. Default: none, so no jitter. */
  readonly random?: () => number;
  /**
   * How long, in milliseconds from its first value on, an attempt must last for the waits to start over.
   * Default 0: the first value is enough.
   */
  readonly resetAfterMs?: number;
  /** The least wait, in milliseconds, that a server asked for with its error, if any. Default: none. */
  readonly retryAfter?: (error: unknown) => number | undefined;
  /** Whether an error may pass with time; any other is passed on. Default: all may. */
  readonly shouldRetry?: (error: unknown) => boolean;
  /** Called before each wait. */
  readonly onRetry?: (retry: Retry) => void;
  /** Whether a source that completes is subscribed again too. Default false. */
  readonly repeat?: boolean;
}

/**
 * Subscribes a cold source again after an error, and with `repeat` after completion, each time after a longer wait.
 *
 * Kept: all values of all attempts. Dropped: errors that `shouldRetry` lets pass. The wait before the n-th retry is
 * `initialMs` × `factor`ⁿ⁻¹, at most `maxMs`; an attempt that was stable starts the series over. An
 * error thrown by a function argument is passed on. Not for hot sources: they lose what they emit during the wait.
 *
 * ```marbles
 * source:   -a#
 * first:    ^-!
 * second:   -----^-!
 * third:    -------------^-!
 * unsub:    ^----------------!
 * expected: -a----a-------a---
 * ```
 *
 * With `initialMs` 3 and attempts too short to be stable, the waits are 3 and 6 ms.
 *
 * @param options waits, and what is retried
 */
export function retryBackoff<T>(options: RetryBackoffOptions = {}): MonoTypeOperatorFunction<T> {
  const settings = { ...defaults, ...options };
  const { shouldRetry, retryAfter, resetAfterMs } = settings;
  const maxMs = (error: unknown): number =>
    typeof settings.maxMs === 'number' ? settings.maxMs : settings.maxMs(error);
  return (source) =>
    defer(() => {
      let attempt = 0;
      let firstValueAt: number | undefined;

      const wait = (error: unknown, leastMs: number): Observable<0> => {
        const now = asyncScheduler.now();
        if (firstValueAt !== undefined && now - firstValueAt >= resetAfterMs) attempt = 0;
        const delayMs = delay({ ...settings, maxMs: maxMs(error) }, attempt, leastMs);
        attempt += 1;
        options.onRetry?.({ attempt, delayMs, error });
        return timer(delayMs);
      };
      const afterError = (error: unknown): Observable<0> =>
        shouldRetry(error)
          ? wait(error, retryAfter(error) ?? 0)
          : new Observable<never>((failed) => failed.error(error));
      const oneAttempt = defer(() => {
        firstValueAt = undefined;
        return source.pipe(tap(() => (firstValueAt ??= asyncScheduler.now())));
      });

      return oneAttempt.pipe(
        settings.repeat ? repeatOnComplete({ delay: () => wait(undefined, 0) }) : identity,
        retry({ delay: afterError }),
      );
    });
}

type Waits = Required<Pick<RetryBackoffOptions, 'initialMs' | 'factor' | 'jitter' | 'random'>> & {
  readonly maxMs: number;
};

/** The wait in milliseconds after `attempt` attempts, at least `leastMs` but never above `maxMs`. */
function delay(waits: Waits, attempt: number, leastMs: number): number {
  const { initialMs, maxMs, factor, jitter, random } = waits;
  const backoffMs = Math.min(maxMs, initialMs * factor ** attempt) * (1 - jitter * random());
  return Math.min(maxMs, Math.max(leastMs, backoffMs));
}
