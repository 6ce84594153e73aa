import {
  catchError,
  connect,
  defaultIfEmpty,
  defer,
  distinctUntilChanged,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  type OperatorFunction,
  scan,
  Subject,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
  withLatestFrom,
  EMPTY,
} from 'rxjs';
import {
  type Candidate,
  type GateEvent,
  type GateState,
  gateStep,
  initialGate,
  type InitialGateOptions,
  isUrgent,
  judgementOf,
  retryMs,
  toDesired,
  wanted,
} from '../gate/machine.ts';
import type { GateLevel, PacedLevel } from '../gate/levels.ts';
import type { Checked } from '../gate/verdict.ts';
import { gateLatest } from '../operators/gate-latest.ts';
import type { Checker, Notification } from '../ports.ts';
import type { Render } from '../render/render.ts';

/** Options of {@link gate}. */
export interface GateOptions extends InitialGateOptions {
  /** Judges one render; one runs at a time, and unsubscribing cancels it. */
  readonly check: Checker;
  /** The leader term: a gate remembers nothing of another. */
  readonly epoch: number;
  /** A monotonic clock in milliseconds for the pause after a check. Default: RxJS's. */
  readonly now?: () => number;
}

/** What the gate tells people. */
export type GateNotification = Extract<
  Notification,
  { type: 'Accepted' | 'Checked' | 'GateChanged' | 'Refused' | 'Reverting' }
>;

/** Levels for the fleet and, between them, what led there. */
export type GateOutput = GateLevel | GateNotification;

/** One step of the machine. */
interface Step {
  readonly before: GateState<Render>;
  readonly after: GateState<Render>;
  readonly event: Event | undefined;
}

/** The machine's events; a verdict also carries what the checker reported. */
type Event = GateEvent<Render> & { readonly checked?: Checked };

/** Whether a value of the gate is a level. */
export const isLevel = (output: GateOutput): output is GateLevel => !('type' in output);

/** Whether a value of the gate is a notification. */
export const isNotification = (output: GateOutput): output is GateNotification => 'type' in output;

/** Gives each level the pacing settings of the newest render. */
export const withSettings =
  (render$: Observable<Render>): OperatorFunction<GateLevel, PacedLevel> =>
  (level$) =>
    level$.pipe(
      withLatestFrom(render$),
      map(([level, { settings }]) => ({ ...level, settings })),
    );

/**
 * The render gate of one leader term (docs/gate.md, G9): renders in, what the fleet shall hold out, with HAProxy's
 * own checker beside the path and never on it.
 *
 * Kept: the running check, whatever is rendered meanwhile; the newest render while the gate is closed. Dropped: renders
 * that a newer one overtook before their check. Cancelled: the running check, on unsubscribing. While open, checks take
 * at most half of the time; while closed the next starts at once, after an inconclusive one 1 s later, doubling to 30 s.
 * A check that fails or says nothing is inconclusive, so only the source can make it error. Completion waits for
 * the check that runs and gives up retries.
 *
 * ```marbles
 * source:   -a-b--c----------|
 * check a:   ---r|
 * check b:      ---p|
 * check c:            ---p|
 * expected: -a-br-ho-----p---|
 * ```
 *
 * `a` and `b` go out at once. `a` is refused: `r` takes both back and holds, and `b` is checked next, at once. `c` is
 * held, only its servers flow (`h`). `b` passes, so it is accepted and `c`, the newest, goes out (`o`); its check waits for
 * as long as the last one took.
 *
 * @param options checker, term and clock
 */
export const gate =
  ({
    check,
    epoch,
    firstRenderWaits = false,
    now,
  }: GateOptions): OperatorFunction<Render, GateOutput> =>
  (render$) =>
    defer(() => {
      const feedback$ = new Subject<Event>();
      const closing$ = new Subject<void>();
      let current = initialGate<Render>(epoch, { firstRenderWaits });
      const judge = (candidate: Candidate<Render>): Observable<Event> =>
        checkOf(check, candidate.render).pipe(
          map((checked) => ({ type: 'checked', candidate, verdict: checked.verdict, checked })),
        );
      const rendered$ = render$.pipe(
        tap({ complete: () => closing$.next() }),
        map((render): Event => ({ type: 'render', render })),
      );
      const checks = (step$: Observable<Step>): Observable<never> =>
        step$.pipe(
          map(({ after }) => wanted(after)),
          distinctUntilChanged((a, b) => a?.render.plan.id === b?.render.plan.id),
          gateLatest({ check: judge, urgent: () => isUrgent(current), ...(now && { now }) }),
          tap({
            next: ({ result }) => feedback$.next(result),
            complete: () => feedback$.complete(),
          }),
          ignoreElements(),
        );
      const retries = (step$: Observable<Step>): Observable<never> =>
        step$.pipe(
          map(({ after }) => retryMs(after)),
          distinctUntilChanged(),
          switchMap((ms) => (ms === undefined ? EMPTY : timer(ms))),
          tap(() => feedback$.next({ type: 'retry' })),
          ignoreElements(),
        );
      return merge(rendered$, feedback$).pipe(
        scan(
          ({ after: before }, event): Step => ({ before, after: gateStep(before, event), event }),
          { before: current, after: current, event: undefined } as Step,
        ),
        tap(({ after }) => (current = after)),
        // What goes out is told before the next check starts, also when a check ends at once.
        connect((step$) => {
          const open$ = step$.pipe(takeUntil(closing$));
          return merge(
            step$.pipe(mergeMap(outputs)),
            retries(open$).pipe(takeUntil(closing$)),
            checks(open$),
          );
        }),
      );
    });

/** A check that cannot end without a verdict. */
const checkOf = (check: Checker, render: Render): Observable<Checked> => {
  const inconclusive = (cause: string): Checked => ({
    planId: render.plan.id,
    verdict: { result: 'inconclusive', cause },
    durationMs: 0,
  });
  return defer(() => check(render)).pipe(
    take(1),
    defaultIfEmpty(inconclusive('the check ended without a verdict')),
    catchError((error: unknown) => of(inconclusive(`the check failed: ${String(error)}`))),
  );
};

const outputs = ({ before, after, event }: Step): GateOutput[] => [
  ...(event?.checked === undefined ? [] : [{ type: 'Checked', checked: event.checked } as const]),
  ...verdicts(before, after, event),
  ...gateChanged(before, after),
  ...reverting(before, after),
  ...(sameLevel(before, after) ? [] : [toDesired(after)]),
];

/** What is accepted now, and what is refused by a check or by memory. */
const verdicts = (
  before: GateState<Render>,
  after: GateState<Render>,
  event: Event | undefined,
): GateNotification[] => {
  const { accepted } = after;
  if (accepted !== undefined && accepted.render !== before.accepted?.render) {
    return [{ type: 'Accepted', render: accepted.render }];
  }
  const render = event?.type === 'render' ? event.render : checkedRender(event);
  const judgement = render && judgementOf(after, render.plan.id);
  if (render === undefined || judgement?.result !== 'refused') return [];
  return [{ type: 'Refused', render, problems: judgement.problems }];
};

const checkedRender = (event: Event | undefined): Render | undefined =>
  event?.type === 'checked' ? event.candidate.render : undefined;

const gateChanged = (
  before: GateState<Render>,
  { phase, accepted }: GateState<Render>,
): GateNotification[] => {
  const planId = accepted?.render.plan.id;
  const same = before.phase === phase && before.accepted?.render.plan.id === planId;
  return same ? [] : [{ type: 'GateChanged', phase, accepted: planId }];
};

/** Only a refusal moves the fleet back. */
const reverting = (
  before: GateState<Render>,
  { dispatched, refused }: GateState<Render>,
): GateNotification[] => {
  const back = (before.dispatched?.sequence ?? 0) > (dispatched?.sequence ?? 0);
  return back ? [{ type: 'Reverting', refused: [...refused], to: dispatched?.render.plan.id }] : [];
};

const sameLevel = (before: GateState<Render>, after: GateState<Render>): boolean => {
  const [old, level] = [toDesired(before), toDesired(after)];
  return (
    old.phase === level.phase &&
    old.target === level.target &&
    old.accepted === level.accepted &&
    old.refused === level.refused &&
    old.servers === level.servers
  );
};
