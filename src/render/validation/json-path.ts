/** One step into a value: the member of a name, the item at a position, or all of them. */
export type Step = { readonly name: string } | { readonly at: number } | 'all';

const STEP = /^(?:\.([\w-]+)|\[(?:(\d{1,9})|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\*))\])/;

/**
 * The steps of a JSONPath of names, positions and `[*]`, with or without the braces of kubectl and the `$`:
 * `{.spec.rules[0].host}`, `$['a.b'][*].name`. Undefined for any other one; filters, slices and `..` are not among them.
 */
export const parseJsonPath = (path: string): readonly Step[] | undefined => {
  let rest = path
    .trim()
    .replace(/^\{(.*)\}$/, '$1')
    .replace(/^\$/, '');
  const steps: Step[] = [];
  while (rest !== '' && rest !== '.') {
    const match = STEP.exec(rest);
    if (match === null) return undefined;
    const [whole, name, at, single, double, all] = match;
    const quoted = (single ?? double)?.replaceAll(/\\(.)/g, '$1');
    if (all !== undefined) steps.push('all');
    else steps.push(at === undefined ? { name: name ?? quoted ?? '' } : { at: Number(at) });
    rest = rest.slice(whole.length);
  }
  return steps;
};

/** Every value that the steps lead to; only own members are seen. */
export const valuesAt = (value: unknown, steps: readonly Step[]): readonly unknown[] =>
  steps.reduce<readonly unknown[]>(
    (values, step) => values.flatMap((one) => stepInto(one, step)),
    [value],
  );

const stepInto = (value: unknown, step: Step): readonly unknown[] => {
  if (typeof value !== 'object' || value === null) return [];
  if (step === 'all') return Object.values(value);
  const name = 'at' in step ? String(step.at) : step.name;
  if ('at' in step && !Array.isArray(value)) return [];
  return Object.hasOwn(value, name) ? [(value as Readonly<Record<string, unknown>>)[name]] : [];
};
