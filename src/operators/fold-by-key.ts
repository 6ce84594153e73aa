import {
  asyncScheduler,
  ignoreElements,
  Observable,
  type OperatorFunction,
  type Subscription,
  tap,
} from 'rxjs';

/** Options of {@link foldByKey}. */
export interface FoldByKeyOptions<T> {
  /**
   * How long, in milliseconds, no change may arrive before the window ends. 0 coalesces within one turn of the
   * event loop: the window ends in the next timer phase, about a millisecond later, and no change prolongs it.
   */
  readonly quietMs: number;
  /** How long, in milliseconds, a window may last in all. Default: ten times `quietMs`, at least 1000. */
  readonly maxWaitMs?: number;
  /**
   * What is left of two changes of one key; `undefined` forgets the key, because the two cancel out.
   * Default: the newer one.
   */
  readonly merge?: (pending: T, next: T) => T | undefined;
  /** Whether a change supersedes everything pending, whatever its key. Default: none does. */
  readonly clears?: (value: T) => boolean;
  /** Number of pending keys that ends the window at once, so that memory is bounded. Default: no limit. */
  readonly limit?: number;
}

/**
 * Debounces and loses nothing: collects changes per key and emits one map for each window.
 *
 * Kept: for each key what `merge` makes of its changes, in the order in which the keys first arrived in the
 * window. Dropped: keys whose changes cancel out; a window in which all did emits nothing. A window opens with
 * its first change and ends after `quietMs` without a change, `maxWaitMs` after it opened, or when the source
 * completes. An error of the source, or one thrown by a function argument, passes at once and drops what is
 * pending.
 *
 * ```marbles
 * source:   -a-b-A-------c--|
 * quiet:         ----|
 * expected: ---------x------(y|)
 * ```
 *
 * `x` holds `A` (newer than `a`), then `b`; `y` holds `c`.
 *
 * @param key which entry of the map a change belongs to
 * @param options windows, and how changes of one key are folded
 */
export function foldByKey<T, K>(
  key: (value: T) => K,
  options: FoldByKeyOptions<T>,
): OperatorFunction<T, ReadonlyMap<K, T>> {
  const add = adder(key, options);
  const { quietMs, maxWaitMs = Math.max(10 * quietMs, 1000), limit = Infinity } = options;
  return (source) =>
    new Observable((subscriber) => {
      let pending = new Map<K, T>();
      let quiet: Subscription | undefined;
      let longest: Subscription | undefined;

      const flush = (): void => {
        quiet?.unsubscribe();
        longest?.unsubscribe();
        quiet = longest = undefined;
        const folded = pending;
        pending = new Map();
        if (folded.size > 0) subscriber.next(folded);
      };
      const wait = (ms: number): Subscription => {
        const running = asyncScheduler.schedule(flush, ms);
        subscriber.add(running);
        return running;
      };
      const fold = (value: T): void => {
        add(pending, value);
        if (pending.size >= limit) {
          flush();
        } else if (quietMs === 0) {
          quiet ??= wait(0);
        } else {
          quiet?.unsubscribe();
          quiet = wait(quietMs);
          longest ??= wait(maxWaitMs);
        }
      };

      source.pipe(tap({ next: fold, complete: flush }), ignoreElements()).subscribe(subscriber);
    });
}

/** How a change enters the pending ones. */
function adder<T, K>(
  keyOf: (value: T) => K,
  { merge, clears }: FoldByKeyOptions<T>,
): (pending: Map<K, T>, value: T) => void {
  return (pending, value) => {
    const key = keyOf(value);
    if (clears?.(value) === true) pending.clear();
    if (merge === undefined || !pending.has(key)) {
      pending.set(key, value);
      return;
    }
    const folded = merge(pending.get(key) as T, value);
    if (folded === undefined) pending.delete(key);
    else pending.set(key, folded);
  };
}
