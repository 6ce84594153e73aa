import { defer, merge, mergeMap, type Observable } from 'rxjs';
import { type KubeObject, type ObjectKey, objectKey } from '../snapshot/objects.ts';
import type { WatchEvent } from '../snapshot/watch.ts';

/**
 * Watches of the same resource in several namespaces as one watch. It starts with one `Replaced` of all namespaces, once
 * each has had its own. From then on a `Replaced` of one namespace passes as the deletions and upserts that it means,
 * all in one turn. Only the keys of the objects are kept.
 */
export const mergeNamespaces = (
  watches: readonly Observable<WatchEvent>[],
): Observable<WatchEvent> => {
  const [only$] = watches;
  if (only$ !== undefined && watches.length === 1) return only$;
  return defer(() => {
    const merged = new MergedNamespaces(watches.length);
    return merge(
      ...watches.map((watch$, index) =>
        watch$.pipe(mergeMap((event) => merged.take(index, event))),
      ),
    );
  });
};

class MergedNamespaces {
  readonly #keys: Set<ObjectKey>[];
  readonly #synced = new Set<number>();
  /** Objects until all namespaces have synced. */
  #gathered: Map<ObjectKey, KubeObject> | undefined = new Map();

  constructor(count: number) {
    this.#keys = Array.from({ length: count }, () => new Set());
  }

  take(index: number, event: WatchEvent): readonly WatchEvent[] {
    const changes = this.#track(index, event);
    const gathered = this.#gathered;
    if (gathered === undefined) return changes;
    for (const change of changes) {
      if (change.type === 'Upserted') gathered.set(objectKey(change.object), change.object);
      else if (change.type === 'Deleted') gathered.delete(change.key);
    }
    if (event.type === 'Replaced') this.#synced.add(index);
    if (this.#synced.size < this.#keys.length) return [];
    this.#gathered = undefined;
    return [{ type: 'Replaced', objects: [...gathered.values()] }];
  }

  /** The single changes that an event of one namespace means. */
  #track(index: number, event: WatchEvent): readonly WatchEvent[] {
    const keys = this.#keys[index] ?? new Set();
    if (event.type === 'Upserted') keys.add(objectKey(event.object));
    if (event.type === 'Deleted') keys.delete(event.key);
    if (event.type !== 'Replaced') return [event];
    const now = new Set(event.objects.map(objectKey));
    const gone = [...keys].filter((key) => !now.has(key));
    this.#keys[index] = now;
    return [
      ...gone.map((key): WatchEvent => ({ type: 'Deleted', key })),
      ...event.objects.map((object): WatchEvent => ({ type: 'Upserted', object })),
    ];
  }
}
