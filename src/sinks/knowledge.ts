import { sha256 } from '../digest.ts';
import { applyOperations } from '../plan/apply-operations.ts';
import type { Baseline, RuntimeState } from '../plan/change-set.ts';
import type { Plan } from '../plan/plan.ts';
import { runtimeState } from '../plan/runtime-state.ts';
import type { AgentState, ApplyOutcome, Roles, StoredPlan } from '../protocol/answers.ts';
import { LIMITS, type Digest, type Operation } from '../protocol/protocol.ts';
import type { Render } from '../render/render.ts';
import { fileDigests, type Decision, type PodKnowledge } from './decide.ts';
import { storedPlan, withStoredOperations } from './stored-plan.ts';

type Apply = Extract<Decision, { do: 'apply' }>;

/** Renders by plan id that a pod may hold: the ones of this term. */
export type KnownRenders = (planId: Digest) => Render | undefined;

/**
 * Whether the stored plan has to be fetched to understand what the pod's worker holds (docs/protocol.md): always, unless
 * nothing changed since we knew it, or the worker runs a plan of this term untouched.
 */
export const needsStoredPlan = (
  state: AgentState,
  known: PodKnowledge | undefined,
  renders: KnownRenders,
): boolean => {
  const { running, workerOperations } = state.roles;
  if (running === null || isSameWorker(state, known)) return false;
  return renders(running) === undefined || workerOperations > 0;
};

const isSameWorker = (state: AgentState, known: PodKnowledge | undefined): boolean =>
  known?.baseline.worker !== undefined &&
  known.roles.running === state.roles.running &&
  known.roles.workerOperations === state.roles.workerOperations;

/** What a state (and stored plan, where it was needed) says about a pod. Never throws: what is unreadable is unknown. */
export const learn = (
  state: AgentState,
  stored: StoredPlan | undefined,
  context: { readonly known: PodKnowledge | undefined; readonly renders: KnownRenders },
): PodKnowledge => {
  const { known, renders } = context;
  const { applied, running } = state.roles;
  const runningPlan = planOf(running, stored, context);
  const worker = isSameWorker(state, known)
    ? known?.baseline.worker
    : workerOf(state, runningPlan, stored);
  const appliedRender =
    applied === null ? undefined : (renders(applied) ?? renderIn(known, applied));
  return {
    roles: state.roles,
    baseline: {
      applied:
        appliedRender?.plan ?? (applied !== null && applied === running ? runningPlan : undefined),
      running: runningPlan,
      worker,
      workerOperations: state.roles.workerOperations,
    },
    files: new Map(state.files.map(({ path, digest }) => [path, digest])),
    render: appliedRender,
    capabilities: {
      haproxy: state.haproxy.version,
      operationKinds: new Set(state.operationKinds),
      maxOperations: LIMITS.operations,
    },
    pendingReload: state.pendingReload ?? undefined,
    highestEpoch: state.highestEpoch,
  };
};

const renderIn = (known: PodKnowledge | undefined, planId: Digest): Render | undefined =>
  known?.render?.plan.id === planId ? known.render : undefined;

const planOf = (
  planId: Digest | null,
  stored: StoredPlan | undefined,
  { known, renders }: { readonly known: PodKnowledge | undefined; readonly renders: KnownRenders },
): Plan | undefined => {
  if (planId === null) return undefined;
  const { running } = known?.baseline ?? {};
  const atHand = renders(planId)?.plan ?? renderIn(known, planId)?.plan;
  return atHand ?? (running?.id === planId ? running : storedPlan(planId, stored));
};

const workerOf = (
  { roles: { workerOperations } }: AgentState,
  running: Plan | undefined,
  stored: StoredPlan | undefined,
): RuntimeState | undefined => {
  if (running === undefined) return undefined;
  const fresh = runtimeState(running);
  return workerOperations === 0
    ? fresh
    : withStoredOperations(fresh, running.id, {
        stored,
        workerOperations,
      });
};

/** What the pod holds after an answered apply. */
export const afterOutcome = (
  known: PodKnowledge,
  decision: Apply,
  outcome: ApplyOutcome,
): PodKnowledge => {
  const { roles } = outcome;
  const { render } = decision;
  const took = render !== undefined && roles.applied === render.plan.id;
  return {
    ...known,
    roles,
    files: took ? fileDigests(render) : known.files,
    render: took ? render : known.render,
    pendingReload:
      outcome.outcome === 'scheduled'
        ? { planId: decision.planId, inMs: outcome.reloadInMs ?? 0 }
        : undefined,
    baseline: {
      ...baselineAfter(known.baseline, decision, outcome),
      applied: took ? render.plan : undefined,
      workerOperations: roles.workerOperations,
    },
  };
};

const baselineAfter = (
  before: Baseline,
  { render, changes, worker }: Apply,
  answer: ApplyOutcome,
): Pick<Baseline, 'running' | 'worker'> => {
  const { outcome, roles } = answer;
  const { running } = before;
  if (outcome === 'reload') return afterReload(render?.plan, roles);
  if (running?.id !== roles.running) return UNKNOWN;
  const inPlace = outcome === 'scheduled';
  const operations = inPlace ? changes.inPlaceOperations : changes.operations;
  if (outcome === 'rejected' || !ranAll(operations, answer)) return { running, worker: undefined };
  if (outcome === 'runtime') return { running, worker };
  return { running, worker: before.worker && applyOperations(before.worker, operations, sha256) };
};

/** Only then is the worker known without asking: the agent keeps what it ran (docs/protocol.md). */
const ranAll = (
  operations: readonly Operation[],
  { operationsRun, failedOperations }: ApplyOutcome,
): boolean => operationsRun === operations.length && failedOperations.length === 0;

const UNKNOWN = { running: undefined, worker: undefined };

const afterReload = (
  plan: Plan | undefined,
  { running }: Roles,
): Pick<Baseline, 'running' | 'worker'> =>
  plan === undefined || running !== plan.id
    ? UNKNOWN
    : { running: plan, worker: runtimeState(plan) };
