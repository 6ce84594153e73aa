import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { reduce, tap } from 'rxjs';
import type { Problem } from '../snapshot/problem.ts';
import { testConfig, type TestEvent } from '../vetting/test-config.ts';
import { type Call, type Command, CommandError, EXIT } from './command.ts';
import { COMPILE_OPTIONS, compileOptions, type OneShotOptions } from './compile-options.ts';
import { compileSettings } from './compile.ts';
import { defaultCertificate } from './default-certificate.ts';
import { hasErrors, throwIfOurs, untilStopped } from './one-shot.ts';
import { printable } from './printable.ts';
import { vetProgram } from './programs.ts';
import { type Judge, judgeOf } from './test-judge.ts';
import { junitXml } from './test-junit.ts';
import { countsOf, type RunReport, type SuiteReport, type TimedTest } from './test-report.ts';
import { readSuites, type Suite } from './test-suites.ts';
import { type Teller, tellerOf } from './test-teller.ts';

export const testCommand: Command = {
  name: 'test',
  arguments: ['DIR'],
  summary: 'Run the tests that the configurations in a directory of manifests bring along',
  details: [
    'Each HAProxyTemplateConfig below DIR has its tests in spec.validationTests (docs/templates.md). A test that does not',
    'end, or takes too much memory, is stopped and has failed. Exit status 1 when a test fails, there is none, or anything',
    'is wrong with the input; 2 when HAProxy could not judge.',
  ].join('\n'),
  options: {
    ...COMPILE_OPTIONS,
    haproxy: {
      type: 'string',
      value: 'PATH',
      help: 'the HAProxy that checks (default $HAPROXY, else the one on PATH)',
    },
    filter: {
      type: 'string',
      value: 'GLOB',
      help: 'only tests of such a name: * any characters, ? one (default: all)',
    },
    junit: { type: 'string', value: 'FILE', help: 'also write the report as JUnit XML' },
  },
  run: async (call) => {
    const scratch = await mkdtemp(join(tmpdir(), 'haptic-'));
    try {
      const judge = await judgeOf(call, scratch);
      try {
        return await runTests(call, judge, scratch);
      } finally {
        await judge.close();
      }
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
};

const runTests = async (call: Call, judge: Judge, scratch: string): Promise<number> => {
  const { positionals, values, terminal } = call;
  const startedAt = performance.now();
  const version = judge.version === undefined ? {} : { 'haproxy-version': judge.version };
  const options: OneShotOptions = {
    ...(await compileOptions({ ...version, ...values }, terminal)),
    defaultCertificate: await defaultCertificate(join(scratch, 'default.pem')),
  };
  const read = await readSuites(positionals[0] ?? '', options, textOf(values['filter']));
  const teller = tellerOf(call);
  teller.problems(read.problems);
  const suites: SuiteReport[] = [];
  const problems = [...read.problems];
  for (const suite of read.suites) {
    teller.heading(suite.name);
    const ran = await runSuite(suite, { options, judge, teller });
    suites.push({ name: suite.name, tests: ran.tests });
    problems.push(...ran.problems);
  }
  const durationMs = performance.now() - startedAt;
  const run: RunReport = { haproxy: judge.version, suites, problems, durationMs };
  teller.end(run);
  const junit = textOf(values['junit']);
  if (junit !== undefined) await writeJunit(resolve(junit), run);
  return statusOf(run);
};

interface Ran {
  readonly tests: readonly TimedTest[];
  readonly problems: readonly Problem[];
}

const NOTHING: Ran = { tests: [], problems: [] };

const runSuite = (
  { config, tests }: Suite,
  {
    options,
    judge,
    teller,
  }: { readonly options: OneShotOptions; readonly judge: Judge; readonly teller: Teller },
): Promise<Ran> => {
  const { limits, signal } = options;
  const event$ = testConfig(config, {
    program: vetProgram(),
    settings: compileSettings(options),
    names: tests,
    check: judge.check,
    now: () => performance.now(),
    // That of one render, for each test.
    limits: { ...limits, cpuSeconds: limits.cpuSeconds * (tests.length + 1) },
  });
  const ran$ = event$.pipe(
    teller.progress.during((event) => runningLine(event, tests)),
    tap((event) => teller.event(event)),
    reduce(withEvent, NOTHING),
  );
  return untilStopped(ran$, signal, NOTHING);
};

/** @throws CommandError when no process runs tests */
const withEvent = (ran: Ran, event: TestEvent): Ran => {
  if (event.type === 'Started') return ran;
  if (event.type === 'Refused') {
    throwIfOurs(event.problems);
    return { ...ran, problems: [...ran.problems, ...event.problems] };
  }
  const { report, durationMs } = event;
  return { ...ran, tests: [...ran.tests, { ...report, durationMs }] };
};

const runningLine = (
  event: TestEvent,
  tests: readonly string[],
): ((seconds: number) => string) | undefined => {
  if (event.type !== 'Started') return undefined;
  const number = tests.indexOf(event.name) + 1;
  // Short enough for one line, which is what can be taken away.
  const name = printable(event.name).replaceAll('\n', ' ').slice(0, 40);
  const which = `test ${String(number)} of ${String(tests.length)}, ${name}`;
  return (seconds) => `running ${which}: ${String(seconds)} s`;
};

const writeJunit = async (file: string, run: RunReport): Promise<void> => {
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, junitXml(run));
  } catch (error: unknown) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(`cannot write ${file}: ${why}; name another file with --junit`);
  }
};

const statusOf = ({ suites, problems }: RunReport): number => {
  const { failed, inconclusive } = countsOf(suites.flatMap(({ tests }) => tests));
  if (failed > 0 || hasErrors(problems)) return EXIT.badInput;
  return inconclusive > 0 ? EXIT.couldNotRun : EXIT.good;
};

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
