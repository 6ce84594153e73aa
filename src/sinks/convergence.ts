import {
  asyncScheduler,
  catchError,
  concat,
  defer,
  EMPTY,
  mergeMap,
  type Observable,
  of,
  timeout,
} from 'rxjs';
import {
  AgentError,
  type AgentClient,
  type AgentNotification,
  type Desired,
  type Pod,
} from '../ports.ts';
import type { ApplyConflict, ApplyOutcome, Digest, StoredPlan } from '../protocol/protocol.ts';
import type { DataplaneSettings } from '../render/render.ts';
import { decide, type Decision, type PodKnowledge } from './decide.ts';
import { afterOutcome, learn, needsStoredPlan, type KnownRenders } from './knowledge.ts';
import { observations } from './observations.ts';
import { buildRequest } from './request.ts';

/** What a pod shall hold now. `reloadNotBefore` is a time of the scheduler's clock in milliseconds. */
export interface Level {
  readonly pod: Pod;
  readonly desired: Desired;
  readonly reloadNotBefore: number;
  /** Have the agent re-hash its tree first. */
  readonly verify: boolean;
}

export interface ConvergenceOptions {
  readonly client: AgentClient;
  readonly known: KnownRenders;
  readonly settings: DataplaneSettings;
  /** Asks for another run after so many milliseconds; a newer wish replaces an older one. */
  readonly again: (afterMs: number) => void;
}

type Apply = Extract<Decision, { do: 'apply' }>;
type Notifications = Observable<AgentNotification>;

const TRIES = 4;
const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };
/** How long after its announced time the result of a scheduled reload is read. */
const FOLLOW_UP_MS = 250;

/**
 * One pod's convergence: each call brings it a step nearer to the level and remembers what the pod holds. Never errors:
 * an unreachable, slow, refusing or fenced agent becomes a notification and a later run.
 */
export const createConvergence = (
  options: ConvergenceOptions,
): ((level: Level) => Notifications) => {
  let known: PodKnowledge | undefined;
  let failures = 0;
  let sequence = 0;
  let lastReloadAt: number | undefined;
  /** Plan of a reload that was scheduled and whose result was not read yet. */
  let awaited: Digest | undefined;
  let whole: ReadonlySet<string> = new Set();
  // A scheduled reload ends without an answer: from here on the pod is asked first.
  let lookAt = Infinity;

  const backOff = (): number => {
    const ms = Math.min(BACKOFF.firstMs * 2 ** failures, BACKOFF.maxMs);
    failures += 1;
    options.again(ms);
    return ms;
  };

  const failed = (
    level: Level,
    cause: 'rejected' | 'unreachable' | 'conflict' | 'stale-epoch',
    message: string,
  ): Notifications => {
    // What the pod did with the last request is not known: it is asked before the next one.
    lookAt = -Infinity;
    const retryInMs = backOff();
    const planId = level.desired.target?.plan.id;
    return of({ type: 'ApplyFailed', pod: level.pod, planId, cause, message, retryInMs });
  };

  const relearn = (level: Level): Notifications =>
    options.client.state(level.pod, { verify: level.verify }).pipe(
      mergeMap((state) => {
        const stored$: Observable<StoredPlan | undefined> = needsStoredPlan(
          state,
          known,
          options.known,
        )
          ? options.client.plan(level.pod)
          : of(undefined);
        return stored$.pipe(
          mergeMap((stored) => {
            const before = known;
            known = learn(state, stored, { known: before, renders: options.known });
            const seen = observations(level, state, { before, known, lastReloadAt, awaited });
            lastReloadAt = state.lastReload?.atMs ?? 0;
            if (state.lastReload?.planId === awaited) awaited = undefined;
            return of(...seen);
          }),
        );
      }),
    );

  const step = (level: Level, tries: number): Notifications =>
    defer(() => {
      if (known === undefined) return EMPTY;
      const decision = decide(level.desired, known);
      if (decision.do === 'nothing') {
        failures = 0;
        const { pod } = level;
        const { applied } = known.roles;
        const untouched = tries === TRIES && decision.why === 'up-to-date' && applied !== null;
        return untouched
          ? of<AgentNotification>({ type: 'UpToDate', pod, planId: applied })
          : EMPTY;
      }
      return tries === 0
        ? failed(level, 'conflict', 'the pod kept changing between its state and the apply')
        : apply(level, decision, { known, tries });
    });

  const apply = (
    level: Level,
    decision: Apply,
    context: { readonly known: PodKnowledge; readonly tries: number },
  ): Notifications => {
    sequence += 1;
    const request = buildRequest(decision, {
      desired: level.desired,
      known: context.known,
      sequence,
      reloadNotBeforeMs: Math.max(0, level.reloadNotBefore - asyncScheduler.now()),
      reloadIntervalMs: options.settings.minDeploymentIntervalMs,
      whole,
    });
    const startedAt = asyncScheduler.now();
    return options.client.apply(level.pod, request).pipe(
      timeout(options.settings.deploymentTimeoutMs),
      mergeMap((answer) => {
        if ('conflict' in answer) return onConflict(level, answer, context.tries);
        whole = new Set();
        known = afterOutcome(context.known, decision, answer);
        const durationMs = asyncScheduler.now() - startedAt;
        const applied = describe(level, decision, { answer, durationMs });
        noteReload(decision, answer);
        return concat(of(applied), onOutcome(level, answer, context.tries));
      }),
    );
  };

  /** A reload that the answer itself told of is not told again when the pod is asked next. */
  const noteReload = ({ planId }: Apply, { outcome }: ApplyOutcome): void => {
    if (outcome === 'reload' || outcome === 'rejected') lastReloadAt = undefined;
    if (outcome === 'scheduled') awaited = planId;
  };

  const onConflict = (level: Level, answer: ApplyConflict, tries: number): Notifications => {
    if (answer.conflict === 'stale_epoch') {
      const highest = String(answer.highestEpoch);
      return failed(level, 'stale-epoch', `a leader of epoch ${highest} has written to this pod`);
    }
    whole = new Set(answer.missing ?? []);
    return concat(relearn(level), step(level, tries - 1));
  };

  const onOutcome = (level: Level, outcome: ApplyOutcome, tries: number): Notifications => {
    if (outcome.outcome === 'rejected') {
      return failed(level, 'rejected', outcome.error?.message ?? 'the agent gave no reason');
    }
    if (outcome.outcome === 'scheduled') {
      options.again((outcome.reloadInMs ?? 0) + FOLLOW_UP_MS);
      lookAt =
        known?.baseline.worker === undefined
          ? -Infinity
          : asyncScheduler.now() + (outcome.reloadInMs ?? 0);
      return EMPTY;
    }
    // The pod may need one more step, for example servers that flow to a worker held at an older plan.
    const next = step(level, tries - 1);
    return known?.baseline.worker === undefined ? concat(relearn(level), next) : next;
  };

  return (level) =>
    defer(() => {
      const look = known === undefined || level.verify || asyncScheduler.now() >= lookAt;
      if (look) lookAt = Infinity;
      return concat(look ? relearn(level) : EMPTY, step(level, TRIES));
    }).pipe(catchError((error: unknown) => failed(level, 'unreachable', messageOf(error))));
};

const describe = (
  { pod, desired }: Level,
  decision: Apply,
  { answer, durationMs }: { readonly answer: ApplyOutcome; readonly durationMs: number },
): AgentNotification => ({
  type: 'Applied',
  pod,
  planId: decision.planId,
  verdict: answer.outcome === 'noop' ? 'noop' : decision.changes.verdict,
  reverted: decision.mode === 'revert' && desired.refused.size > 0,
  outcome: answer,
  operations: decision.changes.operations.length + decision.changes.inPlaceOperations.length,
  reasons: decision.changes.reasons.map((reason) => reason.message),
  causes: [...new Set(decision.changes.reasons.map((reason) => reason.cause))],
  durationMs,
});

const messageOf = (error: unknown): string =>
  error instanceof AgentError
    ? `${error.code}: ${error.message}`
    : error instanceof Error
      ? error.message
      : String(error);
