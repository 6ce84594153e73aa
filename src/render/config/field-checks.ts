import { parseDuration } from './duration.ts';
import { nearestName } from '../nearest-name.ts';

/** Takes what is wrong with a field; the message goes on from the path: `must be a text, not a list`. */
export type Report = (path: string, message: string, nextStep: string) => void;

/** Reads one field: the value in its type, or undefined after a report. It is never given null or undefined. */
export type Check<T> = (value: unknown, path: string, report: Report) => T | undefined;

export type Checked<C> = C extends Check<infer T> ? T : never;

type Members = Readonly<Record<string, unknown>>;

/** A mapping that is no list. */
export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A member's path: `spec.maps["hosts.map"].template`. */
export const memberPath = (path: string, name: string): string => {
  if (!/^[A-Za-z_][\w-]{0,62}$/.test(name)) return `${path}[${JSON.stringify(name.slice(0, 64))}]`;
  return path === '' ? name : `${path}.${name}`;
};

/** What a path ends in, to begin a sentence with that the whole path stands beside: `template`, `"hosts.map"`. */
export const lastMember = (path: string): string =>
  /\[("(?:[^"\\]|\\.)*")\]$/.exec(path)?.[1] ?? path.slice(path.lastIndexOf('.') + 1);

const ofType =
  <T>(expected: string, example: string, is: (value: unknown) => value is T): Check<T> =>
  (value, path, report) => {
    if (is(value)) return value;
    report(path, `must be ${expected}, not ${typeName(value)}`, `Write ${example}.`);
    return undefined;
  };

/** A text. */
export const text = ofType(
  'a text',
  'a text in quotes',
  (value): value is string => typeof value === 'string',
);

/** `true` or `false`. */
export const flag = ofType(
  'true or false',
  'true or false, without quotes',
  (value): value is boolean => typeof value === 'boolean',
);

/** Any mapping, as it is. */
export const anything = ofType('a mapping', 'names and values', isMembers);

/** A whole number between two limits, both allowed. */
export const wholeNumber = (least: number, most: number): Check<number> =>
  ofType(
    `a whole number from ${least} to ${most}`,
    'a number, without quotes',
    (value): value is number => Number.isInteger(value) && inRange(value as number, least, most),
  );

const inRange = (value: number, least: number, most: number): boolean =>
  value >= least && value <= most;

/** A duration as `100ms`, `5s`, `1m30s` or `0`, in milliseconds. */
export const duration =
  (leastMs = 0): Check<number> =>
  (value, path, report) => {
    const ms = value === 0 ? 0 : typeof value === 'string' ? parseDuration(value) : undefined;
    if (ms !== undefined && ms >= leastMs) return ms;
    const least = leastMs > 0 ? ` of at least ${leastMs}ms` : '';
    report(path, `must be a duration${least}`, 'Write it like 100ms, 5s, 1m30s or "0".');
    return undefined;
  };

/** One of a few words. */
export const oneOf =
  <T extends string>(...words: readonly T[]): Check<T> =>
  (value, path, report) => {
    const word = words.find((known) => known === value);
    if (word === undefined)
      report(path, `must be one of ${words.join(', ')}`, 'Choose one of them.');
    return word;
  };

/** A list. */
export const listOf =
  <T>(check: Check<T>): Check<readonly T[]> =>
  (value, path, report) => {
    if (!Array.isArray(value)) {
      report(path, `must be a list, not ${typeName(value)}`, 'Write it as [a, b].');
      return undefined;
    }
    return value.flatMap(
      (item: unknown, at) => check(item ?? undefined, `${path}[${at}]`, report) ?? [],
    );
  };

/** A mapping from names that the user chooses. */
export const recordOf =
  <T>(check: Check<T>): Check<ReadonlyMap<string, T>> =>
  (value, path, report) => {
    const members = anything(value, path, report);
    return (
      members &&
      new Map(
        Object.entries(members).flatMap(([name, member]): [string, T][] => {
          const checked = check(member ?? {}, memberPath(path, name), report);
          return checked === undefined ? [] : [[name, checked]];
        }),
      )
    );
  };

/** A mapping with fixed members, each of which may be absent. An unknown one is reported with the nearest known one. */
export const membersOf =
  <S extends Readonly<Record<string, Check<unknown>>>>(
    shape: S,
    planned: readonly string[] = [],
  ): Check<{ readonly [K in keyof S]?: Checked<S[K]> }> =>
  (value, path, report) => {
    const members = anything(value, path, report);
    if (members === undefined) return undefined;
    const result: [string, unknown][] = [];
    for (const [name, member] of Object.entries(members)) {
      const check = Object.hasOwn(shape, name) ? shape[name] : undefined;
      const field = memberPath(path, name);
      if (check === undefined) reportUnknown(field, name, { shape, planned, report });
      else if (member !== null && member !== undefined) {
        const checked = check(member, field, report);
        if (checked !== undefined) result.push([name, checked]);
      }
    }
    return Object.fromEntries(result) as { readonly [K in keyof S]?: Checked<S[K]> };
  };

const reportUnknown = (
  field: string,
  name: string,
  known: { readonly shape: object; readonly planned: readonly string[]; readonly report: Report },
): void => {
  const names = Object.keys(known.shape);
  const nearest = nearestName(name, names);
  if (known.planned.includes(name)) {
    known.report(field, 'is not supported yet', 'Remove it.');
  } else if (nearest === undefined) {
    known.report(field, 'is not known', `Use one of ${names.join(', ')}.`);
  } else {
    known.report(
      field,
      `is not known; the nearest known field is ${nearest}`,
      `Write ${nearest}, or remove it.`,
    );
  }
};

const typeName = (value: unknown): string => {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  const names: Readonly<Record<string, string>> = {
    string: 'a text',
    number: 'a number',
    boolean: 'true or false',
    object: 'a mapping',
  };
  return names[typeof value] ?? typeof value;
};
