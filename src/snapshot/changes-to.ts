import { changesBetween, IndexedSnapshot } from './apply-batch.ts';
import { objectKey } from './objects.ts';
import type { ObjectChange, Snapshot } from './snapshot.ts';

/**
 * What leads from one snapshot to another one of the same watched resources, whatever lies between them: the objects
 * themselves are compared and not the versions, so neither of the two has to come out of the other. Sorted by resource
 * and key; the cost follows the number of differences.
 */
export const changesTo = (before: Snapshot, after: Snapshot): Iterable<ObjectChange> => {
  if (before === after) return [];
  return before instanceof IndexedSnapshot && after instanceof IndexedSnapshot
    ? changesBetween(before, after)
    : scan(before, after);
};

/** For snapshots of another make: the identity of every object is compared. */
function* scan(before: Snapshot, after: Snapshot): Generator<ObjectChange> {
  for (const resource of after.resources) {
    const [old, now] = [before.store(resource), after.store(resource)];
    if (old === now) continue;
    const rest = new Map(old.list().map((object) => [objectKey(object), object]));
    for (const object of now.list()) {
      const key = objectKey(object);
      const known = rest.get(key);
      rest.delete(key);
      if (known !== object) yield { resource, key, before: known, after: object };
    }
    for (const [key, object] of rest) yield { resource, key, before: object, after: undefined };
  }
}
