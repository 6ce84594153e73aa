import {
  defer,
  from,
  mergeMap,
  type ObservableInput,
  type OperatorFunction,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';

/** Options of {@link handOver}. */
export interface HandOverOptions<R> {
  /** Whether this result shows that the run it comes from can take over. Pure. */
  readonly ready: (result: R) => boolean;
}

/**
 * Replaces a run by a newer one without a gap: the old run goes on until the new one has emitted a ready result.
 *
 * Like `switchMap`, but the change of runs happens at the first ready result of the newer run, just before it is
 * emitted. Kept: everything both runs emit until then. A candidate that a still newer value overtakes before it was
 * ready is cancelled; a candidate that is never ready never replaces anything. The result completes when the source
 * and the runs that are left have completed; an error of any run is the error of the result.
 *
 * ```marbles
 * source:   -a----b-----|
 * first:     --1--1--1--1
 * second:         --n--2--|
 * expected: ---1--1-n1-2--|
 * ```
 *
 * `n` is not ready, `2` is: with it the second run has taken over, and the first one is unsubscribed.
 *
 * @param project what to run for a value
 * @param options when a run can take over
 */
export function handOver<T, R>(
  project: (value: T) => ObservableInput<R>,
  { ready }: HandOverOptions<R>,
): OperatorFunction<T, R> {
  return (source) =>
    defer(() => {
      let serving: Subject<void> | undefined;
      let candidate: Subject<void> | undefined;
      const takeOver = (stop: Subject<void>): void => {
        const replaced = serving;
        serving = stop;
        candidate = undefined;
        replaced?.next();
      };
      return source.pipe(
        mergeMap((value) => {
          const stop = new Subject<void>();
          candidate?.next();
          candidate = stop;
          return from(project(value)).pipe(
            tap((result) => {
              if (candidate === stop && ready(result)) takeOver(stop);
            }),
            takeUntil(stop),
          );
        }),
      );
    });
}
