import { byCodeUnits, PersistentMap, shardOf } from '../cells/persistent-map.ts';
import type { Digest } from '../protocol/protocol.ts';

/**
 * Immutable map from string to record with a digest that does not depend on the order of insertion. An update costs the
 * change (plus a constant), a comparison of two maps descends only where digests differ.
 */
export interface MerkleMap<V extends { readonly digest: Digest }> {
  readonly size: number;
  /** Digest over all keys and record digests. */
  readonly digest: Digest;
  /** Computes what {@link digest} is made of and is not known yet, in steps of less than a millisecond. */
  digesting(): Generator<void>;
  get(key: string): V | undefined;
  /** Sorted by code units; kept once computed. */
  keys(): readonly string[];
  /** In the order of {@link keys}. */
  values(): Iterable<V>;
  /** A map with these keys set (value) or removed (undefined). */
  with(changes: ReadonlyMap<string, V | undefined>): MerkleMap<V>;
}

/** One difference between two maps. */
export interface Difference<V> {
  readonly key: string;
  readonly before: V | undefined;
  readonly after: V | undefined;
}

interface Digested {
  readonly digest: Digest;
}
type Hash = (text: string) => Digest;

const SHARDS = PersistentMap.shards;
/** Shards are hashed in groups, so that an update hashes two lists of 32 digests and not one of 1024. */
const GROUP = 32;
const GROUPS = SHARDS / GROUP;

/** Digests known so far; shared by versions of a map as long as nothing below them changed. */
interface Tree {
  readonly shards: (Digest | undefined)[];
  readonly groups: (Digest | undefined)[];
  root: Digest | undefined;
}

/** An empty shard, and a group of nothing but those, has the digest ''; most are empty in a small map. */
const emptyTree = (): Tree => ({
  shards: new Array<Digest | undefined>(SHARDS).fill(''),
  groups: new Array<Digest | undefined>(GROUPS).fill(''),
  root: undefined,
});

/** The tree after changes of some keys. Digests are computed when they are asked for, not here. */
const withoutPaths = (tree: Tree, keys: Iterable<string>): Tree => {
  const next: Tree = { shards: tree.shards.slice(), groups: tree.groups.slice(), root: undefined };
  for (const key of keys) {
    const shard = shardOf(key);
    next.shards[shard] = undefined;
    next.groups[Math.floor(shard / GROUP)] = undefined;
  }
  return next;
};

class ShardedMerkleMap<V extends Digested> implements MerkleMap<V> {
  readonly #map: PersistentMap<V>;
  readonly #hash: Hash;
  readonly #tree: Tree;

  constructor(map: PersistentMap<V>, hash: Hash, tree: Tree) {
    this.#map = map;
    this.#hash = hash;
    this.#tree = tree;
  }

  get size(): number {
    return this.#map.size;
  }

  get digest(): Digest {
    this.#tree.root ??= this.#hash(
      JSON.stringify(['map', ...Array.from({ length: GROUPS }, (_, group) => this.#group(group))]),
    );
    return this.#tree.root;
  }

  *digesting(): Generator<void> {
    for (let group = 0; group < GROUPS; group += 1) {
      if (this.#tree.groups[group] !== undefined) continue;
      this.#group(group);
      yield;
    }
  }

  get(key: string): V | undefined {
    return this.#map.get(key);
  }

  keys(): readonly string[] {
    return this.#map.keys();
  }

  values(): Iterable<V> {
    return this.#map.values();
  }

  with(changes: ReadonlyMap<string, V | undefined>): MerkleMap<V> {
    const real = new Map<string, V | undefined>();
    for (const [key, value] of changes) {
      // An equal record keeps its old identity: comparisons then stop at the shard.
      if (this.#map.get(key)?.digest !== value?.digest) real.set(key, value);
    }
    if (real.size === 0) return this;
    const tree = withoutPaths(this.#tree, real.keys());
    return new ShardedMerkleMap(this.#map.with(real), this.#hash, tree);
  }

  *differencesFrom(before: ShardedMerkleMap<V>): Generator<Difference<V>> {
    if (this.#map === before.#map || same(this.#tree.root, before.#tree.root)) return;
    for (let group = 0; group < GROUPS; group += 1) {
      if (same(this.#tree.groups[group], before.#tree.groups[group])) continue;
      for (let shard = group * GROUP; shard < (group + 1) * GROUP; shard += 1) {
        if (!same(this.#tree.shards[shard], before.#tree.shards[shard])) {
          yield* shardDifferences(before.#map.shard(shard), this.#map.shard(shard));
        }
      }
    }
  }

  #group(group: number): Digest {
    const known = this.#tree.groups[group];
    if (known !== undefined) return known;
    const shards = Array.from({ length: GROUP }, (_, index) => this.#shard(group * GROUP + index));
    const empty = shards.every((digest) => digest === '');
    const digest = empty ? '' : this.#hash(JSON.stringify(['group', ...shards]));
    this.#tree.groups[group] = digest;
    return digest;
  }

  #shard(index: number): Digest {
    const known = this.#tree.shards[index];
    if (known !== undefined) return known;
    const shard = this.#map.shard(index);
    const entries = [...shard].sort(([left], [right]) => byCodeUnits(left, right));
    const digests = entries.map(([key, value]) => [key, value.digest]);
    const digest = shard.size === 0 ? '' : this.#hash(JSON.stringify(['shard', ...digests]));
    this.#tree.shards[index] = digest;
    return digest;
  }
}

const same = (left: Digest | undefined, right: Digest | undefined): boolean =>
  left !== undefined && left === right;

function* shardDifferences<V extends Digested>(
  before: ReadonlyMap<string, V>,
  after: ReadonlyMap<string, V>,
): Generator<Difference<V>> {
  if (before === after) return;
  for (const [key, value] of after) {
    const old = before.get(key);
    if (old !== value && old?.digest !== value.digest) yield { key, before: old, after: value };
  }
  for (const [key, value] of before) {
    if (!after.has(key)) yield { key, before: value, after: undefined };
  }
}

/**
 * An empty map; all others come from its `with`.
 *
 * @param hash hex SHA-256 of UTF-8 text, kept by every version of the map
 */
export const merkleMap = <V extends Digested>(hash: Hash): MerkleMap<V> =>
  new ShardedMerkleMap<V>(PersistentMap.EMPTY, hash, emptyTree());

/**
 * A map of these records.
 *
 * @param records key and record; of two with one key the later one stays
 * @param hash as for {@link merkleMap}
 */
export const merkleMapOf = <V extends Digested>(
  records: Iterable<readonly [string, V]>,
  hash: Hash,
): MerkleMap<V> => merkleMap<V>(hash).with(new Map(records));

/**
 * What differs between two maps, in no stated order. Shards that are the same object, or whose digests are known and
 * equal, are skipped; the caller may stop at the first difference.
 *
 * @throws TypeError for a map that does not come from {@link merkleMap}
 */
export function differences<V extends Digested>(
  before: MerkleMap<V>,
  after: MerkleMap<V>,
): Generator<Difference<V>> {
  if (before instanceof ShardedMerkleMap && after instanceof ShardedMerkleMap) {
    return (after as ShardedMerkleMap<V>).differencesFrom(before as ShardedMerkleMap<V>);
  }
  throw new TypeError('only maps that come from merkleMap can be compared');
}

/** {@link differences} sorted by key, for what must come out the same whatever the shards. */
export const sortedDifferences = <V extends Digested>(
  before: MerkleMap<V>,
  after: MerkleMap<V>,
): readonly Difference<V>[] =>
  [...differences(before, after)].sort((left, right) => byCodeUnits(left.key, right.key));
