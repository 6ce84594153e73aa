import type { Plan } from '../plan/plan.ts';
import type { FileKind } from '../protocol/protocol.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Needs } from '../snapshot/content.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import type { Chunk } from '../cells/chunk.ts';
import type { MadeLine } from './made-line.ts';

/** One file of a render: its bytes are the concatenated chunks, UTF-8. */
export interface RenderedFile {
  readonly path: string;
  readonly kind: FileKind;
  readonly text: Chunk;
}

/** Which template line printed which line of the configuration, and for which object. */
export interface Provenance {
  readonly template: string;
  readonly line: number;
  readonly object: ObjectRef | undefined;
}

/** What a template asks to be written to an object's status. */
export interface StatusPatch {
  readonly object: ObjectRef;
  readonly status: Readonly<Record<string, unknown>>;
}

/** The cells of a render, and what the engine holds after it. */
export interface RenderCells {
  readonly evaluated: number;
  /** Taken from the render before. */
  readonly reused: number;
  /** Cells that are kept for the next render. */
  readonly live: number;
  /** Distinct things that those have read. */
  readonly reads: number;
}

/** The tree of cells for one snapshot, flattened to what the pipeline needs. */
export interface Render {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
  /** Configuration generation it was rendered with. */
  readonly generation: string;
  /** Version of HAProxy that it was rendered for: the lowest of the fleet, for example `3.4.7`. */
  readonly haproxyVersion: string;
  /** Settings of that configuration, so that whoever deploys the render paces it as it says. */
  readonly settings: DataplaneSettings;
  /** Every file of the pod by path, the configuration included. Texts are shared with earlier renders. */
  readonly files: ReadonlyMap<string, RenderedFile>;
  readonly problems: readonly Problem[];
  readonly statuses: readonly StatusPatch[];
  readonly cells: RenderCells;
  /** Line of the configuration file, counted from 1. */
  provenance(line: number): Provenance | undefined;
  /** All lines of a file with what made them. Costs the size of the render: for explanations only. */
  lines(path: string): Iterable<MadeLine>;
}

export type RenderPhase = 'config' | 'snapshot' | 'template' | 'plan';

export interface RenderFailure {
  readonly phase: RenderPhase;
  readonly problems: readonly Problem[];
}

export type RenderResult = (
  | { readonly ok: true; readonly render: Render }
  | {
      readonly ok: false;
      readonly failure: RenderFailure;
      /** Nothing is wrong, but content that the render needs is not there yet. */
      readonly awaits?: true;
    }
) & {
  /** Objects of on-demand resources that the cells look at. Absent: as before. */
  readonly needs?: Needs;
};

/** What a compiled configuration tells about itself. */
export interface EngineFacts {
  readonly generation: string;
  readonly watched: readonly WatchedResource[];
  readonly settings: DataplaneSettings;
  /** How replicas work together, and what they publish. */
  readonly controller: ControllerSettings;
  /** Labels of the fleet's pods. */
  readonly podSelector: Readonly<Record<string, string>>;
  /** Sources of the templates that protect what they are printed for (`protective: true`), and of what they include. */
  readonly protective: ReadonlySet<string>;
}

/**
 * A compiled configuration as pure steps: every `next()` does a little work, the generator's return value is the result.
 * Abandoning it has no effect outside; cells it finished are kept for the next render. Starting another render supersedes
 * the one before.
 */
export interface TemplateEngine extends EngineFacts {
  steps(snapshot: Snapshot): Generator<void, RenderResult>;
  /** Cells that are kept, and distinct things they have read. */
  stats(): { readonly cells: number; readonly reads: number };
  /**
   * Keys of everything that the cells made for each of these objects have read in the newest snapshot. Looks once at all
   * cells.
   */
  readsFor(objects: readonly ObjectRef[]): (object: ObjectRef) => ReadonlySet<string>;
  /** Another renderer of the same templates, which knows nothing of what this one rendered. */
  fork(): TemplateEngine;
}

/** `spec.dataplane`; durations in milliseconds, paths relative to the pod's base directory. */
export interface DataplaneSettings {
  readonly port: number;
  readonly minDeploymentIntervalMs: number;
  readonly driftPreventionIntervalMs: number;
  readonly deploymentTimeoutMs: number;
  readonly configPublishIntervalMs: number;
  /** Absolute directory HAProxy and agent share in each pod, for example `/etc/haproxy`. */
  readonly baseDir: string;
  readonly mapsDir: string;
  readonly sslCertsDir: string;
  readonly generalStorageDir: string;
  readonly configFile: string;
}

/** `spec.controller.leaderElection`; durations in milliseconds. */
export interface LeaderElectionSettings {
  /** False: there is one replica, and it leads. */
  readonly enabled: boolean;
  /** Name of the Lease in the controller's namespace. Default: the name of the configuration. */
  readonly leaseName: string;
  /** After this time without renewal the lease is anybody's. Default 30000. */
  readonly leaseDurationMs: number;
  /** A leader that cannot renew for this long stops leading. Default 20000. */
  readonly renewDeadlineMs: number;
  /** Between two attempts. Default 5000. */
  readonly retryPeriodMs: number;
}

/** `spec.controller.configPublishing`. */
export interface ConfigPublishingSettings {
  /** Default true. */
  readonly enabled: boolean;
  /** Content of at least this many bytes is compressed. Default 64 KiB. */
  readonly compressionThreshold: number;
}

/** `spec.controller`: how the replicas of the controller work together, and what they publish. */
export interface ControllerSettings {
  readonly leaderElection: LeaderElectionSettings;
  readonly configPublishing: ConfigPublishingSettings;
}
