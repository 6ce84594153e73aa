import { byCodeUnits } from '../cells/persistent-map.ts';
import { type KubeObject, type ObjectKey, objectKey } from './objects.ts';

/** Order of every list of objects: namespace, then name, by code units. */
export const byNamespaceAndName = (left: KubeObject, right: KubeObject): number =>
  byCodeUnits(left.metadata.namespace ?? '', right.metadata.namespace ?? '') ||
  byCodeUnits(left.metadata.name, right.metadata.name);

/** One object that comes (`before` undefined), goes (`after` undefined) or changes. */
export interface Replacement {
  readonly key: ObjectKey;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** Up to here changes wait for a reader, and are placed one by one; more of them are merged at once by sorting. */
const FEW = 64;

/**
 * Immutable list of objects in order of namespace and name. A change costs nothing that grows with the list until
 * somebody reads it; what was read is kept.
 */
export class ObjectList {
  static readonly EMPTY = new ObjectList([], []);

  #objects: readonly KubeObject[];
  /** Not yet in `#objects`. */
  #pending: readonly Replacement[];

  private constructor(objects: readonly KubeObject[], pending: readonly Replacement[]) {
    this.#objects = objects;
    this.#pending = pending;
  }

  /** The list after these changes, each of another object; undefined when it is empty then. */
  with(changes: readonly Replacement[]): ObjectList | undefined {
    const pending = [...this.#pending, ...changes];
    const onlyDeletions = changes.every(({ after }) => after === undefined);
    if (pending.length <= FEW && !onlyDeletions) return new ObjectList(this.#objects, pending);
    const objects = replaceInOrder(this.#objects, pending);
    return objects.length === 0 ? undefined : new ObjectList(objects, []);
  }

  toArray(): readonly KubeObject[] {
    if (this.#pending.length > 0) {
      this.#objects = replaceInOrder(this.#objects, this.#pending);
      this.#pending = [];
    }
    return this.#objects;
  }
}

const replaceInOrder = (
  list: readonly KubeObject[],
  changes: readonly Replacement[],
): readonly KubeObject[] =>
  changes.length > FEW ? replaceMany(list, changes) : replaceFew(list, changes);

const replaceFew = (
  list: readonly KubeObject[],
  changes: readonly Replacement[],
): readonly KubeObject[] => {
  const result = list.slice();
  for (const { before, after } of changes) {
    const object = after ?? before;
    if (object === undefined) continue;
    const at = lowerBound(result, object);
    const found = result[at];
    const there = found !== undefined && byNamespaceAndName(found, object) === 0 ? 1 : 0;
    if (after === undefined) result.splice(at, there);
    else result.splice(at, there, after);
  }
  return result;
};

const replaceMany = (
  list: readonly KubeObject[],
  changes: readonly Replacement[],
): readonly KubeObject[] => {
  // Only the last of several changes of one object says what is there.
  const newest = new Map(changes.map(({ key, after }) => [key, after]));
  const kept = list.filter((object) => !newest.has(objectKey(object)));
  const added = [...newest.values()].filter((object) => object !== undefined);
  return [...kept, ...added].sort(byNamespaceAndName);
};

const lowerBound = (list: readonly KubeObject[], object: KubeObject): number => {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (byNamespaceAndName(list[middle] as KubeObject, object) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
};
