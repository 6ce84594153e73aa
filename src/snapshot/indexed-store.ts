import { PersistentMap } from '../cells/persistent-map.ts';
import { type FieldPath, fieldPath, fieldText } from './field-path.ts';
import { ObjectList, type Replacement } from './object-list.ts';
import type { KubeObject, ObjectKey } from './objects.ts';
import type { Store } from './snapshot.ts';
import type { WatchedResource } from './watch.ts';

/** Objects by the text of their first keys: one level for each number of keys. */
type Level = PersistentMap<ObjectList>;

interface Contents {
  readonly resource: string;
  readonly paths: readonly FieldPath[];
  readonly objects: PersistentMap<KubeObject>;
  readonly list: ObjectList;
  readonly levels: readonly Level[];
}

const NONE: readonly KubeObject[] = [];

/**
 * Immutable objects of one resource with an index over the `indexBy` fields. A changed store shares with the one before
 * it everything the change does not touch; `get` and `fetch` cost the same for any number of objects.
 *
 * An object that lacks one of the fields is found by the keys before that field only; `metadata.namespace` of a
 * cluster-scoped object counts as empty text.
 */
export class IndexedStore implements Store {
  readonly #contents: Contents;

  private constructor(contents: Contents) {
    this.#contents = contents;
  }

  static empty(resource: WatchedResource): IndexedStore {
    return new IndexedStore({
      resource: resource.name,
      paths: resource.indexBy.map(fieldPath),
      objects: PersistentMap.EMPTY,
      list: ObjectList.EMPTY,
      levels: resource.indexBy.map(() => PersistentMap.EMPTY),
    });
  }

  get size(): number {
    return this.#contents.objects.size;
  }

  get objects(): PersistentMap<KubeObject> {
    return this.#contents.objects;
  }

  get(namespace: string, name: string): KubeObject | undefined {
    return this.byKey(`${namespace}/${name}`);
  }

  /** By `namespace/name`. */
  byKey(key: ObjectKey): KubeObject | undefined {
    return this.#contents.objects.get(key);
  }

  /** Throws RangeError for more keys than `indexBy` has fields. */
  fetch(...keys: readonly string[]): readonly KubeObject[] {
    if (keys.length === 0) return this.list();
    const level = this.#contents.levels[keys.length - 1];
    if (level === undefined) {
      const { resource, paths } = this.#contents;
      throw new RangeError(
        `resources.${resource} is indexed by ${paths.length} fields, not ${keys.length}`,
      );
    }
    return level.get(bucketKey(keys))?.toArray() ?? NONE;
  }

  list(): readonly KubeObject[] {
    return this.#contents.list.toArray();
  }

  /** The store after these changes, each of another object: what was there, and what is there now. */
  with(changes: readonly Replacement[]): IndexedStore {
    const { objects, list, levels, paths } = this.#contents;
    return new IndexedStore({
      ...this.#contents,
      objects: objects.with(new Map(changes.map(({ key, after }) => [key, after]))),
      list: list.with(changes) ?? ObjectList.EMPTY,
      levels: changedLevels(levels, paths, changes),
    });
  }

  /** What differs from an earlier store of the same resource, in no stated order. */
  *differences(before: IndexedStore): Generator<Replacement> {
    yield* this.#contents.objects.differences(before.#contents.objects);
  }

  /** Every key, in no stated order. */
  *keys(): Generator<ObjectKey> {
    for (let shard = 0; shard < PersistentMap.shards; shard += 1) {
      yield* this.#contents.objects.shard(shard).keys();
    }
  }
}

/** Lengths keep apart what joining would mix up. */
const bucketKey = (values: readonly string[]): string =>
  values.map((value) => `${value.length}:${value}`).join('');

/** The buckets an object lies in, one per level, up to the first field it lacks. */
const bucketsOf = (
  object: KubeObject | undefined,
  paths: readonly FieldPath[],
): readonly string[] => {
  if (object === undefined) return [];
  const values: string[] = [];
  for (const path of paths) {
    const value = fieldText(object, path) ?? (isNamespace(path) ? '' : undefined);
    if (value === undefined) break;
    values.push(value);
  }
  return values.map((_, level) => bucketKey(values.slice(0, level + 1)));
};

const isNamespace = ([first, second, ...rest]: FieldPath): boolean =>
  first === 'metadata' && second === 'namespace' && rest.length === 0;

const changedLevels = (
  levels: readonly Level[],
  paths: readonly FieldPath[],
  changes: readonly Replacement[],
): readonly Level[] => {
  const moves = changes.map((change) => ({
    change,
    from: bucketsOf(change.before, paths),
    to: bucketsOf(change.after, paths),
  }));
  return levels.map((level, depth) => {
    const edits = new Map<string, Replacement[]>();
    const edit = (bucket: string | undefined, change: Replacement): void => {
      if (bucket === undefined) return;
      const known = edits.get(bucket);
      if (known === undefined) edits.set(bucket, [change]);
      else known.push(change);
    };
    for (const { change, from, to } of moves) {
      if (from[depth] !== to[depth]) edit(from[depth], { ...change, after: undefined });
      edit(to[depth], change);
    }
    return changedBuckets(level, edits);
  });
};

const changedBuckets = (level: Level, edits: ReadonlyMap<string, readonly Replacement[]>): Level =>
  level.with(
    new Map(
      [...edits].map(([bucket, changes]) => [
        bucket,
        (level.get(bucket) ?? ObjectList.EMPTY).with(changes),
      ]),
    ),
  );
