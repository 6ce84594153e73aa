/** Counts what synchronous work does instead of timing it, so that its growth can be asserted on any machine. */

type Method = (this: unknown, ...args: unknown[]) => unknown;
type Patched = Record<PropertyKey, Method>;

/** Looks into maps and sets, additions to them, and elements that are iterated over by `for`, spread and `new Map(…)`. */
const COUNTED: readonly (readonly [object, readonly PropertyKey[]])[] = [
  [Map.prototype, ['get', 'has', 'set', 'delete']],
  [Set.prototype, ['has', 'add', 'delete']],
  [Object.getPrototypeOf([][Symbol.iterator]()) as object, ['next']],
  [Object.getPrototypeOf(new Map().entries()) as object, ['next']],
  [Object.getPrototypeOf(new Set().values()) as object, ['next']],
];

/** How many of those operations some work takes; it must neither wait nor throw away its own errors. */
export const countWork = (work: () => void): number => {
  let count = 0;
  const originals = COUNTED.flatMap(([prototype, names]) =>
    names.map((name) => ({
      prototype: prototype as Patched,
      name,
      method: (prototype as Patched)[name],
    })),
  );
  for (const { prototype, name, method } of originals) {
    prototype[name] = function (this: unknown, ...args: unknown[]): unknown {
      count += 1;
      return method?.apply(this, args);
    };
  }
  try {
    work();
  } finally {
    for (const { prototype, name, method } of originals) if (method) prototype[name] = method;
  }
  return count;
};
