import type { TemplateConfig } from '../render/config/template-config.ts';
import type { Render, RenderResult, TemplateEngine } from '../render/render.ts';
import {
  type Judgement,
  runTest,
  type TestBench,
  type TestReport,
  testNames,
} from '../render/validation/run-tests.ts';
import { applyBatch, emptySnapshot, type IndexedSnapshot } from '../snapshot/apply-batch.ts';
import {
  type ContentOutcome,
  isAwaited,
  type Need,
  type Needs,
  withoutContent,
} from '../snapshot/content.ts';
import { REPLACEMENT_KEY } from '../snapshot/folded-changes.ts';
import type { KubeObject, ObjectKey } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { WatchEvent } from '../snapshot/watch.ts';
import { type CompileSettings, compileConfig } from '../streams/compile-config.ts';
import type { Findings, FromVetter, ToVetter } from './messages.ts';
import { renderMessages } from './transfer.ts';

/** How the vetter speaks with the controller. */
export interface VetterPort {
  /** Resolves when the message is on its way. */
  send(message: FromVetter): Promise<void>;
  /** The next message. Rejects when the controller is gone. */
  receive(): Promise<ToVetter>;
}

/**
 * The work of the process that vets one configuration: compiles it, runs its tests, renders the objects of the cluster,
 * and has HAProxy check what comes out. It ends with the findings; whoever started it kills it when it does not.
 */
export const vet = async (port: VetterPort): Promise<void> => {
  await port.send({ type: 'ready' });
  const order = await port.receive();
  if (order.type !== 'start') throw new Error(`expected an order, not ${order.type}`);
  const findings = await findingsOf(new Conversation(port), order).catch(defect);
  await port.send({ type: 'done', ...findings });
};

const PASSED: Findings = { problems: [], mayPass: true };

interface Order {
  readonly config: TemplateConfig;
  readonly settings: CompileSettings;
}

const findingsOf = async (talk: Conversation, { config, settings }: Order): Promise<Findings> => {
  await talk.enter('Compiling the templates');
  const created = compileConfig(config, settings);
  if (!created.ok) return { problems: created.problems, mayPass: false };
  await talk.send({ type: 'compiled' });
  const tested = await testFindings(talk, { config, settings });
  if (tested.problems.length > 0) return tested;
  const result = await renderedWithContent(talk, created.engine, await talk.snapshot(config));
  if (!result.ok) return { problems: result.failure.problems, mayPass: true };
  return judged(await talk.check(result.render));
};

/** All tests run, so that everything that is wrong is told at once. */
const testFindings = async (talk: Conversation, { config, settings }: Order): Promise<Findings> => {
  const bench: TestBench = {
    config,
    haproxyVersion: settings.haproxyVersion,
    compile: (variant) => compileConfig(variant, settings),
    check: (render) => talk.check(render),
  };
  const reports: TestReport[] = [];
  for (const name of testNames(config)) {
    await talk.enter(`Running the test ${JSON.stringify(name)}`);
    reports.push(await runTest(name, bench));
  }
  const failed = reports.filter(({ outcome }) => outcome === 'failed');
  const unclear = reports.filter(({ outcome }) => outcome === 'inconclusive');
  return failed.length > 0
    ? { problems: failed.flatMap(({ problems }) => problems), mayPass: false }
    : { problems: unclear.flatMap(({ problems }) => problems), mayPass: true };
};

/** Each round brings content that was missing, so there is an end. */
const renderedWithContent = async (
  talk: Conversation,
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
const defect = (error: unknown): Findings => {
  const { name, stack = '' } = error instanceof Error ? error : new Error();
  const [frame = 'at an unknown place'] = /\bat .*/.exec(stack) ?? [];
  const isDeep = error instanceof RangeError;
  const problem: Problem = {
    severity: 'error',
    reason: isDeep ? 'TemplateTooDeep' : 'InternalError',
    message: isDeep
      ? 'The templates nest too deeply, or make a value that is too large.'
      : `A defect of HAPTIC ended the vetting: ${name} ${frame.trim()}.`,
    nextStep: isDeep
      ? 'End the recursion, or divide the template.'
      : 'Report it with this line; what changed last may be the occasion.',
  };
  return { problems: [problem], mayPass: true };
};

/** The messages of one vetting in their order. */
class Conversation {
  readonly #port: VetterPort;
  readonly #objects = new Map<string, KubeObject[]>();
  #content: Extract<ToVetter, { type: 'content' }>[] = [];
  #hasAll = false;
  #phase = '';

  constructor(port: VetterPort) {
    this.#port = port;
  }

  send(message: FromVetter): Promise<void> {
    return this.#port.send(message);
  }

  async enter(phase: string): Promise<void> {
    this.#phase = phase;
    await this.send({ type: 'phase', phase, waits: false });
  }

  /** Objects come in parts, also while tests run. */
  async snapshot({ watched }: TemplateConfig): Promise<IndexedSnapshot> {
    await this.send({ type: 'phase', phase: 'Listing the objects of the cluster', waits: true });
    while (!this.#hasAll) await this.#receive();
    const batch = watched.map(({ name }) => {
      const replaced = { type: 'Replaced', objects: this.#objects.get(name) ?? [] } as const;
      return [name, new Map([[REPLACEMENT_KEY, replaced]])] as const;
    });
    return applyBatch(emptySnapshot(watched), new Map(batch));
  }

  /** The same snapshot with the content of these objects, or the news that there is none. */
  async withContent(snapshot: IndexedSnapshot, needs: readonly Need[]): Promise<IndexedSnapshot> {
    this.#content = [];
    await this.send({ type: 'needs', needs });
    await this.send({ type: 'phase', phase: 'Getting objects that are needed', waits: true });
    while (this.#content.length < needs.length) await this.#receive();
    const batch = new Map<string, Map<ObjectKey, WatchEvent>>();
    for (const { need, outcome } of this.#content) {
      const changes = batch.get(need.resource) ?? new Map<ObjectKey, WatchEvent>();
      batch.set(need.resource, changes.set(need.key, eventOf(snapshot, need, outcome)));
    }
    return applyBatch(snapshot, batch);
  }

  async check(render: Render): Promise<Judgement> {
    for (const message of renderMessages(render)) await this.send(message);
    await this.send({ type: 'phase', phase: this.#phase, waits: true });
    const answer = await this.#judgement();
    await this.send({ type: 'phase', phase: this.#phase, waits: false });
    return answer;
  }

  async #judgement(): Promise<Judgement> {
    for (;;) {
      const judgement = await this.#receive();
      if (judgement !== undefined) return judgement;
    }
  }

  /** Takes in the next message, whatever is waited for. */
  async #receive(): Promise<Judgement | undefined> {
    const message = await this.#port.receive();
    if (message.type === 'judgement') return message.judgement;
    if (message.type === 'render') this.#hasAll = true;
    if (message.type === 'content') this.#content.push(message);
    if (message.type === 'objects') {
      const known = this.#objects.get(message.resource) ?? [];
      for (const object of message.objects) known.push(object);
      this.#objects.set(message.resource, known);
    }
    return undefined;
  }
}

const eventOf = (
  snapshot: IndexedSnapshot,
  { resource, key }: Need,
  outcome: ContentOutcome,
): WatchEvent => {
  if (outcome.type === 'Found') return { type: 'Upserted', object: outcome.object };
  const listed = snapshot.watched.get(resource)?.store.byKey(key);
  return outcome.type === 'Gone' || listed === undefined
    ? { type: 'Deleted', key }
    : { type: 'Upserted', object: withoutContent(listed, outcome.reason) };
};
