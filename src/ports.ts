import type { Observable } from 'rxjs';
import type { Checked, GatePhase } from './gate/verdict.ts';
import type { KubeErrorCode } from './kube/client.ts';
import type { Verdict as ChangeVerdict } from './plan/change-set.ts';
import type { AgentState, ApplyConflict, ApplyOutcome, StoredPlan } from './protocol/answers.ts';
import type { Digest, Manifest } from './protocol/protocol.ts';
import type {
  DataplaneSettings,
  EngineFacts,
  Render,
  RenderFailure,
  RenderResult,
} from './render/render.ts';
import type { ContentOutcome } from './snapshot/content.ts';
import type { ObjectKey, ObjectRef } from './snapshot/objects.ts';
import type { Problem } from './snapshot/problem.ts';
import type { Snapshot } from './snapshot/snapshot.ts';
import type { Quarantined } from './quarantine/quarantine.ts';
import type { StoredQuarantine } from './quarantine/stored.ts';
import type { WatchedResource, WatchEvent } from './snapshot/watch.ts';

/** Where objects come from: a directory of manifests, or the API server. */
export interface ResourceSource {
  /** Cold; errors only when the source is lost for good. */
  watch(resource: WatchedResource): Observable<WatchEvent>;
  /**
   * The whole object of a resource whose watch brings metadata alone (`store: on-demand`). Emits once and never errors;
   * after `Unreadable` it completes when it is time to ask again. Absent: watches always bring whole objects.
   */
  readonly get?: (resource: WatchedResource, key: ObjectKey) => Observable<ContentOutcome>;
  /** What the source could not read; the newest list of all open problems. */
  readonly problems$: Observable<readonly Problem[]>;
}

/** A compiled configuration: what to watch, and how to render a snapshot of it. */
export interface RenderEngine extends EngineFacts {
  /**
   * Renders in slices that yield to the event loop; emits exactly one result and never errors. Unsubscribing stops it
   * without effect outside; cells it finished are kept for the next render.
   */
  render(snapshot: Snapshot): Observable<RenderResult>;
  /** What the cells made for each of these objects have read in the newest snapshot, as `TemplateEngine.readsFor`. */
  readsFor(objects: readonly ObjectRef[]): (object: ObjectRef) => ReadonlySet<string>;
  /** Another renderer of the same configuration, which knows nothing of what this one rendered. */
  fork(): RenderEngine;
}

/** Where a configuration comes from; nothing of it for one that is not the object's newest state. */
export interface ConfigOrigin {
  readonly object?: ObjectRef;
  /** `metadata.generation` of that object. */
  readonly observedGeneration?: number;
  /** Of one that was accepted: its spec, as it came. */
  readonly spec?: unknown;
}

/** A configuration that compiled, or the reasons why a new one was refused (the old one stays). */
export type ConfigEvent = ConfigOrigin &
  (
    | { readonly ok: true; readonly engine: RenderEngine }
    | { readonly ok: false; readonly problems: readonly Problem[] }
  );

/** One HAProxy pod. Another uid or container start is another pod. */
export interface Pod {
  /** Unique and stable for this pod's life: `namespace/name/uid/start`. */
  readonly key: string;
  readonly name: string;
  /** Base URL of its agent. */
  readonly url: string;
}

export type Leadership =
  { readonly leading: true; readonly epoch: number } | { readonly leading: false };

/** How to speak with one agent. Each call is cold, aborts on unsubscribe and errors with {@link AgentError}. */
export interface AgentClient {
  state(pod: Pod, options: { readonly verify: boolean }): Observable<AgentState>;
  plan(pod: Pod): Observable<StoredPlan>;
  /** `content` yields the bytes of each inlined file part and then the plan. */
  apply(pod: Pod, request: ApplyRequest): Observable<ApplyOutcome | ApplyConflict>;
}

export interface ApplyRequest {
  readonly manifest: Manifest;
  /** One buffer for each file with `inline`, in manifest order. */
  readonly parts: readonly Uint8Array[];
  /** Serialised plan, empty when `planLength` is 0. */
  readonly plan: string;
}

/** Asks HAProxy about one render; unsubscribing kills the check. Never errors: failures are inconclusive verdicts. */
export type Checker = (render: Render) => Observable<Checked>;

/** Everything the controller needs from outside; tests inject their own. */
export interface Ports {
  readonly resources: ResourceSource;
  /** Errors never; the first value may be a refusal. */
  readonly config$: Observable<ConfigEvent>;
  /** The newest set of HAProxy pods by key. */
  readonly pods$: Observable<ReadonlyMap<string, Pod>>;
  readonly leader$: Observable<Leadership>;
  readonly agents: AgentClient;
  readonly check: Checker;
  /** The same, beside the gate's checks: for the search of objects at fault. Default: `check`. */
  readonly searchCheck?: Checker;
  /** What was in quarantine before, for a start and for each term. Cold; never errors. Default: nothing. */
  readonly storedQuarantine$?: Observable<StoredQuarantine>;
  /** Version of the HAProxy that `check` asks; absent: that of every pod. */
  readonly checkerVersion?: string | undefined;
  /** Emits once: no new work, what is in flight may end, then everything completes. */
  readonly shutdown$: Observable<unknown>;
  /** Further observers of the pipeline (S56). */
  readonly observers: readonly Observer[];
}

/** An observer of shared streams: whatever it emits joins the controller's notifications. */
export type Observer = (streams: ControllerStreams) => Observable<Notification>;

export interface ControllerStreams {
  readonly snapshot$: Observable<Snapshot>;
  readonly render$: Observable<Render>;
  readonly desired$: Observable<Desired>;
  readonly notifications$: Observable<Notification>;
}

/**
 * What the fleet shall hold now, as a level: every agent sink brings its pod there, whatever it missed before.
 */
export interface Desired {
  readonly epoch: number;
  readonly phase: GatePhase;
  /** What a pod gets: the newest dispatched render while open; while holding the accepted one (undefined: none yet). */
  readonly target: Render | undefined;
  /** Newest render the gate passed in this term. */
  readonly accepted: Render | undefined;
  /**
   * While held after a refusal: the plan ids nobody may stay on without having loaded them (the refused render and later
   * unaccepted ones that were dispatched). Empty otherwise.
   */
  readonly refused: ReadonlySet<Digest>;
  /** Version of the HAProxy that refused them; its verdict takes no pod of another minor version back. Absent: of every pod. */
  readonly checkerVersion?: string | undefined;
  /** While held: newest render, whose servers of structurally unchanged backends still flow to the workers. */
  readonly servers: Render | undefined;
  /** Milliseconds from now before which no reload may start. */
  readonly reloadNotBeforeMs: number;
  /** Pacing of the newest configuration. */
  readonly settings: DataplaneSettings;
}

/** Everything that happens, for logs, metrics and tests; one stream, no bus. */
export type Notification =
  | (ConfigOrigin & {
      readonly type: 'ConfigLoaded';
      readonly generation: string;
      readonly watched: readonly string[];
    })
  | (ConfigOrigin & { readonly type: 'ConfigRefused'; readonly problems: readonly Problem[] })
  | { readonly type: 'SourceProblems'; readonly problems: readonly Problem[] }
  | { readonly type: 'Snapshot'; readonly snapshot: Snapshot }
  | { readonly type: 'Rendered'; readonly render: Render; readonly durationMs: number }
  | { readonly type: 'RenderFailed'; readonly failure: RenderFailure; readonly durationMs: number }
  | { readonly type: 'ReconciliationCompleted'; readonly ok: boolean; readonly durationMs: number }
  | {
      readonly type: 'GateChanged';
      readonly phase: GatePhase;
      readonly accepted: Digest | undefined;
    }
  | { readonly type: 'Checked'; readonly checked: Checked }
  /** The gate's newest accepted render; also when it is the same plan from a newer snapshot. */
  | { readonly type: 'Accepted'; readonly render: Render }
  /** A render that the gate holds back, or takes back, because HAProxy refuses its plan. */
  | { readonly type: 'Refused'; readonly render: Render; readonly problems: readonly Problem[] }
  /** The objects that are not rendered as they are, since the list changed. */
  | {
      readonly type: 'Quarantine';
      readonly objects: readonly Quarantined[];
      /** What is to be kept of it for whoever takes over. */
      readonly stored: () => StoredQuarantine;
    }
  | {
      readonly type: 'Reverting';
      readonly refused: readonly Digest[];
      readonly to: Digest | undefined;
    }
  | { readonly type: 'Deploying'; readonly desired: Desired }
  | AgentNotification
  /** The newest set of HAProxy pods. */
  | { readonly type: 'PodsFound'; readonly pods: ReadonlyMap<string, Pod> }
  | { readonly type: 'Leadership'; readonly leadership: Leadership }
  /** The API server took a write of ours; `bytes` is the size of its body. */
  | { readonly type: 'Written'; readonly kind: string; readonly bytes: number }
  | {
      /** A call by which something was to be written to the API server failed; what is written follows what is, so it is tried again. */
      readonly type: 'WriteFailed';
      readonly kind: string;
      readonly outcome: KubeErrorCode | 'withheld';
      readonly problem: Problem;
      /** It was told before, and nothing of this kind has succeeded since. */
      readonly repeated: boolean;
    }
  /** An observer of the pipeline failed and is left out from here on; the pipeline goes on. */
  | { readonly type: 'ObserverFailed'; readonly message: string }
  | { readonly type: 'ShuttingDown' };

/** What happened at one pod. */
export type AgentNotification =
  | {
      readonly type: 'Applied';
      readonly pod: Pod;
      readonly planId: Digest;
      readonly verdict: ChangeVerdict | 'noop';
      readonly reverted: boolean;
      readonly outcome: ApplyOutcome;
      /** Counts of the controller's manifest. */
      readonly operations: number;
      /** Why a reload was needed, for people, and as stable words for metrics. */
      readonly reasons: readonly string[];
      readonly causes: readonly string[];
      readonly durationMs: number;
    }
  | {
      readonly type: 'ApplyFailed';
      readonly pod: Pod;
      readonly planId: Digest | undefined;
      /** `rejected`: the pod's HAProxy or agent refused; `unreachable`; `conflict`: fenced off three times. */
      readonly cause: 'rejected' | 'unreachable' | 'conflict' | 'stale-epoch';
      /** With `stale-epoch`: the highest epoch that the agent has seen. */
      readonly highestEpoch?: number;
      readonly message: string;
      readonly retryInMs: number;
    }
  | {
      readonly type: 'ReloadDone';
      readonly pod: Pod;
      readonly planId: Digest;
      readonly ok: boolean;
      readonly message: string;
      readonly durationMs: number;
    }
  | {
      readonly type: 'DriftFound';
      readonly pod: Pod;
      readonly kind: 'file' | 'mode' | 'runtime' | 'worker' | 'plan';
      readonly details: readonly string[];
    }
  | { readonly type: 'AgentState'; readonly pod: Pod; readonly state: AgentState }
  /** The pod was found to hold its target: nothing was sent. */
  | { readonly type: 'UpToDate'; readonly pod: Pod; readonly planId: Digest }
  | { readonly type: 'PodGone'; readonly pod: Pod };

/** The agent could not be asked; `code` is stable. */
export class AgentError extends Error {
  readonly code: 'unreachable' | 'timeout' | 'protocol' | 'not-ready' | 'unauthorized';
  constructor(code: AgentError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentError';
    this.code = code;
  }
}

/** The notification of one type, for `filter`. */
export type NotificationOf<T extends Notification['type']> = Extract<Notification, { type: T }>;

export const isType =
  <T extends Notification['type']>(type: T) =>
  (notification: Notification): notification is NotificationOf<T> =>
    notification.type === type;
