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

/** Keys between two yields: about a millisecond of work, some more where key pairs are read. */
const SLICE = 128;
/** Records that enter the map together: the fewer times, the less is copied. */
const MERGED = 2_048;

/** The map with the records of `keys` computed anew, in steps; records that come out equal keep their identity. */
export function* recomputed<V>(
  map: PersistentMap<V>,
  keys: ReadonlySet<string>,
  compute: (key: string) => V | undefined,
): Generator<void, PersistentMap<V>> {
  let result = map;
  let changes = new Map<string, V | undefined>();
  let count = 0;
  for (const key of keys) {
    const [before, after] = [map.get(key), compute(key)];
    changes.set(key, deepEqual(before, after) ? before : after);
    count += 1;
    if (count % SLICE === 0) yield;
    if (changes.size < MERGED) continue;
    result = result.with(changes);
    changes = new Map();
    yield;
  }
  return result.with(changes);
}
