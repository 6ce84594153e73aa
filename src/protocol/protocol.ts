/**
 * Messages between controller and agent (docs/protocol.md). This folder imports nothing, so both sides share it.
 *
 * Transport: HTTP. `GET /v1/state[?verify=1]` answers {@link AgentState}, `GET /v1/plan` answers {@link StoredPlan},
 * `POST /v1/apply` takes a framed body (see {@link FRAME_MAGIC}) and answers {@link ApplyOutcome} with status
 * 200 (outcome other than `rejected`), 409 ({@link ApplyConflict}), 422 (`rejected`), 400 (bad request) or 503 (not ready).
 */

/** Version of this protocol; an agent refuses manifests of another major version. */
export const PROTOCOL_VERSION = 1;

/**
 * Framing of `POST /v1/apply` (`application/x-haptic-apply`): 4 bytes magic `HPT1`, 4 bytes big-endian length of the
 * manifest JSON, the manifest, then for each file part that has `inline` (in manifest order) exactly `inline.length` raw
 * bytes, then `planLength` bytes of the serialised plan (0 = none).
 */
export const FRAME_MAGIC = 'HPT1';

/** Limits enforced on both sides (counts, bytes, milliseconds). */
export const LIMITS = {
  manifestBytes: 16 * 1024 * 1024,
  bodyBytes: 256 * 1024 * 1024,
  planBytes: 64 * 1024 * 1024,
  files: 65_536,
  pathBytes: 255,
  operations: 8_000,
  commandLineBytes: 12 * 1024,
  /** Largest TLS file that goes to a worker by commands. */
  tlsFileBytes: 1024 * 1024,
  /** Options, and server names, of one line of a certificate list. */
  crtListWords: 256,
  commandTimeoutMs: 5_000,
  /** Key and value of one map entry together, so that it fits a command line whatever its escapes. */
  mapEntryBytes: 4 * 1024,
  reloadTimeoutMs: 60_000,
  knownBadMs: 60_000,
  /** Longest silence of a client in the middle of a body; the agent is locked meanwhile. */
  bodyIdleMs: 10_000,
  /** Servers taken out of service that wait for their connections to end before they are deleted. */
  pendingDeletes: 1_000,
  /** Operations kept beside the running plan; beyond that the stored plan is unknown to a new leader. */
  storedOperations: 100_000,
} as const;

/** Lower-case hex SHA-256. */
export type Digest = string;

/** `config` is the main file, written last. `cert`, `ca`, `crl` and `crt-list` hold TLS material and get mode 0600. */
export type FileKind = 'config' | 'map' | 'cert' | 'ca' | 'crl' | 'crt-list' | 'general';

/** One file the pod shall hold. Absence from the list means delete (only of files this agent wrote). */
export interface ManifestFile {
  /** Relative to the base directory, canonical, no `..`, no component that starts with a dot. */
  readonly path: string;
  readonly kind: FileKind;
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  /**
   * Where the bytes come from when the pod does not hold `digest` at `path` yet. Whole content: offset 0 and no `base`.
   * Patch: `base` is the digest of what the pod holds; its bytes [offset, offset+replaced) become the inline bytes.
   */
  readonly inline?: {
    readonly length: number;
    readonly base?: Digest;
    readonly offset?: number;
    readonly replaced?: number;
  };
}

export type ServerState = 'ready' | 'drain' | 'maint';

/** One runtime command, or a small group that belongs together. Every string is validated again by the agent. */
export type Operation =
  | {
      readonly kind: 'server_add';
      readonly backend: string;
      readonly server: string;
      readonly address: string;
      readonly port: number;
      readonly weight: number;
      readonly state: ServerState;
      /** Further words of `add server`, each one token (for example `check`, `maxconn`, `10`). */
      readonly keywords: readonly string[];
    }
  | { readonly kind: 'server_remove'; readonly backend: string; readonly server: string }
  | {
      readonly kind: 'server_address';
      readonly backend: string;
      readonly server: string;
      readonly address: string;
      readonly port: number;
    }
  | {
      readonly kind: 'server_weight';
      readonly backend: string;
      readonly server: string;
      readonly weight: number;
    }
  | {
      readonly kind: 'server_state';
      readonly backend: string;
      readonly server: string;
      readonly state: ServerState;
    }
  | {
      readonly kind: 'map_add';
      readonly map: string;
      readonly key: string;
      readonly value: string;
    }
  | {
      readonly kind: 'map_set';
      readonly map: string;
      readonly key: string;
      readonly value: string;
    }
  | { readonly kind: 'map_delete'; readonly map: string; readonly key: string }
  | {
      /** Replaces the whole content atomically (prepare, add, commit). */
      readonly kind: 'map_replace';
      readonly map: string;
      readonly entries: readonly (readonly [key: string, value: string])[];
    }
  | {
      /** Sets the `maxconn` of a server; 0: no limit. */
      readonly kind: 'server_maxconn';
      readonly backend: string;
      readonly server: string;
      readonly maxconn: number;
    }
  | BackendOperation
  | TlsFileOperation
  | CrtListOperation;

/**
 * From HAProxy 3.4 on. A backend that is added builds on a named `defaults` section which the worker has loaded; it is empty
 * and unpublished: servers are added, then it is published. One that is removed is unpublished and has lost its servers, the
 * deletion itself happens when nothing uses it any more.
 */
export type BackendOperation =
  | {
      readonly kind: 'backend_add';
      readonly backend: string;
      /** Name of the `defaults` section. */
      readonly profile: string;
      readonly mode: 'http' | 'tcp';
      /** Digest of the backend's structure in the plan: for whoever replays the operations, the agent has no use for it. */
      readonly structure: Digest;
    }
  | { readonly kind: 'backend_publish'; readonly backend: string }
  | { readonly kind: 'backend_unpublish'; readonly backend: string }
  | { readonly kind: 'backend_remove'; readonly backend: string };

/**
 * TLS material that the worker keeps under the name of its file. The content is what the same manifest puts (or leaves) at
 * `file`, so it never stands in an operation; `digest` says which one it is. `*_add` leaves the worker with this content
 * whether it had the file or not; `*_set` has nothing to do where the worker has not loaded the file. `*_remove` waits until it
 * is not in use; what the configuration itself names stays.
 */
export type TlsFileOperation =
  | {
      readonly kind: 'cert_add' | 'cert_set' | 'ca_add' | 'ca_set' | 'crl_add' | 'crl_set';
      readonly file: string;
      readonly digest: Digest;
    }
  | { readonly kind: 'cert_remove' | 'ca_remove' | 'crl_remove'; readonly file: string };

/** One line of a crt-list: a certificate file, SSL options of the bind line, and the server names it answers to. */
export interface CrtListEntry {
  readonly certificate: string;
  /** Words between the brackets, for example `['alpn', 'h2,http/1.1']`; empty = none. */
  readonly options: readonly string[];
  /** For example `shop.example`, `*.shop.example`; empty = the names in the certificate. */
  readonly filters: readonly string[];
}

/** `crtlist_delete` names the whole line, since a certificate may stand on several. */
export interface CrtListOperation {
  readonly kind: 'crtlist_add' | 'crtlist_delete';
  readonly list: string;
  readonly entry: CrtListEntry;
}

export type OperationKind = Operation['kind'];

/** All operation kinds this version knows; reported by the agent as `operationKinds`. */
export const OPERATION_KINDS: readonly OperationKind[] = [
  'server_add',
  'server_remove',
  'server_address',
  'server_weight',
  'server_state',
  'map_add',
  'map_set',
  'map_delete',
  'map_replace',
  'server_maxconn',
  'backend_add',
  'backend_publish',
  'backend_unpublish',
  'backend_remove',
  'cert_add',
  'cert_set',
  'cert_remove',
  'ca_add',
  'ca_set',
  'ca_remove',
  'crl_add',
  'crl_set',
  'crl_remove',
  'crtlist_add',
  'crtlist_delete',
];

/**
 * `auto`: run `operations` when the baseline is as expected, reload where `reload` is true.
 * `reload`: write the files and reload. `revert`: as `auto`, but cancels a pending reload first and answers 409
 * (`target_running`) when a plan of `refused` is meanwhile running.
 */
export type ApplyMode = 'auto' | 'reload' | 'revert';

export interface Manifest {
  readonly protocol: typeof PROTOCOL_VERSION;
  readonly planId: Digest;
  /** Leader term and sequence inside it; an older epoch is answered with 409 `stale_epoch`. */
  readonly epoch: number;
  readonly sequence: number;
  /**
   * Who leads; at most 253 characters. Two that lead with one epoch (somebody deleted the Lease) are told apart by it: the second
   * to write is answered with 409 `stale_epoch`. Absent or empty: nobody is told apart.
   */
  readonly leader?: string;
  /** Fence: what the controller believes the pod holds; `undefined` members are not checked, null means "unknown". */
  readonly expected: {
    readonly applied?: Digest | null;
    readonly running?: Digest | null;
    /** Count of operations executed since the worker started, as the controller knows it. */
    readonly workerOperations?: number;
  };
  readonly mode: ApplyMode;
  /** With mode `auto` or `revert`: a reload is needed to reach the plan. */
  readonly reload: boolean;
  /** Why a reload is needed, for people. At most 32. */
  readonly reasons: readonly string[];
  /** Milliseconds from receipt before which no reload may start. */
  readonly reloadNotBeforeMs: number;
  /** Least distance of two reloads of this pod in milliseconds. */
  readonly reloadIntervalMs: number;
  /** All files the pod shall hold. Empty only with mode `revert` and `planId` = lkg: the pod's own last known good tree. */
  readonly files: readonly ManifestFile[];
  /** Reach the plan completely, when `reload` is false. */
  readonly operations: readonly Operation[];
  /** What the running worker can already take while a reload is pending or needed. */
  readonly inPlaceOperations: readonly Operation[];
  /** Plan ids the gate refused in this term (mode `revert`). */
  readonly refused?: readonly Digest[];
  /** Newest plan the gate passed: becomes lkg when it is the applied one. */
  readonly validated?: Digest;
  /** Bytes of the serialised plan at the end of the body. */
  readonly planLength: number;
}
