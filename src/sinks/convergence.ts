import {
  asyncScheduler,
  catchError,
  concat,
  defer,
  EMPTY,
  map,
  mergeMap,
  type Observable,
  of,
  timeout,
} from 'rxjs';
import type { AgentClient, AgentNotification, Desired, NotificationOf, Pod } from '../ports.ts';
import type { ApplyConflict, ApplyOutcome, StoredPlan } from '../protocol/answers.ts';
import type { Digest } from '../protocol/protocol.ts';
import { decide, type Decision, type PodKnowledge } from './decide.ts';
import { afterOutcome, learn, needsStoredPlan, type KnownRenders } from './knowledge.ts';
import { appliedOf, messageOf, observations } from './observations.ts';
import { buildRequest } from './request.ts';

/** What a pod shall hold now. `reloadNotBefore` is a time of the scheduler's clock in milliseconds. */
export interface Level {
  readonly pod: Pod;
  readonly desired: Desired;
  readonly reloadNotBefore: number;
}

export interface ConvergenceOptions {
  readonly client: AgentClient;
  readonly known: KnownRenders;
  /** Asks for another run after so many milliseconds; a newer wish replaces an older one. */
  readonly again: (afterMs: number) => void;
}

type Apply = Extract<Decision, { do: 'apply' }>;
type Failure = NotificationOf<'ApplyFailed'>['cause'];
type Notifications = Observable<AgentNotification>;

const TRIES = 4;
const BACKOFF = { firstMs: 1_000, maxMs: 5_000 };
/** How long after its announced time the result of a scheduled reload is read. */
const FOLLOW_UP_MS = 250;

/**
 * One pod's way to the newest level: learn what it holds where that is not known, decide, apply, and again until nothing
 * is missing. Never errors: an unreachable, slow, refusing or fenced agent becomes a notification and a later run.
 */
export class Convergence {
  readonly #options: ConvergenceOptions;
  #known: PodKnowledge | undefined;
  /** From when on, in the scheduler's milliseconds, the pod is asked before anything is decided. */
  #lookAt = -Infinity;
  /** A drift check is due: the next look has the agent re-hash its tree. The first look at a pod is one. */
  #verify = true;
  #failingSince: number | undefined;
  /** Until then, in the scheduler's milliseconds, a pod that just failed is left alone, whatever changes. */
  #restUntil = -Infinity;
  #sequence = 0;
  #lastReloadAt: number | undefined;
  /** Plan of a reload that was scheduled and whose result was not read yet. */
  #awaited: Digest | undefined;
  /** Paths whose bytes the agent wants whole. */
  #whole: ReadonlySet<string> = new Set();

  constructor(options: ConvergenceOptions) {
    this.#options = options;
  }

  /** Wants a drift check with the next run, however many newer levels overtake the one that comes with the wish. */
  verify(): void {
    this.#verify = true;
  }

  run(level: Level): Notifications {
    return defer(() => {
      const restMs = this.#restUntil - asyncScheduler.now();
      if (restMs > 0) {
        this.#options.again(restMs);
        return EMPTY;
      }
      const look = this.#verify || asyncScheduler.now() >= this.#lookAt;
      return concat(look ? this.#learn(level) : EMPTY, this.#step(level, TRIES));
    }).pipe(catchError((error: unknown) => this.#failed(level, 'unreachable', messageOf(error))));
  }

  #learn(level: Level): Notifications {
    const { client, known: renders } = this.#options;
    const verify = this.#verify;
    return client.state(level.pod, { verify }).pipe(
      mergeMap((state) => {
        if (verify) this.#verify = false;
        const needed = needsStoredPlan(state, this.#known, renders);
        const stored$: Observable<StoredPlan | undefined> = needed
          ? client.plan(level.pod)
          : of(undefined);
        return stored$.pipe(
          mergeMap((stored) => {
            const before = this.#known;
            const known = learn(state, stored, { known: before, renders });
            const news = {
              before,
              known,
              lastReloadAt: this.#lastReloadAt,
              awaited: this.#awaited,
            };
            this.#known = known;
            this.#lookAt = Infinity;
            this.#lastReloadAt = state.lastReload?.atMs ?? 0;
            if (state.lastReload?.planId === this.#awaited) this.#awaited = undefined;
            return of(...observations({ pod: level.pod, verify }, state, news));
          }),
        );
      }),
    );
  }

  #step(level: Level, tries: number): Notifications {
    return defer(() => {
      const known = this.#known;
      if (known === undefined) return EMPTY;
      const decision = decide(level.desired, known);
      if (decision.do === 'apply') {
        return tries > 0
          ? this.#apply(level, decision, { known, tries })
          : this.#failed(
              level,
              'conflict',
              'the pod kept changing between its state and the apply',
            );
      }
      this.#failingSince = undefined;
      if (decision.why === 'reload-pending') return this.#waitForReload(known.pendingReload);
      const planId = known.roles.applied;
      const untouched = tries === TRIES && decision.why === 'up-to-date' && planId !== null;
      return untouched ? of({ type: 'UpToDate' as const, pod: level.pod, planId }) : EMPTY;
    });
  }

  #apply(
    level: Level,
    decision: Apply,
    { known, tries }: { readonly known: PodKnowledge; readonly tries: number },
  ): Notifications {
    const { client } = this.#options;
    const { settings } = level.desired;
    this.#sequence += 1;
    const request = buildRequest(decision, {
      desired: level.desired,
      known,
      sequence: this.#sequence,
      reloadNotBeforeMs: Math.max(0, level.reloadNotBefore - asyncScheduler.now()),
      reloadIntervalMs: settings.minDeploymentIntervalMs,
      whole: this.#whole,
    });
    const startedAt = asyncScheduler.now();
    return client.apply(level.pod, request).pipe(
      timeout(settings.deploymentTimeoutMs),
      mergeMap((answer) => {
        if ('conflict' in answer) return this.#onConflict(level, answer, tries);
        this.#whole = new Set();
        const { epoch } = level.desired;
        this.#known = { ...afterOutcome(known, decision, answer), highestEpoch: epoch };
        const durationMs = asyncScheduler.now() - startedAt;
        const told = appliedOf(level, decision, { outcome: answer, durationMs });
        return concat(of(told), this.#onOutcome(level, answer, { planId: decision.planId, tries }));
      }),
    );
  }

  #onConflict(level: Level, answer: ApplyConflict, tries: number): Notifications {
    if (answer.conflict === 'stale_epoch') {
      const { highestEpoch } = answer;
      const message = `a leader of epoch ${String(highestEpoch)} has written to this pod`;
      return this.#failed(level, 'stale-epoch', message).pipe(
        map((told) => ({ ...told, highestEpoch })),
      );
    }
    this.#whole = new Set(answer.missing ?? []);
    return concat(this.#learn(level), this.#step(level, tries - 1));
  }

  #onOutcome(
    level: Level,
    { outcome, error, reloadInMs = 0 }: ApplyOutcome,
    { planId, tries }: { readonly planId: Digest; readonly tries: number },
  ): Notifications {
    // A reload that the answer itself told of is not told again when the pod is asked next.
    if (outcome === 'reload' || outcome === 'rejected') this.#lastReloadAt = undefined;
    if (outcome === 'rejected') {
      return this.#failed(level, 'rejected', error?.message ?? 'the agent gave no reason');
    }
    if (outcome === 'scheduled') return this.#waitForReload({ planId, inMs: reloadInMs });
    // The pod may need one more step, for example servers that flow to a worker held at an older plan.
    const next$ = this.#step(level, tries - 1);
    return this.#knowsWorker() ? next$ : concat(this.#learn(level), next$);
  }

  /** A reload that the agent does by itself ends without an answer, so its result is asked for. */
  #waitForReload(pending: PodKnowledge['pendingReload']): Notifications {
    const { planId, inMs = 0 } = pending ?? {};
    this.#awaited = planId;
    this.#options.again(inMs + FOLLOW_UP_MS);
    this.#lookAt = this.#knowsWorker() ? asyncScheduler.now() + inMs : -Infinity;
    return EMPTY;
  }

  #knowsWorker(): boolean {
    return this.#known?.baseline.worker !== undefined;
  }

  #failed(
    { pod, desired }: Level,
    cause: Failure,
    message: string,
  ): Observable<NotificationOf<'ApplyFailed'>> {
    const now = asyncScheduler.now();
    this.#failingSince ??= now;
    const retryInMs = waitAfter(now - this.#failingSince);
    // What the pod did with the last request is not known: it is asked before the next one.
    this.#lookAt = -Infinity;
    this.#restUntil = now + BACKOFF.firstMs;
    this.#options.again(retryInMs);
    const planId = desired.target?.plan.id;
    return of({ type: 'ApplyFailed', pod, planId, cause, message, retryInMs });
  }
}

/** Waits of 1, 1, 2, 4, 5 … s: as long as it has been failing, however often it was tried meanwhile. */
const waitAfter = (failingMs: number): number => {
  const doublings = Math.floor(Math.log2(Math.max(1, failingMs / BACKOFF.firstMs)));
  return Math.min(BACKOFF.firstMs * 2 ** doublings, BACKOFF.maxMs);
};
