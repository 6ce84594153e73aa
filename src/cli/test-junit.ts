import type { TestReason } from '../render/validation/run-tests.ts';
import { describeProblem } from '../sinks/log-problems.ts';
import type { Problem } from '../snapshot/problem.ts';
import {
  countsOf,
  messageOf,
  reasonLines,
  type RunReport,
  type SuiteReport,
  type TimedTest,
} from './test-report.ts';

/**
 * The run as JUnit XML, the form that continuous integration reads: a `testsuite` for each configuration, a `testcase`
 * for each test, with `failure`, `error` (HAProxy could not judge) or `skipped`. What is wrong outside of tests is one
 * more suite whose cases are errors. Times are seconds.
 */
export const junitXml = (run: RunReport): string => {
  const errors = run.problems.filter(({ severity }) => severity === 'error');
  const suites = run.suites.map(suiteElement);
  if (errors.length > 0) suites.push(problemSuite(errors));
  const counts = countsOf(run.suites.flatMap(({ tests }) => tests));
  const totals = {
    tests: counts.total + errors.length,
    failures: counts.failed,
    errors: counts.inconclusive + errors.length,
    time: seconds(run.durationMs),
  };
  const root = element('testsuites', { name: 'haptic test', ...totals }, suites);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${root}\n`;
};

const suiteElement = ({ name, tests }: SuiteReport): string => {
  const counts = countsOf(tests);
  return element(
    'testsuite',
    {
      name,
      tests: counts.total,
      failures: counts.failed,
      errors: counts.inconclusive,
      skipped: counts.skipped,
      time: seconds(tests.reduce((sum, { durationMs }) => sum + durationMs, 0)),
    },
    tests.map((test) => caseElement(name, test)),
  );
};

const caseElement = (classname: string, test: TimedTest): string =>
  element(
    'testcase',
    { classname, name: test.name, time: seconds(test.durationMs) },
    outcomeElements(test),
  );

/** Readers take one element of a case, so it holds all reasons. */
const outcomeElements = ({ name, outcome, reasons }: TimedTest): readonly string[] => {
  const message = reasons.map((reason) => messageOf(name, reason)).join(' ');
  const text = reasonLines(name, reasons).join('\n');
  switch (outcome) {
    case 'passed':
      return [];
    case 'skipped':
      return [element('skipped', { message }, [])];
    case 'failed':
      return [textElement('failure', { message, type: typeOf(reasons) }, text)];
    case 'inconclusive':
      return [textElement('error', { message, type: typeOf(reasons) }, text)];
  }
};

const typeOf = ([first]: readonly TestReason[]): string => first?.problem.reason ?? '';

const problemSuite = (problems: readonly Problem[]): string => {
  const count = problems.length;
  return element(
    'testsuite',
    { name: 'input', tests: count, failures: 0, errors: count, skipped: 0, time: seconds(0) },
    problems.map((problem) =>
      element('testcase', { classname: 'input', name: subjectOf(problem), time: seconds(0) }, [
        textElement(
          'error',
          { message: problem.message, type: problem.reason },
          describeProblem(problem),
        ),
      ]),
    ),
  );
};

const subjectOf = ({ object, place, reason }: Problem): string => {
  if (object !== undefined) return `${object.kind} ${object.namespace}/${object.name}: ${reason}`;
  return place === undefined ? reason : `${place.source}: ${reason}`;
};

type Attributes = Readonly<Record<string, string | number>>;

const element = (name: string, attributes: Attributes, children: readonly string[]): string => {
  const start = `<${name}${attributesText(attributes)}`;
  if (children.length === 0) return `${start}/>`;
  return `${start}>\n${children.join('\n')}\n</${name}>`;
};

const textElement = (name: string, attributes: Attributes, text: string): string =>
  `<${name}${attributesText(attributes)}>${escaped(text)}</${name}>`;

const attributesText = (attributes: Attributes): string =>
  Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${attributeValue(String(value))}"`)
    .join('');

/** Line feeds in an attribute would be read as blanks. */
const attributeValue = (value: string): string =>
  escaped(value).replaceAll('"', '&quot;').replaceAll('\t', '&#9;').replaceAll('\n', '&#10;');

const escaped = (text: string): string =>
  allowed(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** XML 1.0 has no way to write most control characters, halves of surrogate pairs and two more (https://www.w3.org/TR/xml/#charsets). */
const allowed = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\ufffe\uffff]/gu, (one) => (one === '\n' || one === '\t' ? one : ''));

const seconds = (ms: number): string => (ms / 1_000).toFixed(3);
