import {
  ignoreElements,
  merge,
  type MonoTypeOperatorFunction,
  Observable,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';

/**
 * Lets values pass while open; while closed holds the newest one and releases it when opening.
 *
 * Closed until `open` has said `true`. Dropped: values that a newer one overtook while closed. Completion waits
 * for a held value to be released; when `open` has completed while closed, none will be, and the held value is
 * dropped. An error of the source or of `open` passes at once.
 *
 * ```marbles
 * open:     ----t-----f------t--
 * source:   -a-b---c----d-e-----f|
 * expected: ----b--c---------e--f|
 * ```
 *
 * @param open whether values may pass, from now on
 */
export function holdUntil<T>(open: Observable<boolean>): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable((subscriber) => {
      const finished = new Subject<void>();
      let isOpen = false;
      let sourceDone = false;
      let held: { readonly value: T } | undefined;

      const release = (): void => {
        if (isOpen && held !== undefined) {
          const { value } = held;
          held = undefined;
          subscriber.next(value);
        }
        if (sourceDone && held === undefined) finished.next();
      };
      const turn = (next: boolean): void => {
        isOpen = next;
        release();
      };
      const keep = (value: T): void => {
        held = { value };
        release();
      };
      const finish = (): void => {
        sourceDone = true;
        release();
      };

      merge(
        open.pipe(tap(turn), takeUntil(finished)),
        source.pipe(tap({ next: keep, complete: finish })),
      )
        .pipe(ignoreElements())
        .subscribe(subscriber);
    });
}
