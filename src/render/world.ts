import type { Read } from '../cells/cells.ts';
import { PersistentMap } from '../cells/persistent-map.ts';
import type { RouteModel } from '../routing/model.ts';
import { fieldPath, fieldText, type FieldPath } from '../snapshot/field-path.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { ObjectChange, Snapshot } from '../snapshot/snapshot.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import { ROUTE_COLLECTIONS } from './language/route-collections.ts';
import type { StoreLook, World } from './language/run.ts';

const OBJECTS = 'resources.';

/** A snapshot and its routes, as cells look at them. Every look has a key, by which it can be repeated later. */
export class SnapshotWorld implements World {
  readonly snapshot: Snapshot;
  readonly model: RouteModel;

  constructor(snapshot: Snapshot, model: RouteModel) {
    this.snapshot = snapshot;
    this.model = model;
  }

  /** A collection of `routes`, or the objects of `resources.NAME` by namespace and name. */
  collection(name: string): PersistentMap<unknown> {
    if (name.startsWith(OBJECTS)) return this.#objects(name.slice(OBJECTS.length));
    const known = ROUTE_COLLECTIONS.find((one) => one === name);
    if (known === undefined) throw new TypeError(`no collection ${name}`);
    return this.model[known];
  }

  #objects(resource: string): PersistentMap<unknown> {
    const isWatched = this.snapshot.resources.includes(resource);
    return isWatched ? this.snapshot.store(resource).objects : PersistentMap.EMPTY;
  }

  routeRead(collection: string, key?: string): Read {
    return this.#read(key === undefined ? ['route', collection] : ['route', collection, key]);
  }

  storeRead(resource: string, { type, keys }: StoreLook): Read {
    return this.#read([type, resource, ...keys]);
  }

  /** What is there now under the key of an earlier read. */
  look(read: string): unknown {
    return this.#look(JSON.parse(read) as string[]);
  }

  #read(parts: readonly string[]): Read {
    return { key: JSON.stringify(parts), look: () => this.#look(parts) };
  }

  #look([type, name = '', ...keys]: readonly string[]): unknown {
    if (type === 'route') {
      const collection = this.collection(name);
      return keys[0] === undefined ? collection : collection.get(keys[0]);
    }
    if (!this.snapshot.resources.includes(name)) return type === 'get' ? undefined : [];
    const store = this.snapshot.store(name);
    if (type === 'get') return store.get(keys[0] ?? '', keys[1] ?? '');
    return type === 'fetch' ? store.fetch(...keys) : store.list();
  }
}

/** Keys of all reads that a change of objects or of routes can concern. */
export class ReadKeys {
  readonly #paths: ReadonlyMap<string, readonly FieldPath[]>;

  constructor(watched: readonly WatchedResource[]) {
    this.#paths = new Map(watched.map(({ name, indexBy }) => [name, indexBy.map(fieldPath)]));
  }

  *ofObjects(changes: Iterable<ObjectChange>): Generator<string> {
    for (const { resource, key, before, after } of changes) {
      const slash = key.indexOf('/');
      yield JSON.stringify(['get', resource, key.slice(0, slash), key.slice(slash + 1)]);
      yield JSON.stringify(['list', resource]);
      yield JSON.stringify(['fetch', resource]);
      yield* this.#buckets(resource, before);
      yield* this.#buckets(resource, after);
    }
  }

  *ofRoutes(before: RouteModel, after: RouteModel): Generator<string> {
    for (const name of ROUTE_COLLECTIONS) {
      const [old, now]: PersistentMap<unknown>[] = [before[name], after[name]];
      if (old === undefined || now === undefined || old === now) continue;
      yield JSON.stringify(['route', name]);
      for (const { key } of now.differences(old)) yield JSON.stringify(['route', name, key]);
    }
  }

  *#buckets(resource: string, object: KubeObject | undefined): Generator<string> {
    if (object === undefined) return;
    const keys: string[] = [];
    for (const path of this.#paths.get(resource) ?? []) {
      // A cluster-scoped object counts as one in the namespace without a name.
      keys.push(fieldText(object, path) ?? '');
      yield JSON.stringify(['fetch', resource, ...keys]);
    }
  }
}
