import { unreadableReason } from './content.ts';
import type { KubeObject } from './objects.ts';

/**
 * Whether two states of one object are the same to every reader: the same life (uid) and either the same
 * resourceVersion or equal content. The resourceVersion itself does not count as content: it moves with fields that
 * were dropped on entry.
 */
export const sameObject = (left: KubeObject, right: KubeObject): boolean => {
  if (left === right) return true;
  if (left.apiVersion !== right.apiVersion || left.metadata.uid !== right.metadata.uid) {
    return false;
  }
  if (unreadableReason(left) !== unreadableReason(right)) return false;
  const version = left.metadata.resourceVersion;
  if (version !== undefined && version === right.metadata.resourceVersion) return true;
  return (
    sameMembers(left, right, 'metadata') &&
    sameMembers(left.metadata, right.metadata, 'resourceVersion')
  );
};

type Members = Readonly<Record<string, unknown>>;

/** Own members equal in value, whatever their order; `except` is not looked at. */
const sameMembers = (left: object, right: object, except?: string): boolean => {
  const names = Object.keys(left).filter((name) => name !== except);
  const others = Object.keys(right).filter((name) => name !== except);
  return (
    names.length === others.length &&
    names.every(
      (name) =>
        Object.hasOwn(right, name) && sameValue((left as Members)[name], (right as Members)[name]),
    )
  );
};

const sameValue = (left: unknown, right: unknown): boolean => {
  if (Object.is(left, right)) return true;
  if (typeof left !== 'object' || typeof right !== 'object') return false;
  if (left === null || right === null || Array.isArray(left) !== Array.isArray(right)) return false;
  return sameMembers(left, right);
};
