import type { Digest, Operation } from '../protocol/protocol.ts';
import type { Backend, Plan, Profile } from './plan.ts';
import type { MerkleMap } from './merkle-map.ts';

/** What a worker holds at run time: the part of a plan that `applyOperations` moves. */
export interface RuntimeState {
  readonly backends: MerkleMap<Backend>;
  readonly profiles: MerkleMap<Profile>;
  readonly maps: Plan['maps'];
  /** TLS material as the worker has it; of other files, what stood there when it was started. */
  readonly files: Plan['files'];
  readonly crtLists: Plan['crtLists'];
}

/** What one pod holds, as far as the controller knows; `undefined` = unknown, which only a reload leaves. */
export interface Baseline {
  /** Plan whose files are on disk. */
  readonly applied: Plan | undefined;
  /** Plan the worker was started from. */
  readonly running: Plan | undefined;
  /** `running` plus the operations since; the baseline of the next operations. */
  readonly worker: RuntimeState | undefined;
  /** Count of operations since the worker's start, part of the fence. */
  readonly workerOperations: number;
}

export interface Capabilities {
  /** Lowest HAProxy version of the fleet, for example `3.0`. */
  readonly haproxy: string;
  /** Operation kinds the agent executes. */
  readonly operationKinds: ReadonlySet<string>;
  readonly maxOperations: number;
}

export type Verdict = 'runtime' | 'files' | 'reload';

/** Why a change needs a reload. `cause` is a stable word for metrics. */
export interface ReloadReason {
  readonly cause:
    | 'unknown-baseline'
    | 'core-changed'
    | 'profile-changed'
    | 'backend-added'
    | 'backend-removed'
    | 'backend-structure'
    | 'server-keywords'
    | 'map-ordered'
    | 'file-changed'
    | 'crt-list-order'
    | 'too-many-operations'
    | 'unsupported-operation';
  /** For people: names what changed. */
  readonly message: string;
}

/** Difference of a plan against one pod's baseline. */
export interface ChangeSet {
  /** `runtime`: operations reach the plan; `files`: at most files differ that nothing loaded; else `reload`. */
  readonly verdict: Verdict;
  /** With verdict `runtime`: everything, in the order that never drops traffic. Else empty. */
  readonly operations: readonly Operation[];
  /** With verdict `reload`: what the running worker can take at once. Else empty. */
  readonly inPlaceOperations: readonly Operation[];
  /** At most 32. */
  readonly reasons: readonly ReloadReason[];
  /** Paths whose content differs from the applied plan, or all when that is unknown. */
  readonly changedFiles: ReadonlySet<string>;
  readonly planId: Digest;
}
