/** What agents answer (docs/protocol.md). */
import type { Digest, Operation, OperationKind } from './protocol.ts';

export type OutcomeKind = 'runtime' | 'files' | 'reload' | 'scheduled' | 'noop' | 'rejected';

/** Which stage refused. `reload` and `operations` carry HAProxy's own words. */
export type RejectStage = 'request' | 'stage' | 'write' | 'operations' | 'reload';

export interface OperationResult {
  readonly kind: OperationKind;
  readonly target: string;
  readonly ok: boolean;
  readonly message?: string;
}

export interface ApplyOutcome {
  readonly outcome: OutcomeKind;
  readonly roles: Roles;
  readonly error?: { readonly stage: RejectStage; readonly message: string };
  /** With `scheduled`: milliseconds until the reload. */
  readonly reloadInMs?: number;
  /** Failed operations only (at most 32); their failing makes the agent reload instead. */
  readonly failedOperations: readonly OperationResult[];
  readonly operationsRun: number;
  /** Milliseconds. `confirmed` is when the worker had answered the operations or the new worker ran. */
  readonly timings: {
    readonly stage: number;
    readonly write: number;
    readonly operations: number;
    readonly reload: number;
    readonly confirmed: number;
    readonly total: number;
  };
}

export type ConflictReason =
  | 'stale_epoch'
  | 'baseline_mismatch'
  | 'worker_mismatch'
  | 'unknown_baseline'
  | 'missing_content'
  | 'target_running';

export interface ApplyConflict {
  readonly conflict: ConflictReason;
  readonly roles: Roles;
  readonly highestEpoch: number;
  /** With `missing_content`: paths whose bytes must be sent whole. */
  readonly missing?: readonly string[];
}

/** What the pod holds: its baseline. `null` = unknown, and only a full state with a reload leaves that. */
export interface Roles {
  /** Plan whose files are on disk. */
  readonly applied: Digest | null;
  /** Plan the worker was started from. */
  readonly running: Digest | null;
  /** Operations executed since the worker was started. */
  readonly workerOperations: number;
  readonly lkg: Digest | null;
}

export interface AgentState {
  readonly protocol: number;
  readonly agentVersion: string;
  readonly operationKinds: readonly OperationKind[];
  readonly features: readonly string[];
  readonly roles: Roles;
  readonly highestEpoch: number;
  readonly haproxy: {
    /** For example `3.0.11`; empty when HAProxy does not answer. */
    readonly version: string;
    readonly workerPid: number;
    /** Start of the worker in milliseconds since 1970, derived from its uptime; identity is (pid, start). */
    readonly workerStartMs: number;
    /** Old workers that still finish connections, the current one not counted. */
    readonly oldWorkers: number;
  };
  /** Owned files as applied; with `verify=1` the digests are read from disk anew ('' = missing or unreadable). */
  readonly files: readonly {
    readonly path: string;
    readonly digest: Digest;
    readonly size: number;
  }[];
  readonly pendingReload: { readonly planId: Digest; readonly inMs: number } | null;
  readonly pendingDeletes: number;
  readonly lastReload: {
    readonly planId: Digest;
    readonly ok: boolean;
    readonly message: string;
    readonly atMs: number;
    readonly durationMs: number;
  } | null;
  /**
   * With `verify=1`: what somebody else had changed beside contents (those differ in `files`), at most 32 names each:
   * permissions of files, and servers (`backend/server`) and maps of the worker. The agent has set them right by itself, or
   * a reload will.
   */
  readonly drift?: { readonly modes: readonly string[]; readonly runtime: readonly string[] };
}

/** What a new leader needs to go on without a reload. */
export interface StoredPlan {
  readonly planId: Digest | null;
  /** The serialised plan as the controller sent it, opaque to the agent; empty when unknown. */
  readonly plan: string;
  /** Operations executed since the worker was started from that plan, in order. */
  readonly operations: readonly Operation[];
}
