import { chunkText } from '../../cells/chunk.ts';
import type { Problem } from '../../snapshot/problem.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { lastMember, memberPath, type Report } from '../config/field-checks.ts';
import { mergeMembers } from '../config/parse-config.ts';
import type { ValidationTestSpec } from '../config/spec.ts';
import type { TemplateConfig } from '../config/template-config.ts';
import type { CreatedEngine } from '../engine.ts';
import { TemplateFailure } from '../language/failure.ts';
import type { Render, RenderResult, TemplateEngine } from '../render.ts';
import { isAtLeast } from '../version.ts';
import { type Assertion, checkText } from './assertions.ts';
import { fixtureSnapshot } from './fixtures.ts';
import { RENDERING_ERROR } from './targets.ts';

/** What HAProxy says about a render: accepted, or what is wrong, or why it could not be asked. */
export type Judgement =
  | { readonly result: 'passed' }
  | { readonly result: 'refused'; readonly problems: readonly Problem[] }
  | { readonly result: 'inconclusive'; readonly cause: string };

/** What tests run on. */
export interface TestBench {
  readonly config: TemplateConfig;
  /** Lowest HAProxy version of the fleet, for `minHAProxyVersion`. */
  readonly haproxyVersion: string;
  compile(config: TemplateConfig): CreatedEngine;
  /** Asks HAProxy, for `haproxy_valid`. */
  check(render: Render): Promise<Judgement>;
}

/** How one test ended. `inconclusive`: HAProxy could not be asked, and nothing else is wrong. */
export interface TestReport {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'inconclusive';
  /** What failed, or why it was skipped or not judged. */
  readonly problems: readonly Problem[];
}

/** What all tests share; no test by itself. */
const GLOBAL = '_global';

/** The names of the tests of a configuration, in the order in which they run. */
export const testNames = ({ validationTests }: TemplateConfig): readonly string[] =>
  [...validationTests.keys()].filter((name) => name !== GLOBAL).sort();

/**
 * Runs one of the tests that a configuration brings: its fixtures are rendered as objects of the cluster would be, by an
 * engine that no other test has used, and every assertion is looked at.
 *
 * @throws RangeError for a name that is no test
 */
export const runTest = async (name: string, bench: TestBench): Promise<TestReport> => {
  const test = completeTest(name, bench.config);
  const skip = reasonToSkip(test, bench);
  if (skip !== undefined) return { name, outcome: 'skipped', problems: [skip] };
  const problems: Problem[] = [];
  const report: Report = (path, message, nextStep) => {
    problems.push(problem(name, path, `${lastMember(path)} ${message}`, nextStep));
  };
  const snapshot = fixtureSnapshot(test, bench.config.watched, report);
  if (snapshot === undefined) return { name, outcome: 'failed', problems };
  return new TestRun({ name, test, bench, snapshot }).report();
};

interface TestParts {
  readonly name: string;
  readonly test: ValidationTestSpec;
  readonly bench: TestBench;
  readonly snapshot: Snapshot;
}

class TestRun {
  readonly #parts: TestParts;
  readonly #problems: Problem[] = [];
  /** Assertions that HAProxy could not judge. */
  readonly #unjudged: Problem[] = [];

  constructor(parts: TestParts) {
    this.#parts = parts;
  }

  async report(): Promise<TestReport> {
    const { name, test } = this.#parts;
    const assertions = test.assertions ?? [];
    const result = this.#render();
    if (result !== undefined) {
      this.#judgeFailure(result, assertions);
      for (const [index, assertion] of assertions.entries()) {
        await this.#assert(assertion, { path: `assertions[${index}]`, result });
      }
    }
    const problems = [...this.#problems, ...this.#unjudged];
    if (problems.length === 0) return { name, outcome: 'passed', problems };
    return { name, outcome: this.#problems.length > 0 ? 'failed' : 'inconclusive', problems };
  }

  /** A new engine for each render; undefined after a report of a configuration that does not compile. */
  #render(): RenderResult | undefined {
    const { bench, test, snapshot } = this.#parts;
    const extraContext = mergeMembers(bench.config.extraContext, test.extraContext ?? {});
    const created = bench.compile({ ...bench.config, extraContext });
    if (created.ok) return complete(created.engine, snapshot);
    this.#problems.push(...created.problems);
    return undefined;
  }

  /** A failed render fails the test, unless the test is about the failure. */
  #judgeFailure(result: RenderResult, assertions: readonly Assertion[]): void {
    if (result.ok || assertions.some(({ target }) => target === RENDERING_ERROR)) return;
    for (const { message, nextStep } of result.failure.problems) {
      this.#fail('fixtures', `cannot be rendered: ${message}`, nextStep);
    }
  }

  async #assert(
    assertion: Assertion,
    { path, result }: { readonly path: string; readonly result: RenderResult },
  ): Promise<void> {
    const { type, description } = assertion;
    const title = description === undefined ? '' : ` (${description})`;
    const fail = (message: string): void => {
      this.#fail(
        path,
        `${type ?? 'assertion'}${title}: ${message}`,
        'Correct the templates, or the test.',
      );
    };
    if (type === 'haproxy_valid') await this.#askHaproxy(result, { path, title });
    else if (type === 'deterministic') {
      const again = this.#render();
      const wrong = again === undefined ? undefined : difference(result, again);
      if (wrong !== undefined) fail(wrong);
    } else {
      const wrong = tolerant(() => checkText(assertion, result));
      if (wrong !== undefined) fail(wrong);
    }
  }

  async #askHaproxy(
    result: RenderResult,
    { path, title }: { readonly path: string; readonly title: string },
  ): Promise<void> {
    if (!result.ok) return; // told already, or what the test is about
    const judgement = await this.#parts.bench.check(result.render);
    if (judgement.result === 'refused') {
      for (const { message, nextStep } of judgement.problems) {
        this.#fail(path, `haproxy_valid${title}: ${message}`, nextStep);
      }
    } else if (judgement.result === 'inconclusive') {
      const message = `haproxy_valid${title}: ${judgement.cause}`;
      const nextStep = 'Nothing to do: it is tried again.';
      this.#unjudged.push(problem(this.#parts.name, path, message, nextStep));
    }
  }

  #fail(path: string, message: string, nextStep: string): void {
    this.#problems.push(problem(this.#parts.name, path, message, nextStep));
  }
}

type ProblemWords = readonly [test: string, path: string, message: string, nextStep: string];

const problem = (...[name, path, message, nextStep]: ProblemWords): Problem => ({
  severity: 'error',
  reason: 'ValidationTestFailed',
  message: `Test ${JSON.stringify(name)}: ${message.replace(/\.$/, '')}.`,
  nextStep,
  field: `${memberPath('spec.validationTests', name)}.${path}`,
});

/** A test with what all tests share. */
const completeTest = (name: string, { validationTests }: TemplateConfig): ValidationTestSpec => {
  const test = validationTests.get(name);
  if (test === undefined) throw new RangeError(`there is no test ${JSON.stringify(name)}`);
  const shared = { ...NOTHING, ...validationTests.get(GLOBAL) };
  const own = { ...NOTHING, ...test };
  const fixtures = new Map(shared.fixtures);
  for (const [resource, objects] of own.fixtures) {
    fixtures.set(resource, [...(fixtures.get(resource) ?? []), ...objects]);
  }
  return {
    ...shared,
    ...test,
    fixtures,
    extraContext: mergeMembers(shared.extraContext, own.extraContext),
    requires: [...shared.requires, ...own.requires],
    assertions: [...shared.assertions, ...own.assertions],
  };
};

type Shared = 'fixtures' | 'extraContext' | 'requires' | 'assertions';

const NOTHING: Required<Pick<ValidationTestSpec, Shared>> = {
  fixtures: new Map(),
  extraContext: {},
  requires: [],
  assertions: [],
};

const reasonToSkip = (
  { minHAProxyVersion, requires = [] }: ValidationTestSpec,
  { config, haproxyVersion }: TestBench,
): Problem | undefined => {
  const missing = requires.find((name) => config.watched.every((one) => one.name !== name));
  const skipped = (message: string): Problem => ({
    severity: 'warning',
    reason: 'ValidationTestSkipped',
    message,
    nextStep: 'Nothing, if that is meant.',
  });
  if (missing !== undefined) return skipped(`${missing} is not watched.`);
  if (minHAProxyVersion === undefined || isAtLeast(haproxyVersion, minHAProxyVersion))
    return undefined;
  return skipped(`It needs HAProxy ${minHAProxyVersion}, and this is ${haproxyVersion}.`);
};

/** A whole render at once. */
const complete = (engine: TemplateEngine, snapshot: Snapshot): RenderResult => {
  const steps = engine.steps(snapshot);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
};

const difference = (first: RenderResult, second: RenderResult): string | undefined => {
  if (!first.ok || !second.ok) {
    return first.ok === second.ok ? undefined : 'the same objects render once and fail once';
  }
  const [before, after] = [first.render.files, second.render.files];
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  const path = paths.find((one) => textOf(before.get(one)) !== textOf(after.get(one)));
  return path === undefined ? undefined : `${path} differs between two renders of the same objects`;
};

const textOf = (
  file: Render['files'] extends ReadonlyMap<string, infer F> ? F | undefined : never,
) => (file === undefined ? undefined : chunkText(file.text));

/** A pattern that is none is what the assertion says wrong. */
const tolerant = (check: () => string | undefined): string | undefined => {
  try {
    return check();
  } catch (error: unknown) {
    if (error instanceof TemplateFailure) return error.message;
    throw error;
  }
};
