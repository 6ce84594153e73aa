import { chunkText } from '../../cells/chunk.ts';
import type { Problem } from '../../snapshot/problem.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { lastMember, memberPath, type Report } from '../config/field-checks.ts';
import { mergeMembers } from '../config/parse-config.ts';
import type { ValidationTestSpec } from '../config/spec.ts';
import type { TemplateConfig } from '../config/template-config.ts';
import type { CreatedEngine } from '../engine.ts';
import type { Render, RenderedFile, RenderResult, TemplateEngine } from '../render.ts';
import { isAtLeast } from '../version.ts';
import { type Assertion, checkText, expectsFailure, type Miss } from './assertions.ts';
import { firstDifference } from './excerpts.ts';
import { fixtureSnapshot } from './fixtures.ts';
import { isSecret } from './targets.ts';

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
  /** What the author says it is about. */
  readonly description?: string;
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'inconclusive';
  /** What failed, or why it was skipped or not judged. */
  readonly reasons: readonly TestReason[];
}

/** One thing to know about the outcome of a test. */
export interface TestReason extends Omit<Miss, 'message'> {
  /** Quotes nothing of what was rendered, so it may be told anywhere; `found` may not. */
  readonly problem: Problem;
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
  const { description } = test;
  const named = { name, ...(description !== undefined && { description }) };
  const skip = reasonToSkip(test, bench);
  if (skip !== undefined) return { ...named, outcome: 'skipped', reasons: [{ problem: skip }] };
  const reasons: TestReason[] = [];
  const report: Report = (path, message, nextStep) => {
    const said = { message: `${lastMember(path)} ${message}`, nextStep };
    reasons.push({ problem: problemOf(name, path, said) });
  };
  const snapshot = fixtureSnapshot(test, bench.config.watched, report);
  if (snapshot === undefined) return { ...named, outcome: 'failed', reasons };
  return { ...named, ...(await new TestRun({ name, test, bench, snapshot }).result()) };
};

interface TestParts {
  readonly name: string;
  readonly test: ValidationTestSpec;
  readonly bench: TestBench;
  readonly snapshot: Snapshot;
}

class TestRun {
  readonly #parts: TestParts;
  readonly #failures: TestReason[] = [];
  /** Assertions that HAProxy could not judge. */
  readonly #unjudged: TestReason[] = [];

  constructor(parts: TestParts) {
    this.#parts = parts;
  }

  async result(): Promise<Pick<TestReport, 'outcome' | 'reasons'>> {
    const { assertions = [] } = this.#parts.test;
    const result = this.#render();
    if (result !== undefined) {
      this.#judgeFailure(result, assertions);
      for (const [index, assertion] of assertions.entries()) {
        await this.#assert(assertion, { path: `assertions[${index}]`, result });
      }
    }
    const reasons = [...this.#failures, ...this.#unjudged];
    if (reasons.length === 0) return { outcome: 'passed', reasons };
    return { outcome: this.#failures.length > 0 ? 'failed' : 'inconclusive', reasons };
  }

  /** A new engine for each render; undefined after a report of a configuration that does not compile. */
  #render(): RenderResult | undefined {
    const { bench, test, snapshot } = this.#parts;
    const extraContext = mergeMembers(bench.config.extraContext, test.extraContext ?? {});
    const created = bench.compile({ ...bench.config, extraContext });
    if (created.ok) return complete(created.engine, snapshot);
    this.#failures.push(...created.problems.map((problem) => ({ problem })));
    return undefined;
  }

  /** A failed render fails the test, unless the test expects the failure. */
  #judgeFailure(result: RenderResult, assertions: readonly Assertion[]): void {
    if (result.ok || assertions.some(expectsFailure)) return;
    for (const problem of result.failure.problems) {
      const message = `cannot be rendered: ${problem.message}`;
      this.#fail('fixtures', { ...problem, message });
    }
  }

  async #assert(
    assertion: Assertion,
    { path, result }: { readonly path: string; readonly result: RenderResult },
  ): Promise<void> {
    const { type, description } = assertion;
    const title = description === undefined ? '' : ` (${description})`;
    if (type === 'haproxy_valid' && result.ok) {
      await this.#askHaproxy(result.render, { path, title });
      return;
    }
    const miss =
      type === 'haproxy_valid'
        ? NOTHING_RENDERED
        : type === 'deterministic'
          ? difference(result, this.#render())
          : checkText(assertion, result);
    if (miss === undefined) return;
    const { message, ...quotations } = miss;
    const said = `${type ?? 'assertion'}${title}: ${message}`;
    const nextStep = 'Correct the templates, or the test.';
    this.#fail(path, { message: said, nextStep }, quotations);
  }

  async #askHaproxy(
    render: Render,
    { path, title }: { readonly path: string; readonly title: string },
  ): Promise<void> {
    const judgement = await this.#parts.bench.check(render);
    if (judgement.result === 'refused') {
      for (const problem of judgement.problems) {
        this.#fail(path, { ...problem, message: `haproxy_valid${title}: ${problem.message}` });
      }
    } else if (judgement.result === 'inconclusive') {
      const message = `haproxy_valid${title}: ${judgement.cause}`;
      const nextStep = 'Remove the cause: the test was not judged.';
      const problem = problemOf(this.#parts.name, path, { message, nextStep });
      this.#unjudged.push({ problem: { ...problem, reason: 'ConfigNotJudged' } });
    }
  }

  #fail(path: string, said: Said, quotations: Omit<Miss, 'message'> = {}): void {
    this.#failures.push({ problem: problemOf(this.#parts.name, path, said), ...quotations });
  }
}

/** What is said of a test; place and object are those of the template or object it comes down to. */
type Said = Pick<Problem, 'message' | 'nextStep' | 'place' | 'object'>;

const problemOf = (name: string, path: string, said: Said): Problem => ({
  severity: 'error',
  reason: 'ValidationTestFailed',
  message: `${testPrefix(name)}${sentence(said.message)}`,
  nextStep: said.nextStep,
  field: `${memberPath('spec.validationTests', name)}.${path}`,
  ...(said.place !== undefined && { place: said.place }),
  ...(said.object !== undefined && { object: said.object }),
});

const sentence = (message: string): string => (/[.!?…]$/.test(message) ? message : `${message}.`);

/** What messages about a test begin with. */
export const testPrefix = (name: string): string => `Test ${JSON.stringify(name)}: `;

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

const NOTHING_RENDERED: Miss = { message: 'nothing was rendered' };

/** Undefined also when the second render could not be made, which is told by itself. */
const difference = (first: RenderResult, second: RenderResult | undefined): Miss | undefined => {
  if (second === undefined) return undefined;
  if (!first.ok || !second.ok) {
    return first.ok === second.ok
      ? NOTHING_RENDERED
      : { message: 'the same objects render once and fail once' };
  }
  const [before, after] = [first.render.files, second.render.files];
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  const path = paths.find((one) => textOf(before.get(one)) !== textOf(after.get(one)));
  if (path === undefined) return undefined;
  return {
    message: `${path} differs between two renders of the same objects`,
    ...quotedDifference(before.get(path), after.get(path)),
  };
};

const quotedDifference = (
  before: RenderedFile | undefined,
  after: RenderedFile | undefined,
): Omit<Miss, 'message'> => {
  if ([before, after].some((file) => file !== undefined && isSecret(file))) return {};
  const differing = firstDifference(textOf(before) ?? '', textOf(after) ?? '');
  if (differing === undefined) return {};
  const { line, expected, found } = differing;
  return { expected: `line ${line}: ${expected}`, found: `line ${line}: ${found}` };
};

const textOf = (file: RenderedFile | undefined): string | undefined =>
  file === undefined ? undefined : chunkText(file.text);
