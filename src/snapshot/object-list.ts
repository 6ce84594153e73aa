import { byCodeUnits } from '../cells/persistent-map.ts';
import type { KubeObject, ObjectKey } from './objects.ts';

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

/** Up to here changes wait for a reader. */
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

interface Placed {
  readonly object: KubeObject;
  readonly isThere: boolean;
}

const replaceInOrder = (
  list: readonly KubeObject[],
  changes: readonly Replacement[],
): readonly KubeObject[] => {
  const ordered = inOrder(changes);
  return ordered.length <= FEW_SPLICES ? splice(list, ordered) : merge(list, ordered);
};

/** Copying a list as it is and moving its end a few times beats one pass in JavaScript. */
const FEW_SPLICES = 8;

const splice = (list: readonly KubeObject[], changes: readonly Placed[]): readonly KubeObject[] => {
  const result = list.slice();
  for (const { object, isThere } of changes) {
    const at = lowerBound(result, object, 0);
    const wasThere = isAt(result, at, object) ? 1 : 0;
    if (isThere) result.splice(at, wasThere, object);
    else result.splice(at, wasThere);
  }
  return result;
};

/** One pass: finds the place of each change by bisection and copies what lies between. */
const merge = (list: readonly KubeObject[], changes: readonly Placed[]): readonly KubeObject[] => {
  const result: KubeObject[] = [];
  let from = 0;
  for (const { object, isThere } of changes) {
    const at = lowerBound(list, object, from);
    for (; from < at; from += 1) result.push(list[from] as KubeObject);
    if (isAt(list, at, object)) from = at + 1;
    if (isThere) result.push(object);
  }
  for (; from < list.length; from += 1) result.push(list[from] as KubeObject);
  return result;
};

const isAt = (list: readonly KubeObject[], at: number, object: KubeObject): boolean => {
  const found = list[at];
  return found !== undefined && byNamespaceAndName(found, object) === 0;
};

/** Only the last of several changes of one object says whether it is there. */
const inOrder = (changes: readonly Replacement[]): readonly Placed[] =>
  [...new Map(changes.map((change) => [change.key, change])).values()]
    .flatMap(({ before, after }) => {
      const object = after ?? before;
      return object === undefined ? [] : [{ object, isThere: after !== undefined }];
    })
    .sort((left, right) => byNamespaceAndName(left.object, right.object));

const lowerBound = (list: readonly KubeObject[], object: KubeObject, from: number): number => {
  let [low, high] = [from, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (byNamespaceAndName(list[middle] as KubeObject, object) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
};
