/** Filters of the template language; `docs/templates.md` has an example of each. */
import { EMITTERS, type Emitter } from './emitters.ts';
import { TemplateFailure } from './failure.ts';
import { LIST_FILTERS } from './filters-lists.ts';
import { globMatches, linearRegex } from './patterns.ts';
import { networkContains } from './addresses.ts';
import { canonicalJson } from './operators.ts';
import type { Run } from './run.ts';
import { Text, plain, stringOf } from './text.ts';
import { isTrue, kindOf, type Arguments } from './values.ts';

/** Takes what is left of the bar, branded or not. May throw TemplateFailure; a caller adds the place. */
export type FilterFunction = (value: unknown, args: Arguments, run: Run) => unknown;

/** A plain string, else a failure that names what it got. */
const text = (value: unknown, what = 'the value'): string => {
  const string = stringOf(value);
  if (string !== undefined) return string;
  throw new TemplateFailure(`${what} is ${kindOf(value)}, not a string`, {
    nextStep: 'Use a string here.',
  });
};

const argument = ({ positional }: Arguments, index: number): string =>
  text(positional[index], `argument ${index + 1}`);

const emit =
  (name: string, emitter: Emitter): FilterFunction =>
  (value) => {
    const bare = plain(value);
    const emitted = emitter(typeof bare === 'number' ? String(bare) : text(value));
    if (emitted.ok) return new Text(emitted.text);
    throw new TemplateFailure(`"${name}" cannot print the value: ${emitted.reason}`, {
      nextStep: 'Correct the value in the object, or choose the emitter for this place.',
      reason: 'ValueRefused',
    });
  };

const toInteger = (value: unknown): number => {
  const bare = plain(value);
  const number = typeof bare === 'string' && /^[+-]?\d{1,16}$/.test(bare) ? Number(bare) : bare;
  if (typeof number === 'number' && Number.isSafeInteger(number)) return number;
  throw new TemplateFailure('the value is not a whole number', {
    nextStep: 'Correct the value in the object.',
    reason: 'ValueRefused',
  });
};

const decodeBase64 = (value: string): string => {
  try {
    const binary = atob(value);
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new TemplateFailure('the value is not base64 of UTF-8 text', {
      nextStep: 'Correct the value in the object.',
      reason: 'ValueRefused',
    });
  }
};

const encodeBase64 = (value: string): string =>
  btoa(Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join(''));

const indent: FilterFunction = (value, { positional: [width = 4, first = false] }) => {
  const margin = ' '.repeat(Math.min(toInteger(width), 64));
  const lines = text(value)
    .split('\n')
    .map((line, index) => (line === '' || (index === 0 && !isTrue(first)) ? line : margin + line));
  return value instanceof Text ? new Text(lines.join('\n'), value.marks) : lines.join('\n');
};

const isAtLeast = (version: string, minimum: string): boolean => {
  const [left, right] = [version, minimum].map((one) => one.replace(/^v/, '').split(/[.+-]/));
  for (let index = 0; index < 3; index += 1) {
    const difference = toInteger(left?.[index] ?? '0') - toInteger(right?.[index] ?? '0');
    if (difference !== 0) return difference > 0;
  }
  return true;
};

const containsAddress: FilterFunction = (value, args) => {
  const contains = networkContains(text(value), argument(args, 0));
  if (contains !== undefined) return contains;
  throw new TemplateFailure('the network or the address is malformed', {
    nextStep: 'Write networks like 10.0.0.0/8 or 2001:db8::/32.',
    reason: 'ValueRefused',
  });
};

const fallback: FilterFunction = (value, { positional: [other, anyFalse = false] }) => {
  const absent = value === undefined || value === null || (isTrue(anyFalse) && !isTrue(value));
  return absent ? other : value;
};

const STRING_FILTERS: Readonly<Record<string, FilterFunction>> = {
  default: fallback,
  coalesce: (value, { positional }) =>
    [value, ...positional].find((one) => one !== undefined && one !== null),
  lower: (value) => text(value).toLowerCase(),
  upper: (value) => text(value).toUpperCase(),
  trim: (value) => text(value).trim(),
  replace: (value, args) => text(value).replaceAll(argument(args, 0), () => argument(args, 1)),
  split: (value, args) => text(value).split(argument(args, 0)),
  indent,
  to_int: toInteger,
  to_json: (value) => canonicalJson(value),
  b64encode: (value) => encodeBase64(text(value)),
  b64decode: (value) => decodeBase64(text(value)),
  sha256: (value, _args, run) => run.cell.digest(text(value)),
  semver_gte: (value, args) => isAtLeast(text(value), argument(args, 0)),
  cidr_contains: containsAddress,
  starts_with: (value, args) => text(value).startsWith(argument(args, 0)),
  ends_with: (value, args) => text(value).endsWith(argument(args, 0)),
  glob_match: (value, args) => globMatches(argument(args, 0), text(value)),
  regex_match: (value, args) => linearRegex(argument(args, 0)).matcher(text(value)).find(),
  regex_replace: (value, args) =>
    linearRegex(argument(args, 0)).matcher(text(value)).replaceAll(argument(args, 1)),
};

/** All filters by name, the emitters among them. */
export const FILTERS: ReadonlyMap<string, FilterFunction> = new Map<string, FilterFunction>([
  ...Object.entries(STRING_FILTERS),
  ...Object.entries(LIST_FILTERS),
  ...Object.entries(EMITTERS).map(
    ([name, emitter]) => [name, emit(name, emitter)] as [string, FilterFunction],
  ),
]);
