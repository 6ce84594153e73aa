import { asyncScheduler, ignoreElements, Observable, type OperatorFunction, tap } from 'rxjs';

/**
 * What it takes to get from the last emitted value to the next: `none` nothing, they are equal; `now` nothing that
 * needs a reload; `later` only what needs one; `both` a mixture.
 */
export type Pace = 'now' | 'later' | 'both' | 'none';

/** Options of {@link schedule}. */
export interface ScheduleOptions<T> {
  /** Least time, in milliseconds, between two reloads; a function is asked for each value, the newest rules. */
  readonly intervalMs: number | ((value: T) => number);
  /** Compares the last emitted value (`undefined` before the first) with the next one. Pure. */
  readonly classify: (last: T | undefined, next: T) => Pace;
  /** The clock, in milliseconds. Default: RxJS's `asyncScheduler`; a monotonic one is better. */
  readonly now?: () => number;
}

/** A value on its way, with the time in milliseconds from now before which it may cause no reload. */
export interface Scheduled<T> {
  readonly value: T;
  readonly notBeforeMs: number;
}

/**
 * Spaces what needs a reload, and only that: each value is a full state, and the newest one always wins.
 *
 * Every value is classified against the last *emitted* one. One value can wait, in the slot; whatever is
 * classified after it takes its place, since it is the newer full state.
 *
 * | class   | no reload within `intervalMs`      | within the interval after one      | one is still ahead |
 * | ------- | --------------------------------- | ---------------------------------- | ------------------ |
 * | `now`   | goes at once                      | goes at once                       | goes, joins it     |
 * | `later` | goes at once, starts an interval  | waits in the slot for its end      | goes, joins it     |
 * | `both`  | goes at once, starts an interval  | goes at once, its reload at the end | goes, joins it    |
 * | `none`  | –                                 | –                                  | –                  |
 *
 * Everything that goes empties the slot, and so does `none`: what waited was taken back. `notBeforeMs` is the time
 * until the reload ahead, 0 when there is none. So reloads are at least `intervalMs` apart, the first change after
 * a quiet time goes at once, and the last state always goes: when the source completes, what waits goes at
 * once with the rest of its interval as `notBeforeMs`. An error of the source or of `classify` passes at once and drops
 * what waits.
 *
 * ```marbles
 * source:   -a-b-----n-m---|
 * interval:  ------|
 * expected: -a-----b-n-M---|
 * ```
 *
 * `a` and `b` need a reload, so `b` waits until the interval of `a` is over. `n` needs none. The mixture `m` goes as
 * `M`, with `notBeforeMs` 2: the rest of the interval of `b`.
 *
 * @param options interval and classification
 */
export function schedule<T>({
  intervalMs,
  classify,
  now = () => asyncScheduler.now(),
}: ScheduleOptions<T>): OperatorFunction<T, Scheduled<T>> {
  return (source) =>
    new Observable((subscriber) => {
      let last: T | undefined;
      let slot: { readonly value: T; readonly release: () => void } | undefined;
      /** When the last reload was or the next one is due. */
      let reloadAt = -Infinity;
      let interval = 0;

      /** Time until the reload ahead, or until the next may follow the last one. */
      const untilReload = (): number => reloadAt - now();
      const untilFree = (): number => untilReload() + interval;
      const emptySlot = (): void => {
        slot?.release();
        slot = undefined;
      };
      const go = (value: T): void => {
        emptySlot();
        last = value;
        subscriber.next({ value, notBeforeMs: Math.max(0, untilReload()) });
      };
      const goWithReload = (value: T): void => {
        // A reload that is still ahead loads the newest files, so it is joined rather than followed by another.
        if (untilReload() <= 0) reloadAt = now() + Math.max(0, untilFree());
        go(value);
      };
      const occupySlot = (value: T): void => {
        emptySlot();
        const due = asyncScheduler.schedule(() => {
          reloadAt = now();
          go(value);
        }, untilFree());
        subscriber.add(due);
        slot = { value, release: () => due.unsubscribe() };
      };
      const later = (value: T): void => {
        if (untilReload() > 0 || untilFree() <= 0) goWithReload(value);
        else occupySlot(value);
      };
      const place = (value: T): void => {
        interval = typeof intervalMs === 'number' ? intervalMs : intervalMs(value);
        // Only a clock that was set back puts the next reload further away than one interval.
        if (untilReload() > interval) reloadAt = now();
        const pace = classify(last, value);
        if (pace === 'now') go(value);
        else if (pace === 'both') goWithReload(value);
        else if (pace === 'later') later(value);
        else emptySlot();
      };
      const finish = (): void => {
        if (slot !== undefined) goWithReload(slot.value);
      };

      source.pipe(tap({ next: place, complete: finish }), ignoreElements()).subscribe(subscriber);
    });
}
