/** What the operators of the template language do with branded and plain values. */
import { TemplateFailure } from './failure.ts';
import type { Run } from './run.ts';
import { Text, joinBrands, plain } from './text.ts';
import { TrackedCollection, deepPlain, isRecord, kindOf, memberOf } from './values.ts';

const refuse = (message: string, nextStep: string): never => {
  throw new TemplateFailure(message, { nextStep });
};

/** Equal values of equal type; lists and mappings by identity. */
export const equals = (left: unknown, right: unknown): boolean => plain(left) === plain(right);

/** Order of two numbers, or of two strings by code units. */
export const compare = (left: unknown, right: unknown): number => {
  const [one, two] = [plain(left), plain(right)];
  if (typeof one === 'number' && typeof two === 'number') return one - two;
  if (typeof one === 'string' && typeof two === 'string') return one < two ? -1 : Number(one > two);
  return refuse(
    `${kindOf(one)} and ${kindOf(two)} cannot be compared`,
    'Compare two numbers or two strings; to_int makes a number.',
  );
};

/** Whether a comparison such as `<=` holds. */
export const holds = (type: string, left: unknown, right: unknown): boolean => {
  if (type === '==' || type === '===') return equals(left, right);
  if (type === '!=' || type === '!==') return !equals(left, right);
  const order = compare(left, right);
  if (type === '<') return order < 0;
  if (type === '>') return order > 0;
  return type === '<=' ? order <= 0 : order >= 0;
};

/** `needle in haystack`: element of a list, key of a mapping, part of a string. */
export const contains = (needle: unknown, haystack: unknown, run: Run): boolean => {
  const [wanted, bare] = [plain(needle), plain(haystack)];
  if (typeof bare === 'string') return typeof wanted === 'string' && bare.includes(wanted);
  if (Array.isArray(bare)) return bare.some((element) => plain(element) === wanted);
  if (isRecord(bare) || bare instanceof TrackedCollection)
    return memberOf(bare, wanted, run) !== undefined;
  return refuse(`"in" cannot look into ${kindOf(bare)}`, 'Use a list, a mapping or a string.');
};

const isPrintable = (value: unknown): boolean =>
  value instanceof Text || ['string', 'number', 'boolean'].includes(typeof value);

/** `~`: joins two printable values; branded when both are. */
export const concatenate = (left: unknown, right: unknown): string | Text => {
  for (const part of [left, right]) {
    if (!isPrintable(part))
      refuse(`~ cannot join ${kindOf(part)}`, 'Join strings, numbers and booleans.');
  }
  return joinBrands([left, right], '');
};

/** `+`: the sum of two numbers, two strings or two lists one after the other. */
export const plus = (left: unknown, right: unknown): unknown => {
  const [one, two] = [plain(left), plain(right)];
  if (typeof one === 'number' && typeof two === 'number') return one + two;
  if (typeof one === 'string' && typeof two === 'string') return joinBrands([left, right], '');
  if (Array.isArray(one) && Array.isArray(two))
    return [...(one as unknown[]), ...(two as unknown[])];
  return refuse(`+ cannot add ${kindOf(one)} and ${kindOf(two)}`, 'Use ~ to join text.');
};

export const toNumber = (value: unknown): number => {
  const bare = plain(value);
  return typeof bare === 'number'
    ? bare
    : refuse(`${kindOf(bare)} is not a number`, 'Make a number of it with to_int.');
};

/** JSON with sorted keys and without spaces: equal values give equal text. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(deepPlain(value), (_key, member: unknown) =>
    isRecord(member)
      ? Object.fromEntries(
          Object.entries(member).sort(([left], [right]) => (left < right ? -1 : 1)),
        )
      : member,
  );
