import type { ValidationTestSpec } from '../config/spec.ts';
import { linearRegex } from '../language/patterns.ts';
import type { RenderResult } from '../render.ts';
import { parseJsonPath, valuesAt } from './json-path.ts';
import { targetText } from './targets.ts';

/** One assertion of a test, as written. */
export type Assertion = NonNullable<ValidationTestSpec['assertions']>[number];

/** What an assertion on a text takes. */
type TextCheck = (text: string, assertion: Assertion) => string | undefined;

/**
 * What is wrong with a render according to an assertion on one of its texts; undefined when it holds. Patterns are
 * regular expressions in RE2 syntax and take linear time. No message quotes the text, which may hold keys.
 *
 * @throws TemplateFailure for a pattern that is no regular expression
 */
export const checkText = (assertion: Assertion, result: RenderResult): string | undefined => {
  const { type = '', target = 'haproxy.cfg' } = assertion;
  const check = CHECKS[type];
  if (check === undefined) return 'has no type';
  const looked = targetText(target, result);
  if (!looked.ok) return looked.message;
  const wrong = check(looked.text, assertion);
  return wrong === undefined ? undefined : `${target} ${wrong}`;
};

const shown = (pattern: string): string =>
  JSON.stringify(pattern.length > 200 ? `${pattern.slice(0, 200)}…` : pattern);

const matches = (text: string, pattern: string): number => {
  const matcher = linearRegex(pattern).matcher(text);
  let count = 0;
  while (matcher.find()) count += 1;
  return count;
};

const contains: TextCheck = (text, { pattern }) => {
  if (pattern === undefined) return lacks('pattern');
  return linearRegex(pattern).matcher(text).find() ? undefined : `does not match ${shown(pattern)}`;
};

const notContains: TextCheck = (text, { pattern }) => {
  if (pattern === undefined) return lacks('pattern');
  const matcher = linearRegex(pattern).matcher(text);
  if (!matcher.find()) return undefined;
  return `matches ${shown(pattern)} in line ${lineAt(text, matcher.start())}`;
};

const equals: TextCheck = (text, { expected }) => {
  if (expected === undefined) return lacks('expected');
  const [lines, wanted] = [text, expected].map((one) => one.replace(/\n$/, '').split('\n'));
  if (lines === undefined || wanted === undefined) return undefined;
  const length = Math.max(lines.length, wanted.length);
  const at = Array.from({ length }, (_, line) => line).find((line) => lines[line] !== wanted[line]);
  return at === undefined ? undefined : `differs from what is expected, first in line ${at + 1}`;
};

const matchCount: TextCheck = (text, { pattern, expected }) => {
  if (pattern === undefined || expected === undefined) return lacks('pattern or expected');
  const count = matches(text, pattern);
  return String(count) === expected.trim()
    ? undefined
    : `matches ${shown(pattern)} ${count} times, not ${expected}`;
};

const matchOrder: TextCheck = (text, { patterns }) => {
  if (patterns === undefined) return lacks('patterns');
  let from = 0;
  for (const [index, pattern] of patterns.entries()) {
    const matcher = linearRegex(pattern).matcher(text);
    if (!matcher.find(from)) {
      const before = patterns[index - 1];
      const where = before === undefined ? '' : ` behind ${shown(before)}`;
      return `does not match ${shown(pattern)}${where}`;
    }
    from = matcher.end();
  }
  return undefined;
};

const jsonpath: TextCheck = (text, { jsonpath: path, expected }) => {
  if (path === undefined) return lacks('jsonpath');
  const steps = parseJsonPath(path);
  if (steps === undefined)
    return `cannot be looked up: ${shown(path)} is not a path of names and positions`;
  const value = parsed(text);
  if (value === undefined) return 'is no JSON';
  const values = valuesAt(value, steps);
  if (values.length === 0) return `has nothing at ${shown(path)}`;
  const actual = values
    .map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
    .join(' ');
  if (expected === undefined || actual === expected) return undefined;
  return `has another value at ${shown(path)} than ${shown(expected)}`;
};

const CHECKS: Readonly<Partial<Record<string, TextCheck>>> = {
  contains,
  not_contains: notContains,
  equals,
  match_count: matchCount,
  match_order: matchOrder,
  jsonpath,
};

const lacks = (member: string): string => `cannot be judged: the assertion lacks ${member}`;

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length;

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};
