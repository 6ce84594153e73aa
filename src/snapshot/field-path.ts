/**
 * Field paths such as `spec.rules` or `metadata.labels.kubernetes\.io/service-name`: members divided by dots, a dot or
 * backslash inside a name escaped by a backslash. Only own properties are seen, so `__proto__` and `constructor` are
 * names like any other.
 */

/** A path taken apart: the names of the members, outermost first. */
export type FieldPath = readonly string[];

/** The members of a path; undefined when one of them is empty or a backslash escapes nothing. */
export const parseFieldPath = (path: string): FieldPath | undefined => {
  if (!/^(?:[^\\.]|\\[\\.])+(?:\.(?:[^\\.]|\\[\\.])+)*$/.test(path)) return undefined;
  const members = path.match(/(?:[^\\.]|\\[\\.])+/g) ?? [];
  return members.map((member) => member.replace(/\\([\\.])/g, '$1'));
};

/** Like {@link parseFieldPath} for paths that were checked before; throws RangeError for a malformed one. */
export const fieldPath = (path: string): FieldPath => {
  const members = parseFieldPath(path);
  if (members === undefined) throw new RangeError(`not a field path: ${JSON.stringify(path)}`);
  return members;
};

/** The value at a path; undefined when a member on the way is missing or not an object. */
export const fieldValue = (object: unknown, path: FieldPath): unknown => {
  let value = object;
  for (const member of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) {
      return undefined;
    }
    value = (value as Readonly<Record<string, unknown>>)[member];
  }
  return value;
};

/** The value at a path as a look-up key: text as it is, numbers and booleans printed; undefined for all else. */
export const fieldText = (object: unknown, path: FieldPath): string | undefined => {
  const value = fieldValue(object, path);
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
};

/** A copy without the member at the path; the same value when there is none. Copies only what is on the way. */
export const withoutField = <T>(value: T, path: FieldPath): T => {
  const [member, ...rest] = path;
  if (member === undefined || !isPlainObject(value) || !Object.hasOwn(value, member)) return value;
  const inner = value[member];
  const reduced = rest.length === 0 ? undefined : withoutField(inner, rest);
  if (rest.length > 0 && reduced === inner) return value;
  const kept = Object.entries(value).flatMap(([name, content]): [string, unknown][] =>
    name !== member ? [[name, content]] : rest.length > 0 ? [[name, reduced]] : [],
  );
  // Object.fromEntries defines members, so one that is called __proto__ stays a member.
  return Object.fromEntries(kept) as T;
};

const isPlainObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
