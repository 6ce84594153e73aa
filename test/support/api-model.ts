import type { KubeObject } from '../../src/snapshot/objects.ts';

/** What a request asks of a collection. */
export interface CollectionQuery {
  /** Undefined: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** An event as a watch sends it. */
export interface ModelEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: unknown;
}

interface Change {
  readonly version: number;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** A list that expired, or a watch from a version that is forgotten. */
export class Gone extends Error {}
/** A watch from a version that is not reached yet. */
export class TooLarge extends Error {}

/**
 * One collection of an API server in memory: objects with versions and uids, lists in pages of one moment, and the events
 * after a version until it is compacted away. A model for tests; no clock, no sockets.
 */
export class ApiModel {
  version: number;
  readonly kind: string;
  #objects: ReadonlyMap<string, KubeObject> = new Map();
  #changes: Change[] = [];
  #compacted: number;
  #uids = 0;
  readonly #pages = new Map<string, ReadonlyMap<string, KubeObject>>();
  readonly #listeners = new Set<() => void>();

  constructor(kind = 'ConfigMap', version = 1_000) {
    this.kind = kind;
    this.version = version;
    this.#compacted = version;
  }

  get objects(): readonly KubeObject[] {
    return [...this.#objects.values()];
  }

  /** Creates or updates; a new object gets a new uid. */
  put(key: string, content: Readonly<Record<string, unknown>> = {}): KubeObject {
    const [namespace = '', name = ''] = key.split('/');
    const before = this.#objects.get(key);
    const { labels, ...fields } = content;
    const after: KubeObject = {
      apiVersion: 'v1',
      kind: this.kind,
      metadata: {
        name,
        ...(namespace === '' ? {} : { namespace }),
        uid: before?.metadata.uid ?? `uid-${(this.#uids += 1)}`,
        resourceVersion: String(this.version + 1),
        ...(labels === undefined ? {} : { labels: labels as Record<string, string> }),
      },
      ...fields,
    };
    this.#commit(key, before, after);
    return after;
  }

  remove(key: string): void {
    const before = this.#objects.get(key);
    if (before !== undefined) this.#commit(key, before, undefined);
  }

  /** Forgets all events and the moments of unfinished lists. */
  compact(): void {
    this.#compacted = this.version;
    this.#changes = [];
    this.#pages.clear();
  }

  /** As after a restore from a backup: the objects as they are, at a lower version. */
  restoreAt(version: number): void {
    this.version = version;
    this.compact();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** One page of a list. Items do not say their kind, as those of an API server do not. Throws {@link Gone}. */
  list(query: CollectionQuery, limit = 0, token = ''): unknown {
    const { moment, at, from } = this.#momentOf(token);
    const all = [...moment.values()].filter((object) => selects(query, object));
    const end = limit === 0 ? all.length : from + limit;
    const more = end < all.length;
    if (more) this.#pages.set(at, moment);
    return {
      kind: `${this.kind}List`,
      apiVersion: 'v1',
      metadata: { resourceVersion: at, ...(more ? { continue: `${at}.${end}` } : {}) },
      items: all.slice(from, end).map(({ apiVersion: _apiVersion, kind: _kind, ...item }) => item),
    };
  }

  /** What a continue token means: the objects of a moment, and how many of them were sent. */
  #momentOf(token: string) {
    if (token === '') return { moment: this.#objects, at: String(this.version), from: 0 };
    const [at = '', from = ''] = token.split('.');
    const moment = this.#pages.get(at);
    if (moment === undefined) throw new Gone();
    return { moment, at, from: Number(from) };
  }

  /** What a watch from a version sends up to now. Throws {@link Gone} or {@link TooLarge}. */
  eventsAfter(version: number, query: CollectionQuery): readonly ModelEvent[] {
    if (version < this.#compacted) throw new Gone();
    if (version > this.version) throw new TooLarge();
    return this.#changes
      .slice(version - this.#compacted)
      .flatMap((change) => eventOf(change, query) ?? []);
  }

  bookmark(): ModelEvent {
    const metadata = { resourceVersion: String(this.version), creationTimestamp: null };
    return { type: 'BOOKMARK', object: { kind: this.kind, apiVersion: 'v1', metadata } };
  }

  #commit(key: string, before: KubeObject | undefined, after: KubeObject | undefined): void {
    this.version += 1;
    const objects = new Map(this.#objects);
    if (after === undefined) objects.delete(key);
    else objects.set(key, after);
    this.#objects = objects;
    this.#changes.push({ version: this.version, before, after });
    for (const listener of this.#listeners) listener();
  }
}

const eventOf = (
  { version, before, after }: Change,
  query: CollectionQuery,
): ModelEvent | undefined => {
  const was = before !== undefined && selects(query, before);
  const is = after !== undefined && selects(query, after);
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: after };
  if (!was) return undefined;
  const metadata = { ...before.metadata, resourceVersion: String(version) };
  return { type: 'DELETED', object: { ...before, metadata } };
};

const selects = (
  { namespace, labelSelector, fieldSelector }: CollectionQuery,
  object: KubeObject,
): boolean =>
  (namespace === undefined || object.metadata.namespace === namespace) &&
  terms(labelSelector).every(([name, value]) => object.metadata.labels?.[name] === value) &&
  terms(fieldSelector).every(
    ([path, value]) => path === 'metadata.name' && object.metadata.name === value,
  );

const terms = (selector = ''): readonly (readonly [string, string])[] =>
  selector
    .split(',')
    .filter((term) => term !== '')
    .map((term) => [term.slice(0, term.indexOf('=')), term.slice(term.indexOf('=') + 1)]);
