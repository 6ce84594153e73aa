import { type FieldPath, fieldPath, fieldText, fieldValue, withoutField } from './field-path.ts';
import type { KubeObject } from './objects.ts';
import type { WatchedResource } from './watch.ts';

interface Rules {
  readonly namespaces: ReadonlySet<string>;
  readonly labels: readonly (readonly [string, string])[];
  readonly fields: readonly (readonly [FieldPath, string])[];
  readonly ignored: readonly FieldPath[];
  /** Ignored fields that no selector looks at. */
  readonly unseen: readonly FieldPath[];
}

const compiled = new WeakMap<WatchedResource, Rules>();

const rulesOf = (resource: WatchedResource): Rules => {
  const known = compiled.get(resource);
  if (known !== undefined) return known;
  const ignored = resource.ignoreFields.map(fieldPath);
  const labels = Object.entries(resource.labelSelector);
  const fields = Object.entries(resource.fieldSelector).map(
    ([path, value]) => [fieldPath(path), value] as const,
  );
  const seen: readonly FieldPath[] = [
    ['metadata', 'name'],
    ['metadata', 'namespace'],
    ...labels.map(([name]) => ['metadata', 'labels', name]),
    ...fields.map(([path]) => path),
  ];
  const rules: Rules = {
    namespaces: new Set(resource.namespaces),
    labels,
    fields,
    ignored,
    unseen: ignored.filter((path) => !seen.some((other) => overlap(path, other))),
  };
  compiled.set(resource, rules);
  return rules;
};

/** Whether one path lies on the way to the other. */
const overlap = (left: FieldPath, right: FieldPath): boolean =>
  left.slice(0, right.length).every((member, depth) => member === right[depth]);

const selects = (rules: Rules, object: KubeObject): boolean =>
  isInside(rules.namespaces, object.metadata.namespace ?? '') &&
  rules.labels.every(
    ([name, value]) => fieldValue(object, ['metadata', 'labels', name]) === value,
  ) &&
  rules.fields.every(([path, value]) => fieldText(object, path) === value);

/** Cluster-scoped objects lie in no namespace and belong to all of them. */
const isInside = (namespaces: ReadonlySet<string>, namespace: string): boolean =>
  namespaces.size === 0 || namespace === '' || namespaces.has(namespace);

/**
 * What enters the snapshot of an object: nothing when it is outside the watched namespaces or a selector does not
 * hold, else the object without the ignored fields (itself, when it has none of them).
 *
 * Selectors see the object as it came, ignored fields included.
 */
export const admit = (resource: WatchedResource, object: KubeObject): KubeObject | undefined => {
  const rules = rulesOf(resource);
  if (!selects(rules, object)) return undefined;
  return rules.ignored.reduce(withoutField, object);
};

/**
 * What a source passes on of an object that it has just parsed: nothing when it is not selected, else the object without
 * the ignored fields, so that no more of it is held in memory. Ignored fields that a selector looks at stay, for
 * {@link admit} decides again when the object enters the snapshot.
 */
export const admitParsed = (
  resource: WatchedResource,
  object: KubeObject,
): KubeObject | undefined => {
  const rules = rulesOf(resource);
  return selects(rules, object) ? rules.unseen.reduce(withoutField, object) : undefined;
};
