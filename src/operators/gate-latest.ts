import {
  asyncScheduler,
  concat,
  defer,
  EMPTY,
  endWith,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  type OperatorFunction,
  Subject,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { latestWins } from './latest-wins.ts';

/** Options of {@link gateLatest}. */
export interface GateLatestOptions<T, R> {
  /** The check of one value. It ends when it completes, and unsubscribing must cancel it. */
  readonly check: (value: T) => Observable<R>;
  /** Pause after a check, in times of how long it took. Default 1: checks use half of the time at most. */
  readonly idleRatio?: number;
  /** Longest pause in milliseconds, so that a jump of the clock cannot stop the checks. Default 60000. */
  readonly maxIdleMs?: number;
  /** Whether no pause is due; asked when a check ends and when a value arrives in a pause. Default: never. */
  readonly urgent?: () => boolean;
  /** The clock, in milliseconds. Default: RxJS's `asyncScheduler`; a monotonic one is better. */
  readonly now?: () => number;
}

/** What a check said, with the value that was checked. */
export interface Checked<T, R> {
  readonly value: T;
  readonly result: R;
}

/**
 * Checks the newest wanted value, one check at a time, and leaves the machine some rest between two checks.
 *
 * The source says which value is wanted checked now, `undefined` meaning none. Kept: the newest wanted value, until
 * the slot is free; the running check, whatever arrives meanwhile, so constant change never starves the gate.
 * Dropped: wanted values that a newer one, or `undefined`, overtook before their check started. To check a value
 * again, emit it again. Completion waits for the last wanted value and skips the pause. An error of the source or
 * of a check, or one thrown by a function argument, passes at once; unsubscribing cancels the running check.
 *
 * ```marbles
 * source:   -a-b-c------------d-|
 * check:     ---r|
 * expected: ----A-------C--------D|
 * ```
 *
 * The check of `a` takes 4 ms and is followed by a pause of 4 ms; `b` is overtaken by `c`.
 *
 * @param options the check and its pacing
 */
export function gateLatest<T, R>({
  check,
  idleRatio = 1,
  maxIdleMs = 60_000,
  urgent = () => false,
  now = () => asyncScheduler.now(),
}: GateLatestOptions<T, R>): OperatorFunction<T | undefined, Checked<T, R>> {
  return (source) =>
    defer(() => {
      const wanted = new Subject<T | undefined>();
      const pauseAfter = (tookMs: number): Observable<never> => {
        const ms = Math.min(Math.max(0, tookMs * idleRatio), maxIdleMs);
        if (urgent() || ms === 0) return EMPTY;
        const cut = merge(
          wanted.pipe(filter(() => urgent())),
          wanted.pipe(ignoreElements(), endWith(0)),
        );
        return timer(ms).pipe(ignoreElements(), takeUntil(cut));
      };
      const checkThenPause = (value: T): Observable<Checked<T, R>> =>
        defer(() => {
          const startedAt = now();
          return concat(
            check(value).pipe(map((result) => ({ value, result }))),
            defer(() => pauseAfter(now() - startedAt)),
          );
        });
      const checks = wanted.pipe(
        latestWins((value) => (value === undefined ? EMPTY : checkThenPause(value))),
      );
      // Not `tap(wanted)`: tap would take the subject's own `subscribe` for a callback.
      const relay = {
        next: (value: T | undefined) => wanted.next(value),
        complete: () => wanted.complete(),
      };
      return merge(checks, source.pipe(tap(relay), ignoreElements()));
    });
}
