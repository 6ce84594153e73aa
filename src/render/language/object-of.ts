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

/** Whether a value stands for an object among others: as {@link objectOf}, but any element of its lists counts. */
export const concerns = (value: unknown, object: ObjectRef, depth = 2): boolean => {
  if (!isRecord(value)) return false;
  if (isObject(value)) return isSameObject(objectRef(value), object);
  if (isRef(value)) return isSameObject(value, object);
  if (isRef(value['object']) && isSameObject(value['object'], object)) return true;
  if (depth === 0) return false;
  return Object.values(value).some(
    (member) => Array.isArray(member) && member.some((one) => concerns(one, object, depth - 1)),
  );
};

const isSameObject = (left: ObjectRef, right: ObjectRef): boolean =>
  left.kind === right.kind && left.namespace === right.namespace && left.name === right.name;

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
