import type { PersistentMap } from '../cells/persistent-map.ts';
import type { KubeObject, ObjectKey } from './objects.ts';

/**
 * Content of objects of resources with `store: on-demand`. An object whose content was not asked for yet is its metadata
 * alone; it has the apiVersion that the API server itself gives to metadata, so it cannot be mistaken for a real object.
 */
const METADATA_VERSION = 'meta.k8s.io/v1';

/** An object of which somebody needs the content. */
export interface Need {
  /** Name in `watchedResources`. */
  readonly resource: string;
  readonly key: ObjectKey;
}

/** What a render needs, by {@link needKey}, whether it is there or not. */
export type Needs = PersistentMap<Need>;

export const needKey = (resource: string, namespace: string, name: string): string =>
  JSON.stringify(['get', resource, namespace, name]);

/** What came of asking for the content of an object. */
export type ContentOutcome =
  | { readonly type: 'Found'; readonly object: KubeObject }
  /** There is no such object (any more). */
  | { readonly type: 'Gone' }
  /** It cannot be had for now; `reason` is for people. */
  | { readonly type: 'Unreadable'; readonly reason: string };

/** The object without its content. */
export const metadataOf = ({ metadata }: KubeObject): KubeObject => ({
  apiVersion: METADATA_VERSION,
  kind: 'PartialObjectMetadata',
  metadata,
});

/** The object as one whose content cannot be had for now. */
export const withoutContent = (object: KubeObject, reason: string): KubeObject => ({
  ...metadataOf(object),
  unreadable: reason,
});

export const hasContent = ({ apiVersion }: KubeObject): boolean => apiVersion !== METADATA_VERSION;

/** Why the content cannot be had; undefined when it is there, or was not asked for yet. */
export const unreadableReason = (object: KubeObject): string | undefined =>
  hasContent(object) ? undefined : (object['unreadable'] as string | undefined);

/** Whether the content may still come, so that nothing can be said without it. */
export const isAwaited = (object: KubeObject): boolean =>
  !hasContent(object) && unreadableReason(object) === undefined;
