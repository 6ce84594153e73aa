import type { PersistentMap } from '../cells/persistent-map.ts';
import type { ObjectKey } from '../snapshot/objects.ts';
import { deepEqual } from './fields.ts';

/** What one owner claims before and after a change, by key. */
export interface ClaimChange<T> {
  readonly owner: ObjectKey;
  readonly before: ReadonlyMap<string, T> | undefined;
  readonly after: ReadonlyMap<string, T> | undefined;
}

/** Claims of many owners on many keys, and the keys that have changed since they were last taken. */
export class ClaimTable<T> {
  readonly #claims = new Map<string, Map<ObjectKey, T>>();
  #touched = new Set<string>();

  /** Claims on `key`, in no stated order. */
  of(key: string): readonly T[] {
    return [...(this.#claims.get(key)?.values() ?? [])];
  }

  has(key: string): boolean {
    return this.#claims.has(key);
  }

  /** Replaces what an owner claims; every key of before and after is touched. */
  replace({ owner, before, after }: ClaimChange<T>): void {
    for (const key of before?.keys() ?? []) {
      this.#touched.add(key);
      const claims = this.#claims.get(key);
      claims?.delete(owner);
      if (claims?.size === 0) this.#claims.delete(key);
    }
    for (const [key, claim] of after ?? []) {
      this.#touched.add(key);
      const claims = this.#claims.get(key) ?? new Map<ObjectKey, T>();
      this.#claims.set(key, claims.set(owner, claim));
    }
  }

  touch(key: string): void {
    this.#touched.add(key);
  }

  /** The touched keys; none is touched afterwards. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched;
    this.#touched = new Set();
    return touched;
  }
}

/** The map with the records of `keys` computed anew; records that come out equal keep their identity. */
export const recomputed = <V>(
  map: PersistentMap<V>,
  keys: ReadonlySet<string>,
  compute: (key: string) => V | undefined,
): PersistentMap<V> => {
  const changes = new Map<string, V | undefined>();
  for (const key of keys) {
    const [before, after] = [map.get(key), compute(key)];
    changes.set(key, deepEqual(before, after) ? before : after);
  }
  return map.with(changes);
};
