import {
  asyncScheduler,
  finalize,
  from,
  ignoreElements,
  merge,
  mergeMap,
  Observable,
  type ObservableInput,
  type OperatorFunction,
  Subject,
  tap,
} from 'rxjs';

/** Options of {@link latestWins}. */
export interface LatestWinsOptions {
  /** Least time, in milliseconds, from the start of one run to the start of the next. Default 0. */
  readonly minIntervalMs?: number;
}

/**
 * Runs one inner observable at a time; of the values that arrive meanwhile the newest runs next.
 *
 * Kept: everything a run emits; the newest value while a run or the interval lasts. Dropped: values that a
 * newer one overtook before they started. Nothing is ever cancelled, and the last value always runs: completion
 * waits for it. A run starts only after the run before it has completed and been torn down. An error of the
 * source or of a run, or one thrown by `project`, passes at once, as with `mergeMap`; whoever wants to go on
 * catches inside `project`.
 *
 * ```marbles
 * source:   -a--b-c-|
 * run:       -----r|
 * expected: ------r-----r|
 * ```
 *
 * `b` is overtaken by `c`, which starts when the run of `a` ends.
 *
 * @param project what to run for a value
 * @param options pacing of the starts
 */
export function latestWins<T, R>(
  project: (value: T) => ObservableInput<R>,
  { minIntervalMs = 0 }: LatestWinsOptions = {},
): OperatorFunction<T, R> {
  return (source) =>
    new Observable((subscriber) => {
      const starts = new Subject<T>();
      let pending: { readonly value: T } | undefined;
      let running = false;
      let resting = false;
      let sourceDone = false;
      let advancing = false;

      // A loop, not recursion: runs that end synchronously and consumers that re-enter use no stack.
      const advance = (): void => {
        if (advancing) return;
        advancing = true;
        while (pending !== undefined && !running && !resting) {
          const { value } = pending;
          pending = undefined;
          running = true;
          rest();
          starts.next(value);
        }
        advancing = false;
        if (sourceDone && pending === undefined) starts.complete();
      };
      const rest = (): void => {
        if (minIntervalMs <= 0) return;
        resting = true;
        const over = (): void => {
          resting = false;
          advance();
        };
        subscriber.add(asyncScheduler.schedule(over, minIntervalMs));
      };
      const ended = (): void => {
        running = false;
        advance();
      };
      const keep = (value: T): void => {
        pending = { value };
        advance();
      };
      const finish = (): void => {
        sourceDone = true;
        advance();
      };

      merge(
        starts.pipe(mergeMap((value) => from(project(value)).pipe(finalize(ended)))),
        source.pipe(tap({ next: keep, complete: finish }), ignoreElements()),
      ).subscribe(subscriber);
    });
}
