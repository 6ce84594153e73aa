import {
  catchError,
  connect,
  defer,
  filter,
  ignoreElements,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  startWith,
  switchMap,
  takeWhile,
  tap,
  throwError,
  timer,
} from 'rxjs';
import type { Problem } from '../snapshot/problem.ts';
import { type ChildLimits, converse } from './conversation.ts';
import type { FromVetter, ToVetter } from './messages.ts';
import { broken, tooSlow } from './vet-problems.ts';

/** What the process that vets may cost. */
export interface VetterLimits extends ChildLimits {
  /** Compiling, rendering, or one test, in milliseconds. */
  readonly phaseMs: number;
}

/** 10,000 Ingresses with a backend of five endpoints each fit into a heap of 256 MiB. */
export const DEFAULT_LIMITS: VetterLimits = { heapMb: 512, cpuSeconds: 600, phaseMs: 30_000 };

/** Why nothing more comes from the process that vets. */
export class Refusal extends Error {
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(problems.map(({ message }) => message).join(' '));
    this.name = 'Refusal';
    this.problems = problems;
  }
}

/** Longest start of the process, in milliseconds; no template has a say in it. */
const START_MS = 60_000;
const STARTING = 'Starting the process that vets configurations';

/**
 * What the process that vets says until it is done. It is killed when one phase takes too long or it takes too much
 * memory, and when nobody listens any more; no template can keep it alive or take more than it may.
 *
 * Errors with a {@link Refusal}, also with those of `respond`.
 *
 * @param program JavaScript file of the process
 * @param respond answers to a message, the first of which is the order
 * @param limits what it may cost
 */
export const supervised = (
  program: string,
  respond: (message: FromVetter) => Observable<ToVetter>,
  limits: VetterLimits,
): Observable<FromVetter> =>
  defer(() => {
    let busyWith = STARTING;
    return converse<FromVetter, ToVetter>(program, respond, limits).pipe(
      inTime(limits.phaseMs),
      takeWhile(({ type }) => type !== 'done', true),
      tap((message) => {
        if (message.type === 'phase') busyWith = message.phase;
      }),
      catchError((error: unknown) => throwError(() => refusal(error, busyWith, limits))),
    );
  });

const refusal = (error: unknown, busyWith: string, limits: VetterLimits): Refusal =>
  error instanceof Refusal ? error : new Refusal([broken(error, busyWith, limits)]);

/** The problems of a {@link Refusal}; what else is caught is thrown on. */
export const problemsOf = (error: unknown): readonly Problem[] => {
  if (error instanceof Refusal) return error.problems;
  throw error;
};

/** Whether a problem lies with the process that vets, and not with what it was given. */
export const isOurs = ({ reason }: Problem): boolean => reason === 'ConfigNotVetted';

/** Errors when the child is busy with one thing for too long. */
const inTime =
  (phaseMs: number) =>
  (message$: Observable<FromVetter>): Observable<FromVetter> =>
    message$.pipe(
      connect((shared$) =>
        merge(
          shared$,
          shared$.pipe(
            filter((message) => message.type === 'phase'),
            startWith({ phase: STARTING, waits: false }),
            switchMap(({ phase, waits }) =>
              waits ? NEVER : lateAfter(phase === STARTING ? START_MS : phaseMs, phase),
            ),
            ignoreElements(),
          ),
        ),
      ),
    );

const lateAfter = (ms: number, phase: string): Observable<never> =>
  timer(ms).pipe(mergeMap(() => throwError(() => new Refusal([tooSlow(phase, ms)]))));
