/**
 * Immutable map from string to value, made of shards: an update copies the shards it touches, and two versions of one
 * map are compared by descending only into shards that are not the same object. Equality of values is identity.
 */

const SHARDS = 1024;
type Shard<V> = ReadonlyMap<string, V>;
const EMPTY_SHARD: Shard<never> = new Map<string, never>();

/** FNV-1a over UTF-16 units: fast, stable, spreads names; nobody relies on it against collisions. */
export const shardOf = (key: string): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  }
  return (hash ^ (hash >>> 16)) & (SHARDS - 1);
};

export const byCodeUnits = (left: string, right: string): number =>
  left < right ? -1 : left > right ? 1 : 0;

export class PersistentMap<V> {
  static readonly EMPTY: PersistentMap<never> = new PersistentMap<never>(
    new Array<Shard<never>>(SHARDS).fill(EMPTY_SHARD),
    0,
  );

  readonly size: number;
  readonly #shards: readonly Shard<V>[];
  #keys: readonly string[] | undefined;

  private constructor(shards: readonly Shard<V>[], size: number) {
    this.#shards = shards;
    this.size = size;
  }

  static from<V>(entries: Iterable<readonly [string, V]>): PersistentMap<V> {
    return (PersistentMap.EMPTY as PersistentMap<V>).with(new Map(entries));
  }

  get(key: string): V | undefined {
    return this.#shards[shardOf(key)]?.get(key);
  }

  has(key: string): boolean {
    return this.#shards[shardOf(key)]?.has(key) ?? false;
  }

  /** Sorted by code units; computed once, and carried along small changes. */
  keys(): readonly string[] {
    this.#keys ??= this.#shards.flatMap((shard) => [...shard.keys()]).sort(byCodeUnits);
    return this.#keys;
  }

  /** In the order of {@link keys}. */
  *values(): Generator<V> {
    for (const key of this.keys()) yield this.get(key) as V;
  }

  *entries(): Generator<readonly [string, V]> {
    for (const key of this.keys()) yield [key, this.get(key) as V];
  }

  /** A map with these keys set (value) or removed (undefined); itself when nothing differs. */
  with(changes: ReadonlyMap<string, V | undefined>): PersistentMap<V> {
    const touched = new Map<number, Map<string, V>>();
    const keySetChanges: string[] = [];
    let size = this.size;
    for (const [key, value] of changes) {
      const index = shardOf(key);
      const shard = touched.get(index) ?? this.#shards[index] ?? EMPTY_SHARD;
      if (holds(shard, key, value)) continue;
      const copy = touched.get(index) ?? new Map(shard);
      touched.set(index, copy);
      const grows = assign(copy, key, value);
      if (grows !== 0) keySetChanges.push(key);
      size += grows;
    }
    if (touched.size === 0) return this;
    const shards = this.#shards.slice();
    for (const [index, shard] of touched) shards[index] = shard;
    const next = new PersistentMap(shards, size);
    next.#keys = this.#carryKeys(next, keySetChanges);
    return next;
  }

  /** Keys whose values differ from those of an earlier version, in no stated order. */
  *differences(
    before: PersistentMap<V>,
  ): Generator<{ key: string; before: V | undefined; after: V | undefined }> {
    for (let index = 0; index < SHARDS; index += 1) {
      const old: Shard<V> = before.#shards[index] ?? EMPTY_SHARD;
      const now: Shard<V> = this.#shards[index] ?? EMPTY_SHARD;
      if (old === now) continue;
      for (const [key, value] of now) {
        if (old.get(key) !== value) yield { key, before: old.get(key), after: value };
      }
      for (const [key, value] of old) {
        if (!now.has(key)) yield { key, before: value, after: undefined };
      }
    }
  }

  /** Indexes of shards that are not the same object as in `other`, for derived per-shard caches. */
  shard(index: number): ReadonlyMap<string, V> {
    return this.#shards[index] ?? EMPTY_SHARD;
  }

  static readonly shards = SHARDS;

  #carryKeys(next: PersistentMap<V>, changed: readonly string[]): readonly string[] | undefined {
    if (this.#keys === undefined || changed.length > 64)
      return changed.length === 0 ? this.#keys : undefined;
    const keys = this.#keys.slice();
    for (const key of changed) {
      const at = lowerBound(keys, key);
      if (next.has(key)) {
        if (keys[at] !== key) keys.splice(at, 0, key);
      } else if (keys[at] === key) keys.splice(at, 1);
    }
    return keys;
  }
}

/** Nothing would change: the value is there, or the key to be removed is not. */
const holds = <V>(shard: Shard<V>, key: string, value: V | undefined): boolean =>
  shard.get(key) === value && (value !== undefined || !shard.has(key));

/** Sets or removes one key; how much the size changes. */
const assign = <V>(shard: Map<string, V>, key: string, value: V | undefined): number => {
  const grows = Number(value !== undefined) - Number(shard.has(key));
  if (value === undefined) shard.delete(key);
  else shard.set(key, value);
  return grows;
};

const lowerBound = (keys: readonly string[], key: string): number => {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (byCodeUnits(keys[middle] as string, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
};
