import type { KubeObject, ObjectKey } from './objects.ts';

/**
 * What a watch of one resource yields. Every subscription starts with one `Replaced` (the whole, consistent list; it is
 * the sync mark), then single changes; a re-list is another `Replaced`. There are no partial lists.
 */
export type WatchEvent =
  | { readonly type: 'Replaced'; readonly objects: readonly KubeObject[] }
  | { readonly type: 'Upserted'; readonly object: KubeObject }
  | { readonly type: 'Deleted'; readonly key: ObjectKey };

/** One entry of `watchedResources`, defaults filled in. Durations are milliseconds. */
export interface WatchedResource {
  /** Name in templates: `resources.<name>`. */
  readonly name: string;
  /** Candidates in order of preference, for example `['networking.k8s.io/v1']`. */
  readonly apiVersions: readonly string[];
  /** Plural resource, for example `ingresses`. */
  readonly resources: string;
  readonly optional: boolean;
  /** Empty = all namespaces. */
  readonly namespaces: readonly string[];
  /** Equality terms, all must hold. */
  readonly labelSelector: Readonly<Record<string, string>>;
  /** Field path → value, all must hold. */
  readonly fieldSelector: Readonly<Record<string, string>>;
  /** Field paths whose values, in this order, are the look-up key: `metadata.labels.kubernetes\.io/service-name`. */
  readonly indexBy: readonly string[];
  /** Field paths dropped when an object enters. */
  readonly ignoreFields: readonly string[];
  readonly store: 'full' | 'on-demand';
  readonly debounceMs: number;
  readonly maxWaitMs: number;
}
