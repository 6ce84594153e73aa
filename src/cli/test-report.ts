import { testPrefix, type TestReason, type TestReport } from '../render/validation/run-tests.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { printable } from './printable.ts';

/** One test as it was run. */
export interface TimedTest extends TestReport {
  readonly durationMs: number;
}

/** The tests of one configuration as they were run. */
export interface SuiteReport {
  /** For example `HAProxyTemplateConfig default/haptic`. */
  readonly name: string;
  readonly tests: readonly TimedTest[];
}

/** Everything that one call of `haptic test` found out. */
export interface RunReport {
  /** Version of the HAProxy that judged; undefined where there is none. */
  readonly haproxy: string | undefined;
  readonly suites: readonly SuiteReport[];
  /** What is wrong outside of tests: files, configurations. */
  readonly problems: readonly Problem[];
  readonly durationMs: number;
}

type Outcome = TestReport['outcome'];

/** Numbers of tests. */
export type Counts = Readonly<Record<Outcome | 'total', number>>;

/** How many tests ended in which way. */
export const countsOf = (tests: readonly TestReport[]): Counts => {
  const counts = { total: tests.length, passed: 0, failed: 0, skipped: 0, inconclusive: 0 };
  for (const { outcome } of tests) counts[outcome] += 1;
  return counts;
};

/** How an outcome reads. */
const WORDS: Readonly<Record<Outcome, string>> = {
  passed: 'passed',
  failed: 'FAILED',
  skipped: 'skipped',
  inconclusive: 'NOT JUDGED',
};

const WIDTH = Math.max(...Object.values(WORDS).map((word) => word.length));

/** Text before the tests of a configuration. */
export const suiteHeading = (name: string): string => `${printable(name)}\n`;

/** A test with its outcome and time, and below it what is to know about it. */
export const testText = (test: TimedTest): string => {
  const { name, outcome, durationMs, description, reasons } = test;
  const title = description === undefined ? name : `${name}: ${description}`;
  const head = `  ${WORDS[outcome].padEnd(WIDTH)}  ${oneLine(title)} (${duration(durationMs)})`;
  if (outcome === 'skipped') {
    return `${head}: ${reasons.map(({ problem }) => oneLine(problem.message)).join(' ')}\n`;
  }
  const lines = reasonLines(name, reasons);
  return `${[head, ...lines.map((line) => `      ${line}`)].join('\n')}\n`;
};

/** The last line: what came of all tests. */
export const summary = (run: RunReport): string => {
  const { total, ...outcomes } = countsOf(run.suites.flatMap(({ tests }) => tests));
  const parts = (['passed', 'failed', 'skipped', 'inconclusive'] as const).flatMap((outcome) =>
    outcomes[outcome] === 0 && outcome !== 'passed'
      ? []
      : [`${String(outcomes[outcome])} ${WORDS[outcome].toLowerCase()}`],
  );
  const noun = total === 1 ? 'test' : 'tests';
  const where = run.haproxy === undefined ? 'without HAProxy' : `on HAProxy ${run.haproxy}`;
  const time = duration(run.durationMs);
  return total === 0
    ? `no test was run (${time})\n`
    : `${String(total)} ${noun} ${where}: ${parts.join(', ')} (${time})\n`;
};

/** What a reason says, without the name of the test, which stands beside it. */
export const messageOf = (name: string, { problem }: TestReason): string => {
  const prefix = testPrefix(name);
  const { message } = problem;
  return message.startsWith(prefix) ? message.slice(prefix.length) : message;
};

/**
 * Reasons in lines, for each: assertion and message, where it lies, what was expected, what there was, what to do. What
 * to do about several stands once.
 */
export const reasonLines = (name: string, reasons: readonly TestReason[]): readonly string[] =>
  reasons.flatMap((reason, index) => {
    const { nextStep } = reason.problem;
    const isLast = reasons[index + 1]?.problem.nextStep !== nextStep;
    return [...whatAndWhere(name, reason), ...(isLast ? lined('  ', nextStep) : [])];
  });

const whatAndWhere = (name: string, reason: TestReason): readonly string[] => {
  const { problem, expected, found } = reason;
  const [, path = ''] = /\.(assertions\[\d+\]|fixtures.*)$/.exec(problem.field ?? '') ?? [];
  const said = [path, messageOf(name, reason)].filter((part) => part !== '').join(' ');
  return [
    ...lined('', said),
    ...lined('  at ', placeOf(problem)),
    ...lined('  expected ', expected),
    ...lined('  found    ', found),
  ];
};

const lined = (label: string, text: string | undefined): readonly string[] => {
  if (text === undefined || text === '') return [];
  const [first = '', ...others] = printable(text).trimEnd().split('\n');
  const indent = ' '.repeat(label.length);
  return [`${label}${first}`, ...others.map((line) => `${indent}${line}`)];
};

const placeOf = ({ place, object }: Problem): string => {
  const position = place && [place.source, place.line, place.column];
  const source = position?.filter((part) => part !== undefined).join(':');
  return [source, object && nameOf(object)].filter((part) => part !== undefined).join(', for ');
};

const nameOf = ({ kind, namespace, name }: ObjectRef): string =>
  `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;

const oneLine = (text: string): string => printable(text).replaceAll('\n', ' ');

const duration = (ms: number): string =>
  ms < 1_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(1)} s`;

/** The run as `--output json` prints it. */
export const asJson = ({ haproxy, suites, problems, durationMs }: RunReport): object => ({
  haproxy,
  summary: { ...countsOf(suites.flatMap(({ tests }) => tests)), durationMs: rounded(durationMs) },
  configurations: suites.map(({ name, tests }) => ({
    name,
    tests: tests.map((test) => ({
      name: test.name,
      ...(test.description !== undefined && { description: test.description }),
      outcome: test.outcome,
      durationMs: rounded(test.durationMs),
      reasons: test.reasons.map(({ problem, ...quotations }) => ({ ...problem, ...quotations })),
    })),
  })),
  problems,
});

const rounded = (ms: number): number => Math.round(ms * 10) / 10;
