import {
  asyncScheduler,
  finalize,
  from,
  ignoreElements,
  merge,
  Observable,
  type ObservableInput,
  type OperatorFunction,
  Subject,
  type Subscription,
  switchMap,
  tap,
} from 'rxjs';

/** Options of {@link switchMapWithin}. */
export interface SwitchMapWithinOptions {
  /** How old, in milliseconds, the oldest value that no completed run contains may get before cancelling stops. */
  readonly maxWaitMs: number;
}

/** The wait of values that no completed run contains, counted from the oldest of them. */
interface Wait {
  late: boolean;
  readonly timer: Subscription;
}

/**
 * `switchMap` that cancels no more once the oldest value waiting for a result is `maxWaitMs` old.
 *
 * A value is a full state: a run contains its own value and every one before it. Cancelled: the current run when
 * a newer value arrives in time. Kept: past the maximum wait the current run goes on until it completes, and of
 * the values that arrive meanwhile the newest runs next, its wait counted from the oldest of them. So under
 * constant change a run still completes, at the latest one run's time after the maximum wait. A run that emits
 * without completing has not completed. Completion of the source waits for the newest value's run. Errors pass
 * at once.
 *
 * ```marbles
 * source:   -a--b--c--de-------|
 * maxWait:   --------|
 * run:             -----(r|)
 * expected: ------------r----r-|
 * ```
 *
 * `b` and `c` cancel the run before them; `d` comes when `a` has waited too long, is held, and is then
 * overtaken by `e`.
 *
 * @param project what to run for a value; it must be free of effects, since it is cancelled
 * @param options the maximum wait
 */
export function switchMapWithin<T, R>(
  project: (value: T) => ObservableInput<R>,
  { maxWaitMs }: SwitchMapWithinOptions,
): OperatorFunction<T, R> {
  return (source) =>
    new Observable((subscriber) => {
      const starts = new Subject<T>();
      let pending: { readonly value: T } | undefined;
      let running = false;
      let current: Wait | undefined;
      let next: Wait | undefined;
      let sourceDone = false;
      let advancing = false;

      const wait = (): Wait => {
        const waiting = {
          late: false,
          timer: asyncScheduler.schedule(() => (waiting.late = true), maxWaitMs),
        };
        subscriber.add(waiting.timer);
        return waiting;
      };
      const isHeld = (): boolean => running && current?.late === true;
      // A loop, because switchMap itself leaks a run when it is re-entered while it starts one.
      const advance = (): void => {
        if (advancing) return;
        advancing = true;
        while (pending !== undefined && !isHeld()) {
          const { value } = pending;
          pending = undefined;
          running = true;
          current ??= wait();
          starts.next(value);
        }
        advancing = false;
        if (sourceDone && pending === undefined) starts.complete();
      };
      const completed = (): void => {
        current?.timer.unsubscribe();
        current = next;
        next = undefined;
        running = false;
        advance();
      };
      const run = (value: T): Observable<R> => {
        let isComplete = false;
        return from(project(value)).pipe(
          tap({ complete: () => (isComplete = true) }),
          finalize(() => {
            if (isComplete) completed();
          }),
        );
      };
      const keep = (value: T): void => {
        pending = { value };
        if (isHeld()) next ??= wait();
        advance();
      };
      const finish = (): void => {
        sourceDone = true;
        advance();
      };

      merge(
        starts.pipe(switchMap(run)),
        source.pipe(tap({ next: keep, complete: finish }), ignoreElements()),
      ).subscribe(subscriber);
    });
}
