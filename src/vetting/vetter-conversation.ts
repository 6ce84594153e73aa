import { serialisePlan } from '../plan/serialise.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import type { Render } from '../render/render.ts';
import type { Judgement } from '../render/validation/run-tests.ts';
import { applyBatch, emptySnapshot, type IndexedSnapshot } from '../snapshot/apply-batch.ts';
import { type ContentOutcome, type Need, withoutContent } from '../snapshot/content.ts';
import { REPLACEMENT_KEY } from '../snapshot/folded-changes.ts';
import type { KubeObject, ObjectKey } from '../snapshot/objects.ts';
import type { WatchEvent } from '../snapshot/watch.ts';
import type { FromVetter, RenderHead, ToVetter } from './messages.ts';
import { renderMessages } from './transfer.ts';

/** How the vetter speaks with the controller. */
export interface VetterPort {
  /** Resolves when the message is on its way. */
  send(message: FromVetter): Promise<void>;
  /** The next message. Rejects when the controller is gone. */
  receive(): Promise<ToVetter>;
}

/** What the process that vets says and hears, in its order. */
export class VetterConversation {
  readonly #port: VetterPort;
  readonly #objects = new Map<string, KubeObject[]>();
  #content: Extract<ToVetter, { type: 'content' }>[] = [];
  #hasAll = false;
  #phase = '';
  readonly now: () => number;

  constructor(port: VetterPort, now: () => number) {
    this.#port = port;
    this.now = now;
  }

  send(message: FromVetter): Promise<void> {
    return this.#port.send(message);
  }

  /** @param test the test that begins with this phase */
  async enter(phase: string, test?: string): Promise<void> {
    this.#phase = phase;
    await this.send({ type: 'phase', phase, waits: false, ...(test !== undefined && { test }) });
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
    await this.send({ type: 'check', render: await this.#sendTexts(render) });
    await this.send({ type: 'phase', phase: this.#phase, waits: true });
    const answer = await this.#judgement();
    await this.send({ type: 'phase', phase: this.#phase, waits: false });
    return answer;
  }

  async handOver(render: Render): Promise<void> {
    const head = await this.#sendTexts(render);
    const { plan, problems } = render;
    await this.send({ type: 'rendered', render: head, plan: serialisePlan(plan), problems });
  }

  async #sendTexts(render: Render): Promise<RenderHead> {
    const messages = renderMessages(render);
    for (;;) {
      const next = messages.next();
      if (next.done === true) return next.value;
      await this.send(next.value);
    }
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
