import type { AgentState, Roles } from '../../src/protocol/answers.ts';
import type { Digest } from '../../src/protocol/protocol.ts';
import type { Kept } from '../files/objects.ts';
import type { JournalChange } from '../files/transition.ts';
import type { WorkerIdentity } from '../haproxy/worker-identity.ts';

export type LastReload = NonNullable<AgentState['lastReload']>;

/** A reload that is not yet due, or that waits for HAProxy to run at all. */
export interface PendingReload {
  readonly planId: Digest;
  /** Milliseconds since 1970. */
  readonly dueMs: number;
  /** Set while HAProxy does not run: when to give up and go back to the last known good files. */
  readonly giveUpMs?: number;
}

/**
 * What the pod holds (see docs/protocol.md, "Roles"), in memory. Everything that changes it does so under the lock and
 * has it persisted afterwards.
 */
export interface Holding {
  applied: Digest | null;
  running: Digest | null;
  lkg: Digest | null;
  workerOperations: number;
  /** The worker that `running` and `workerOperations` speak of. */
  worker: WorkerIdentity | null;
  highestEpoch: number;
  /** Who leads with that epoch; empty when nobody said. */
  leader: string;
  /** Counts changes of the tree; journal and state are matched by it. */
  generation: number;
  /**
   * When the tree or what its worker holds last changed, in milliseconds since 1970: a worker that started later has read
   * this tree and taken no operations.
   */
  changedMs: number;
  /** Operations were executed that no record on disk tells of yet. */
  unsaved: boolean;
  pending: PendingReload | null;
  /** The worker keeps something that only a reload takes away, whichever plan that reload brings. */
  reloadOwed: boolean;
  /** Some apply was confirmed once: from then on the pod is ready, whatever becomes of later ones. */
  confirmed: boolean;
  lastReload: LastReload | null;
  /** Start of the last reload that was tried, in milliseconds since 1970; paces the next. */
  lastReloadMs: number;
  /** What differs between the last known good tree and the one on disk: the former content of each path. */
  readonly lkgDelta: Map<string, Kept | null>;
}

/** Of a pod that nobody has applied anything to. */
export const emptyHolding = (): Holding => ({
  applied: null,
  running: null,
  lkg: null,
  workerOperations: 0,
  worker: null,
  highestEpoch: 0,
  leader: '',
  generation: 0,
  changedMs: 0,
  unsaved: false,
  pending: null,
  reloadOwed: false,
  confirmed: false,
  lastReload: null,
  lastReloadMs: 0,
  lkgDelta: new Map(),
});

export const rolesOf = (holding: Holding): Roles => ({
  applied: holding.applied,
  running: holding.running,
  workerOperations: holding.workerOperations,
  lkg: holding.lkg,
});

/** From here on nobody knows what the worker holds; only a reload leaves that. */
export function forgetWorker(holding: Holding): void {
  holding.running = null;
  holding.workerOperations = 0;
}

/** The tree has changed: what stood there since the last known good tree is needed to go back to it. */
export function keepFormer(holding: Holding, changes: readonly JournalChange[]): void {
  for (const { path, previous } of changes) {
    if (!holding.lkgDelta.has(path)) holding.lkgDelta.set(path, previous);
  }
}

/** The last known good files were put back; `matches`: and are there. If not, no plan has a name for what is. */
export function wentBack(holding: Holding, matches: boolean): void {
  if (!matches) holding.lkg = null;
  holding.applied = holding.lkg;
  holding.lkgDelta.clear();
  holding.changedMs = Date.now();
}

/** A reload has come to its end: nobody ever sees it both pending and done. */
export function endReload(holding: Holding, result: LastReload): void {
  holding.lastReload = result;
  holding.pending = null;
}
