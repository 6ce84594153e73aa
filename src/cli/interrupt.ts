import { constants } from 'node:os';

/** How long after the first signal another one ends everything at once, in milliseconds: npm delivers one Ctrl-C twice. */
const TWICE_MS = 1_000;

type EndingSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** What {@link interrupts} works on. */
export interface InterruptOptions {
  /** Aborted by the first signal, so that what runs ends in order. */
  readonly stop: AbortController;
  /** Ends the process with a status. */
  readonly exit: (status: number) => void;
  /** Milliseconds of any steady clock. */
  readonly now: () => number;
}

/**
 * Returns what to do with each signal that asks the program to end: the first one lets work in flight end; one that comes a
 * second later or more does not wait for that and ends with status 128 + its number. Children that are left then are ended
 * by the next start.
 */
export const interrupts = ({
  stop,
  exit,
  now,
}: InterruptOptions): ((signal: EndingSignal) => void) => {
  let first: number | undefined;
  return (signal) => {
    if (first === undefined) {
      first = now();
      stop.abort(signal);
    } else if (now() - first >= TWICE_MS) {
      exit(128 + constants.signals[signal]);
    }
  };
};
