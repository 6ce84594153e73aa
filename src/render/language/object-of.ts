import { objectRef, type KubeObject, type ObjectRef } from '../../snapshot/objects.ts';
import { isRecord } from './values.ts';

/**
 * The Kubernetes object a value stands for: the value itself, its member `object`, or that of the first of its parts
 * that has one. Looks two levels deep.
 */
export const objectOf = (value: unknown, depth = 2): ObjectRef | undefined => {
  if (!isRecord(value)) return undefined;
  if (isObject(value)) return objectRef(value);
  if (isRef(value)) return value;
  if (isRef(value['object'])) return value['object'];
  if (depth === 0) return undefined;
  for (const member of Object.values(value)) {
    const found = Array.isArray(member) ? objectOf(member[0], depth - 1) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
};

/** All Kubernetes objects that a value stands for: as {@link objectOf}, but every element of its lists counts. */
export function* objectsIn(value: unknown, depth = 2): Generator<ObjectRef> {
  if (!isRecord(value)) return;
  if (isObject(value)) yield objectRef(value);
  else if (isRef(value)) yield value;
  else {
    if (isRef(value['object'])) yield value['object'];
    if (depth === 0) return;
    for (const member of Object.values(value)) {
      if (!Array.isArray(member)) continue;
      for (const one of member) yield* objectsIn(one, depth - 1);
    }
  }
}

const isObject = (value: unknown): value is KubeObject =>
  isRecord(value) &&
  typeof value['kind'] === 'string' &&
  isRecord(value['metadata']) &&
  typeof value['metadata']['name'] === 'string';

const isRef = (value: unknown): value is ObjectRef =>
  isRecord(value) &&
  typeof value['kind'] === 'string' &&
  typeof value['name'] === 'string' &&
  typeof value['namespace'] === 'string';
