/** What the machine of the quarantine knows, and what happens to it. */
import type { DigestFunction } from '../plan/plan.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import { NO_QUARANTINE, type Quarantine, type Substituted } from './quarantine.ts';
import type { Returns } from './release.ts';
import type { StoredQuarantine } from './stored.ts';
import type { Suspect } from './suspects.ts';

/** Keys of what the cells made for each of these objects have read. */
export type ReadsFor = (
  objects: readonly ObjectRef[],
) => (object: ObjectRef) => ReadonlySet<string>;

/** What a configuration tells about its cells. */
export interface QuarantineFacts {
  readonly generation: string;
  readonly watched: readonly WatchedResource[];
  /** Sources of protective templates. */
  readonly protective: ReadonlySet<string>;
  /** Keys of what the cells made for an object have read. */
  readonly readsFor: ReadsFor;
  /** Hex SHA-256 of UTF-8 text. */
  readonly digest: DigestFunction;
}

/** A snapshot that could be served, and with which configuration. */
export interface Good {
  readonly snapshot: IndexedSnapshot;
  readonly generation: string;
}

/** A snapshot of which it is not known what is wrong with it. */
export interface Wanted {
  readonly bad: IndexedSnapshot;
  readonly good: Good | undefined;
  /** What has to succeed: the render alone, or HAProxy's check of it too. */
  readonly by: 'render' | 'check';
  readonly problems: readonly Problem[];
}

/** The quarantine of one configuration. Immutable. */
export interface QuarantineState {
  readonly facts: QuarantineFacts;
  /** Undefined before the first snapshot. */
  readonly current: Substituted | undefined;
  readonly quarantine: Quarantine;
  /** The last snapshot that rendered, and the last one that HAProxy accepted. */
  readonly rendered: Good | undefined;
  readonly accepted: Good | undefined;
  /** What is to be searched; the same object until it is found or no longer matters. */
  readonly wanted: Wanted | undefined;
  /** Versions that were suspected by name without effect, by place. */
  readonly cleared: ReadonlyMap<string, KubeObject | undefined>;
  /** The newest time of an event, in milliseconds. */
  readonly clock: number;
  /** What was told before the first snapshot. */
  readonly stored: StoredQuarantine | undefined;
  /** How often the same version came in again because something it reads had changed, by place. */
  readonly returns: ReadonlyMap<string, Returns>;
  /** When what is complained of is searched once more; undefined: it was not searched, or it is not to be. */
  readonly searchAgainAt: number | undefined;
  /** The newest complaint about what is rendered now, until something cures it. */
  readonly complaint: Wanted | undefined;
}

/** What happens to a quarantine. */
export type QuarantineEvent =
  | { readonly type: 'watched'; readonly snapshot: IndexedSnapshot; readonly now: number }
  | { readonly type: 'rendered'; readonly snapshot: IndexedSnapshot }
  | {
      readonly type: 'failed';
      readonly snapshot: IndexedSnapshot;
      readonly problems: readonly Problem[];
    }
  | { readonly type: 'accepted'; readonly snapshot: IndexedSnapshot; readonly generation: string }
  | {
      readonly type: 'refused';
      readonly snapshot: IndexedSnapshot;
      readonly generation: string;
      readonly problems: readonly Problem[];
    }
  /** What a search found; undefined: no object is at fault. */
  | {
      readonly type: 'searched';
      readonly wanted: Wanted;
      readonly found: readonly Suspect[] | undefined;
      readonly now: number;
    }
  /** What somebody else, or an earlier life, had in quarantine. */
  | { readonly type: 'restored'; readonly stored: StoredQuarantine }
  /** The time of a {@link nextReturn} has come. */
  | { readonly type: 'due'; readonly now: number };

/** Before the first snapshot. @param stored what was in quarantine before */
export const initialQuarantine = (
  facts: QuarantineFacts,
  stored?: StoredQuarantine,
): QuarantineState => ({
  facts,
  current: undefined,
  quarantine: NO_QUARANTINE,
  stored: stored?.generation === facts.generation ? stored : undefined,
  rendered: undefined,
  accepted: undefined,
  wanted: undefined,
  complaint: undefined,
  searchAgainAt: undefined,
  cleared: new Map(),
  clock: 0,
  returns: new Map(),
});
