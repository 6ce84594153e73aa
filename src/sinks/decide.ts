import { sha256 } from '../digest.ts';
import { applyOperations } from '../plan/apply-operations.ts';
import { diff, diffRuntime } from '../plan/diff.ts';
import { graftBackends, graftServers, withServersOf } from '../plan/graft.ts';
import { runtimeState } from '../plan/runtime-state.ts';
import type { Baseline, Capabilities, ChangeSet, RuntimeState } from '../plan/change-set.ts';
import type { Plan } from '../plan/plan.ts';
import type { Desired } from '../ports.ts';
import type { Roles } from '../protocol/answers.ts';
import type { ApplyMode, Digest, Operation } from '../protocol/protocol.ts';
import type { Render } from '../render/render.ts';
import { minorOf } from '../render/version.ts';

/** What the controller knows of one pod; replaced as a whole after every answer. */
export interface PodKnowledge {
  readonly roles: Roles;
  readonly baseline: Baseline;
  /** Path → digest of what lies on the pod's disk. */
  readonly files: ReadonlyMap<string, Digest>;
  /** Render whose files the pod holds, as the base of patches. */
  readonly render: Render | undefined;
  readonly capabilities: Capabilities;
  /** The reload that the agent will do by itself, and in how many milliseconds from when that was learnt. */
  readonly pendingReload: { readonly planId: Digest; readonly inMs: number } | undefined;
  /** Highest epoch that its agent has seen. */
  readonly highestEpoch: number;
}

export type Decision =
  | {
      readonly do: 'nothing';
      readonly why: 'up-to-date' | 'reload-pending' | 'no-target' | 'loaded-refused';
    }
  | {
      readonly do: 'apply';
      /** Undefined: the pod goes back to its own last known good tree. */
      readonly render: Render | undefined;
      readonly planId: Digest;
      readonly mode: ApplyMode;
      readonly changes: ChangeSet;
      /** What the worker holds when the operations have run. */
      readonly worker: RuntimeState | undefined;
    };

/**
 * What one pod needs to get to the level the fleet shall hold. Pure and level-triggered: it asks what is, not what
 * happened, so a pod that was away, joined or was reverted half-way gets the same answer as any other.
 */
export const decide = (desired: Desired, known: PodKnowledge): Decision => {
  const kept = unrefused(desired, known);
  if (kept === 'unknown') return { do: 'nothing', why: 'loaded-refused' };
  const target = kept ?? desired.target;
  if (target === undefined) return toLastKnownGood(desired, known);
  const { plan } = target;
  const aim = aimOf(plan, desired.servers?.plan, known);
  const changes = diff(known.baseline, aim, known.capabilities);
  if (holdsFiles(known, target)) {
    if (isReached(changes) && isClaimed(desired, known))
      return { do: 'nothing', why: 'up-to-date' };
    if (waits(changes, known)) return { do: 'nothing', why: 'reload-pending' };
  }
  return {
    do: 'apply',
    render: target,
    planId: plan.id,
    mode: modeFor(known, desired.refused.size > 0 && known.roles.applied !== plan.id),
    changes,
    worker: runtimeState(aim),
  };
};

/**
 * What this pod holds, when a refusal is not meant for it: its own HAProxy has loaded the refused plan, which is stronger
 * evidence than the controller's checker (docs/gate.md), or is of another minor version than the checker's. The pod stays on
 * it and only its servers go on.
 */
const unrefused = (
  { refused, checkerVersion }: Desired,
  { roles: { running, applied }, render, capabilities }: PodKnowledge,
): Render | 'unknown' | undefined => {
  const isForeign =
    checkerVersion !== undefined && minorOf(checkerVersion) !== minorOf(capabilities.haproxy);
  const stays = [running, isForeign ? applied : null].some(
    (planId) => planId !== null && refused.has(planId),
  );
  if (!stays) return undefined;
  return render !== undefined && render.plan.id === applied ? render : 'unknown';
};

/**
 * The plan to reach: the target's, while held with the newest servers of unchanged backends as far as operations can
 * bring them. A held server is never worth a reload, so what only a reload could bring stays as the worker has it.
 */
const aimOf = (plan: Plan, newest: Plan | undefined, known: PodKnowledge): Plan => {
  const { worker } = known.baseline;
  if (newest === undefined || worker === undefined) return plan;
  const operations = diffRuntime(worker, graftServers(plan, newest), known.capabilities);
  const reached = applyOperations(worker, operations, sha256);
  return { ...plan, backends: withServersOf(plan.backends, reached.backends, sha256) };
};

const holdsFiles = (known: PodKnowledge, target: Render): boolean =>
  known.roles.applied === target.plan.id && driftedFiles(known, target).length === 0;

const isReached = ({ verdict, operations }: ChangeSet): boolean =>
  verdict !== 'reload' && operations.length === 0;

/**
 * Whether the agent knows this term. Before, a former leader that does not know that it is over could still write; and a
 * term whose epoch is too low has to find out before it needs the pod. An apply that changes nothing tells the agent.
 */
const isClaimed = ({ epoch }: Desired, { highestEpoch }: PodKnowledge): boolean =>
  highestEpoch === epoch;

const waits = (
  { inPlaceOperations, planId }: ChangeSet,
  { pendingReload }: PodKnowledge,
): boolean => pendingReload?.planId === planId && inPlaceOperations.length === 0;

/** Paths whose content on the pod's disk is not that of the render, files that nobody declared included. */
export const driftedFiles = (known: PodKnowledge, render: Render): readonly string[] => {
  const digests = fileDigests(render);
  const wrong = [...digests].filter(([path, digest]) => known.files.get(path) !== digest);
  const surplus = [...known.files.keys()].filter((path) => !digests.has(path));
  return [...wrong.map(([path]) => path), ...surplus];
};

/** Path → digest of every file of a render; computed once per render. */
export const fileDigests = (render: Render): ReadonlyMap<string, Digest> => {
  const known = digestsOf.get(render);
  if (known !== undefined) return known;
  const { plan } = render;
  const digests = new Map<string, Digest>();
  for (const map of plan.maps.values()) digests.set(map.path, map.text);
  for (const file of plan.files.values()) digests.set(file.path, file.text);
  for (const list of plan.crtLists.values()) digests.set(list.path, list.text);
  digests.set(plan.config.path, plan.config.digest);
  digestsOf.set(render, digests);
  return digests;
};
const digestsOf = new WeakMap<Render, ReadonlyMap<string, Digest>>();

/** An applied plan that is not known in this term only means that files travel whole; the worker is what matters. */
const modeFor = ({ baseline, roles }: PodKnowledge, reverting: boolean): ApplyMode => {
  if (roles.applied === null || baseline.worker === undefined) return 'reload';
  return reverting ? 'revert' : 'auto';
};

/**
 * Nothing was accepted yet in this term: a pod on a refused plan goes back to what its agent knows to be good. There it
 * gets the servers of today, and those that come later.
 */
const toLastKnownGood = (desired: Desired, known: PodKnowledge): Decision => {
  const { applied, lkg } = known.roles;
  const isRefused = applied !== null && desired.refused.has(applied);
  if (lkg === null || !(isRefused || applied === lkg)) return { do: 'nothing', why: 'no-target' };
  const newest = desired.servers?.plan;
  const { operations, worker } = isRefused ? undoing(newest, known) : flowing(newest, known);
  if (!isRefused && operations.length === 0) return { do: 'nothing', why: 'no-target' };
  return {
    do: 'apply',
    render: undefined,
    planId: lkg,
    mode: 'revert',
    changes: {
      verdict: 'runtime',
      operations,
      inPlaceOperations: [],
      reasons: [],
      changedFiles: new Set(),
      planId: lkg,
    },
    worker,
  };
};

/** What was done to a worker, and what it holds then. */
interface Moved {
  readonly operations: readonly Operation[];
  readonly worker: RuntimeState | undefined;
}

/** Undoes what the worker took since its start, servers aside; that is the tree it goes back to, or an older one. */
const undoing = (newest: Plan | undefined, known: PodKnowledge): Moved => {
  const { running } = known.baseline;
  if (running === undefined) return { operations: [], worker: undefined };
  const aim = aimOf(running, newest, known);
  const { operations } = diff(known.baseline, aim, known.capabilities);
  return { operations, worker: runtimeState(aim) };
};

/** Brings the newest servers to the backends that the worker has with the same structure. */
const flowing = (newest: Plan | undefined, known: PodKnowledge): Moved => {
  const { worker } = known.baseline;
  if (newest === undefined || worker === undefined) return { operations: [], worker };
  const aim = { ...worker, backends: graftBackends(worker, newest.backends) };
  const operations = diffRuntime(worker, aim, known.capabilities);
  return { operations, worker: applyOperations(worker, operations, sha256) };
};
