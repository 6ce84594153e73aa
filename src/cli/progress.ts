import {
  connect,
  EMPTY,
  finalize,
  ignoreElements,
  merge,
  type MonoTypeOperatorFunction,
  type Observable,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import type { Terminal } from './command.ts';

/** One line on a terminal that tells what takes long, and goes when something else is printed. */
export interface Progress {
  /**
   * Shows a line once the newest value has lasted a second, anew every second, until the next value or the end.
   *
   * @param describe the line for what a value begins, given the whole seconds since; undefined when it begins nothing
   */
  during<T>(
    describe: (value: T) => ((seconds: number) => string) | undefined,
  ): MonoTypeOperatorFunction<T>;
  /** Takes the line away. */
  clear(): void;
}

const EVERY_MS = 1_000;
/** To the start of the line, which is emptied. */
const CLEAR = '\r\u001b[2K';

/** Progress on standard error; nothing is shown where that is no terminal. */
export const progressOn = ({ err, errIsTerminal = false }: Terminal): Progress => {
  let isShown = false;
  const clear = (): void => {
    if (isShown) err(CLEAR);
    isShown = false;
  };
  const everySecond = (line: (seconds: number) => string): Observable<never> =>
    timer(EVERY_MS, EVERY_MS).pipe(
      tap((tick) => {
        err(`${CLEAR}${line(tick + 1)}`);
        isShown = true;
      }),
      ignoreElements(),
    );
  return {
    clear,
    during: (describe) => {
      if (!errIsTerminal) return (source) => source;
      return (source) =>
        source.pipe(
          connect((value$) =>
            merge(
              value$,
              value$.pipe(
                switchMap((value) => {
                  const line = describe(value);
                  return line === undefined ? EMPTY : everySecond(line);
                }),
              ),
            ),
          ),
          finalize(clear),
        );
    },
  };
};
