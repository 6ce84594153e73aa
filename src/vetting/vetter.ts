import type { TemplateConfig } from '../render/config/template-config.ts';
import type { RenderResult, TemplateEngine } from '../render/render.ts';
import {
  type Judgement,
  runTest,
  type TestBench,
  type TestReport,
  testNames,
  testPrefix,
} from '../render/validation/run-tests.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import { isAwaited, type Need, type Needs } from '../snapshot/content.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { type CompileSettings, compileConfig } from '../streams/compile-config.ts';
import type { Findings, VetTask } from './messages.ts';
import { VetterConversation, type VetterPort } from './vetter-conversation.ts';

/**
 * The work of the process that vets one configuration: compiles it and carries out its task. It ends with the findings;
 * whoever started it kills it when it does not.
 *
 * @param now milliseconds of a steady clock, for the times of tests
 */
export const vet = async (port: VetterPort, now: () => number): Promise<void> => {
  await port.send({ type: 'ready' });
  const order = await port.receive();
  if (order.type !== 'start') throw new Error(`expected an order, not ${order.type}`);
  const findings = await findingsOf(new VetterConversation(port, now), order).catch(
    (error: unknown): Findings => ({ problems: [defect(error)], mayPass: true }),
  );
  await port.send({ type: 'done', ...findings });
};

const PASSED: Findings = { problems: [], mayPass: true };

interface Order {
  readonly config: TemplateConfig;
  readonly settings: CompileSettings;
  readonly task: VetTask;
}

const findingsOf = async (talk: VetterConversation, order: Order): Promise<Findings> => {
  const { config, settings, task } = order;
  await talk.enter('Compiling the templates');
  const created = compileConfig(config, settings);
  if (!created.ok) return { problems: created.problems, mayPass: false };
  if (task.type === 'test') {
    await runTests(talk, order, task.names);
    return PASSED;
  }
  await talk.send({ type: 'compiled' });
  if (task.type === 'render') return handedOver(talk, created.engine, config);
  const tested = testFindings(await runTests(talk, order, testNames(config)));
  if (tested.problems.length > 0) return tested;
  const result = await renderedWithContent(talk, created.engine, await talk.snapshot(config));
  if (!result.ok) return { problems: result.failure.problems, mayPass: true };
  return judged(await talk.check(result.render));
};

/** Renders what there is: nothing is looked up on demand. */
const handedOver = async (
  talk: VetterConversation,
  engine: TemplateEngine,
  config: TemplateConfig,
): Promise<Findings> => {
  const snapshot = await talk.snapshot(config);
  await talk.enter('Rendering the objects');
  const result = rendered(engine, snapshot);
  if (!result.ok) return { problems: result.failure.problems, mayPass: true };
  await talk.handOver(result.render);
  return PASSED;
};

/** All tests run, so that everything that is wrong is told at once. */
const runTests = async (
  talk: VetterConversation,
  { config, settings: given }: Order,
  names: readonly string[],
): Promise<readonly TestReport[]> => {
  const settings = forTests(given);
  const bench: TestBench = {
    config,
    haproxyVersion: settings.haproxyVersion,
    compile: (variant) => compileConfig(variant, settings),
    check: (render) => talk.check(render),
  };
  const reports: TestReport[] = [];
  for (const name of names) {
    await talk.enter(`Running the test ${JSON.stringify(name)}`, name);
    const startedAt = talk.now();
    const report = await runTest(name, bench).catch((error: unknown) => ended(name, error));
    await talk.send({ type: 'tested', report, durationMs: talk.now() - startedAt });
    reports.push(report);
  }
  return reports;
};

/** Fixtures need no IngressClass, so a test ends the same way in a cluster and where none is. */
const forTests = ({ routing, ...settings }: CompileSettings): CompileSettings => ({
  ...settings,
  routing: { ...routing, standalone: true },
});

const ended = (name: string, error: unknown): TestReport => {
  const problem = defect(error);
  const message = `${testPrefix(name)}${problem.message}`;
  return { name, outcome: 'failed', reasons: [{ problem: { ...problem, message } }] };
};

const testFindings = (reports: readonly TestReport[]): Findings => {
  const problemsOf = (outcome: TestReport['outcome']): readonly Problem[] =>
    reports
      .filter((report) => report.outcome === outcome)
      .flatMap(({ reasons }) => reasons.map(({ problem }) => problem));
  const failed = problemsOf('failed');
  return failed.length > 0
    ? { problems: failed, mayPass: false }
    : { problems: problemsOf('inconclusive'), mayPass: true };
};

/** Each round brings content that was missing, so there is an end. */
const renderedWithContent = async (
  talk: VetterConversation,
  engine: TemplateEngine,
  listed: IndexedSnapshot,
): Promise<RenderResult> => {
  let snapshot = listed;
  for (;;) {
    await talk.enter('Rendering the objects of the cluster');
    const result = rendered(engine, snapshot);
    const missing = result.ok || result.awaits !== true ? [] : missingOf(snapshot, result.needs);
    if (missing.length === 0) return result;
    snapshot = await talk.withContent(snapshot, missing);
  }
};

const missingOf = (snapshot: IndexedSnapshot, needs: Needs | undefined): readonly Need[] =>
  [...(needs?.values() ?? [])].filter(({ resource, key }) => {
    const object = snapshot.watched.get(resource)?.store.byKey(key);
    return object !== undefined && isAwaited(object);
  });

const rendered = (engine: TemplateEngine, snapshot: Snapshot): RenderResult => {
  const steps = engine.steps(snapshot);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
};

const judged = (judgement: Judgement): Findings => {
  switch (judgement.result) {
    case 'passed':
      return PASSED;
    case 'refused':
      return { problems: judgement.problems, mayPass: true };
    case 'inconclusive':
      return { problems: [unjudged(judgement.cause)], mayPass: true };
  }
};

const unjudged = (cause: string): Problem => ({
  severity: 'error',
  reason: 'ConfigNotJudged',
  message: `HAProxy could not judge the rendered configuration: ${cause}.`,
  nextStep: 'Nothing to do if it passes by itself; else see what the cause says.',
});

/** Tells where, and not the message, which may quote values of objects. */
const defect = (error: unknown): Problem => {
  const { name, stack = '' } = error instanceof Error ? error : new Error();
  const [frame = 'at an unknown place'] = /\bat .*/.exec(stack) ?? [];
  const isDeep = error instanceof RangeError;
  return {
    severity: 'error',
    reason: isDeep ? 'TemplateTooDeep' : 'InternalError',
    message: isDeep
      ? 'The templates nest too deeply, or make a value that is too large.'
      : `A defect of HAPTIC ended the vetting: ${name} ${frame.trim()}.`,
    nextStep: isDeep
      ? 'End the recursion, or divide the template.'
      : 'Report it with this line; what changed last may be the occasion.',
  };
};
