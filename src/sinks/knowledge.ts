import { sha256 } from '../digest.ts';
import { applyOperations } from '../plan/apply-operations.ts';
import type { Baseline, RuntimeState } from '../plan/change-set.ts';
import type { Plan } from '../plan/plan.ts';
import { runtimeState } from '../plan/runtime-state.ts';
import { parsePlan } from '../plan/serialise.ts';
import {
  LIMITS,
  type AgentState,
  type ApplyOutcome,
  type Digest,
  type StoredPlan,
} from '../protocol/protocol.ts';
import type { Render } from '../render/render.ts';
import { fileDigests, type Decision, type PodKnowledge } from './decide.ts';

type Apply = Extract<Decision, { do: 'apply' }>;

/** Renders by plan id that a pod may hold: the ones of this term. */
export type KnownRenders = (planId: Digest) => Render | undefined;

/**
 * Whether the stored plan has to be fetched to understand what the pod's worker holds (DESIGN D14): always, unless
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
    pendingReload: state.pendingReload?.planId,
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
  const plan = renders(planId)?.plan;
  if (plan !== undefined) return plan;
  if (known?.baseline.running?.id === planId) return known.baseline.running;
  if (stored?.planId !== planId || stored.plan === '') return undefined;
  try {
    const parsed = parsePlan(stored.plan, sha256);
    return parsed.id === planId ? parsed : undefined;
  } catch {
    return undefined;
  }
};

const workerOf = (
  state: AgentState,
  running: Plan | undefined,
  stored: StoredPlan | undefined,
): RuntimeState | undefined => {
  if (running === undefined) return undefined;
  const fresh = runtimeState(running);
  const { workerOperations } = state.roles;
  if (workerOperations === 0) return fresh;
  if (stored?.planId !== running.id || stored.operations.length !== workerOperations)
    return undefined;
  try {
    return applyOperations(fresh, stored.operations, sha256);
  } catch {
    return undefined;
  }
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
    pendingReload: outcome.outcome === 'scheduled' ? decision.planId : undefined,
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
  { outcome, roles }: ApplyOutcome,
): Pick<Baseline, 'running' | 'worker'> => {
  const { plan } = render ?? {};
  if (outcome === 'reload' && plan !== undefined && roles.running === plan.id) {
    return { running: plan, worker: runtimeState(plan) };
  }
  const { running } = before;
  if (running === undefined || roles.running !== running.id)
    return { running: undefined, worker: undefined };
  if (outcome === 'runtime') return { running, worker };
  if (outcome === 'scheduled' && before.worker !== undefined) {
    return { running, worker: applyOperations(before.worker, changes.inPlaceOperations, sha256) };
  }
  return { running, worker: outcome === 'rejected' ? undefined : before.worker };
};
