import { type FieldPath, fieldPath, fieldText, fieldValue, withoutField } from './field-path.ts';
import type { KubeObject } from './objects.ts';
import type { WatchedResource } from './watch.ts';

interface Rules {
  readonly namespaces: ReadonlySet<string>;
  readonly labels: readonly (readonly [string, string])[];
  readonly fields: readonly (readonly [FieldPath, string])[];
  readonly ignored: readonly FieldPath[];
}

const compiled = new WeakMap<WatchedResource, Rules>();

const rulesOf = (resource: WatchedResource): Rules => {
  const known = compiled.get(resource);
  if (known !== undefined) return known;
  const rules: Rules = {
    namespaces: new Set(resource.namespaces),
    labels: Object.entries(resource.labelSelector),
    fields: Object.entries(resource.fieldSelector).map(([path, value]) => [fieldPath(path), value]),
    ignored: resource.ignoreFields.map(fieldPath),
  };
  compiled.set(resource, rules);
  return rules;
};

const selects = (rules: Rules, object: KubeObject): boolean =>
  (rules.namespaces.size === 0 || rules.namespaces.has(object.metadata.namespace ?? '')) &&
  rules.labels.every(
    ([name, value]) => fieldValue(object, ['metadata', 'labels', name]) === value,
  ) &&
  rules.fields.every(([path, value]) => fieldText(object, path) === value);

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
