import type { PersistentMap } from '../cells/persistent-map.ts';
import type { KubeObject, ObjectKey } from './objects.ts';

/** Immutable view of all objects of one watched resource. Look-ups cost the same for any number of objects. */
export interface Store {
  readonly size: number;
  /** All, by `namespace/name`. */
  readonly objects: PersistentMap<KubeObject>;
  /** By namespace and name. */
  get(namespace: string, name: string): KubeObject | undefined;
  /** By the values of the first `keys.length` indexBy fields; sorted by namespace, then name. */
  fetch(...keys: readonly string[]): readonly KubeObject[];
  /** All, sorted by namespace, then name; computed once per store and kept. */
  list(): readonly KubeObject[];
}

/** One object that differs between two snapshots. */
export interface ObjectChange {
  readonly resource: string;
  readonly key: ObjectKey;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/**
 * Immutable view of every watched object. `changes` leads from the snapshot with `version - 1` to this one, so that
 * incremental work follows the change; whoever missed a version starts from scratch.
 */
export interface Snapshot {
  /** Counts up by one with every change. */
  readonly version: number;
  readonly changes: readonly ObjectChange[];
  /** Throws RangeError for a resource that is not watched. */
  store(resource: string): Store;
  readonly resources: readonly string[];
}
