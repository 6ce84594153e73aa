import type { ValidationTestSpec } from '../config/spec.ts';
import { TemplateFailure } from '../language/failure.ts';
import { linearRegex } from '../language/patterns.ts';
import type { RenderResult } from '../render.ts';
import {
  firstDifference,
  likeliestLine,
  lineAt,
  linesAt,
  shownShape,
  shownValue,
} from './excerpts.ts';
import { parseJsonPath, type Step, valuesAt } from './json-path.ts';
import { RENDERING_ERROR, targetText } from './targets.ts';

/** One assertion of a test, as written. */
export type Assertion = NonNullable<ValidationTestSpec['assertions']>[number];

/** Why an assertion does not hold. */
export interface Miss {
  /** Quotes nothing of what was rendered, which may hold keys. */
  readonly message: string;
  readonly expected?: string;
  /** A short quotation of what was rendered, for whoever runs the test; absent for certificates. */
  readonly found?: string;
}

/** What an assertion on a text takes. */
type TextCheck = (text: string, assertion: Assertion) => Miss | undefined;

/**
 * What is wrong with a render according to an assertion on one of its texts; undefined when it holds. Patterns are
 * regular expressions in RE2 syntax and take linear time.
 */
export const checkText = (assertion: Assertion, result: RenderResult): Miss | undefined =>
  tolerant(() => textMiss(assertion, result));

/** Whether an assertion is about a failure: it would not hold of a render that succeeds. */
export const expectsFailure = (assertion: Assertion): boolean =>
  assertion.target === RENDERING_ERROR &&
  tolerant(() => CHECKS[assertion.type ?? '']?.('', assertion)) !== undefined;

/** A pattern that is none is what the assertion says wrong. */
const tolerant = (check: () => Miss | undefined): Miss | undefined => {
  try {
    return check();
  } catch (error: unknown) {
    if (error instanceof TemplateFailure) return { message: error.message };
    throw error;
  }
};

const textMiss = (assertion: Assertion, result: RenderResult): Miss | undefined => {
  const { type = '', target = 'haproxy.cfg' } = assertion;
  const check = CHECKS[type];
  if (check === undefined) return { message: 'has no type' };
  const looked = targetText(target, result);
  if (!looked.ok) return { message: looked.message };
  const miss = check(looked.text, assertion);
  if (miss === undefined) return undefined;
  const { found, ...said } = miss;
  const message = `${target} ${miss.message}`;
  return { ...said, message, ...(found !== undefined && !looked.secret && { found }) };
};

const shown = (pattern: string): string =>
  JSON.stringify(pattern.length > 200 ? `${pattern.slice(0, 200)}…` : pattern);

const matches = (text: string, pattern: string): readonly number[] => {
  const matcher = linearRegex(pattern).matcher(text);
  const positions: number[] = [];
  while (matcher.find()) positions.push(matcher.start());
  return positions;
};

const contains: TextCheck = (text, { pattern }) => {
  if (pattern === undefined) return lacks('pattern');
  if (linearRegex(pattern).matcher(text).find()) return undefined;
  const found = likeliestLine(text, pattern);
  return {
    message: `does not match ${shown(pattern)}`,
    expected: `a match of /${pattern}/`,
    found,
  };
};

const notContains: TextCheck = (text, { pattern }) => {
  if (pattern === undefined) return lacks('pattern');
  const positions = matches(text, pattern);
  const [first] = positions;
  if (first === undefined) return undefined;
  return {
    message: `matches ${shown(pattern)} in line ${lineAt(text, first)}`,
    expected: `no match of /${pattern}/`,
    found: linesAt(text, positions),
  };
};

const equals: TextCheck = (text, { expected }) => {
  if (expected === undefined) return lacks('expected');
  const difference = firstDifference(expected, text);
  if (difference === undefined) return undefined;
  const { line } = difference;
  return {
    message: `differs from what is expected, first in line ${line}`,
    expected: `line ${line}: ${difference.expected}`,
    found: `line ${line}: ${difference.found}`,
  };
};

const matchCount: TextCheck = (text, { pattern, expected }) => {
  if (pattern === undefined || expected === undefined) return lacks('pattern or expected');
  const positions = matches(text, pattern);
  const count = positions.length;
  if (String(count) === expected.trim()) return undefined;
  return {
    message: `matches ${shown(pattern)} ${count} times, not ${expected}`,
    expected: `matches of /${pattern}/: ${expected}`,
    found: count === 0 ? likeliestLine(text, pattern) : linesAt(text, positions),
  };
};

const matchOrder: TextCheck = (text, { patterns }) => {
  if (patterns === undefined) return lacks('patterns');
  let from = 0;
  for (const [index, pattern] of patterns.entries()) {
    const matcher = linearRegex(pattern).matcher(text);
    if (!matcher.find(from))
      return outOfOrder(text, pattern, { from, before: patterns[index - 1] });
    from = matcher.end();
  }
  return undefined;
};

const outOfOrder = (
  text: string,
  pattern: string,
  { from, before }: { readonly from: number; readonly before: string | undefined },
): Miss => {
  const earlier = matches(text, pattern).filter((at) => at < from);
  const message = `does not match ${shown(pattern)}`;
  const found =
    earlier.length === 0 ? likeliestLine(text, pattern) : `only before: ${linesAt(text, earlier)}`;
  if (before === undefined) return { message, expected: `a match of /${pattern}/`, found };
  return {
    message: `${message} behind ${shown(before)}`,
    expected: `a match of /${pattern}/ behind line ${lineAt(text, from)}, which has /${before}/`,
    found,
  };
};

const jsonpath: TextCheck = (text, { jsonpath: path, expected }) => {
  if (path === undefined) return lacks('jsonpath');
  const steps = parseJsonPath(path);
  if (steps === undefined)
    return { message: `cannot be looked up: ${shown(path)} is not a path of names and positions` };
  const value = parsed(text);
  if (value === undefined) return { message: 'is no JSON' };
  const values = valuesAt(value, steps);
  const wanted = `${expected ?? 'anything'} at ${path}`;
  if (values.length === 0)
    return {
      message: `has nothing at ${shown(path)}`,
      expected: wanted,
      found: insteadOf(value, steps),
    };
  const actual = values
    .map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
    .join(' ');
  if (expected === undefined || actual === expected) return undefined;
  return {
    message: `has another value at ${shown(path)} than ${shown(expected)}`,
    expected: wanted,
    found: values.map(shownValue).slice(0, 3).join('\n'),
  };
};

/** What is there where a path ends too early. */
const insteadOf = (value: unknown, steps: readonly Step[]): string => {
  let reached: readonly unknown[] = [value];
  for (let length = 1; length <= steps.length; length += 1) {
    const next = valuesAt(value, steps.slice(0, length));
    if (next.length === 0) break;
    reached = next;
  }
  return shownShape(reached[0]);
};

const CHECKS: Readonly<Partial<Record<string, TextCheck>>> = {
  contains,
  not_contains: notContains,
  equals,
  match_count: matchCount,
  match_order: matchOrder,
  jsonpath,
};

const lacks = (member: string): Miss => ({
  message: `cannot be judged: the assertion lacks ${member}`,
});

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
