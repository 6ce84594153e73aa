import { fc, test } from '@fast-check/vitest';
import { expect } from 'vitest';
import { sha256 } from '../../../src/digest.ts';
import { createEngine } from '../../../src/render/engine.ts';
import type { RenderResult, TemplateEngine } from '../../../src/render/render.ts';
import { hasContent, metadataOf, type Need } from '../../../src/snapshot/content.ts';
import {
  initialSnapshots,
  type ResourceChanges,
  snapshotStep,
} from '../../../src/snapshot/fold.ts';
import { REPLACEMENT_KEY } from '../../../src/snapshot/folded-changes.ts';
import { type KubeObject, type ObjectKey, objectKey } from '../../../src/snapshot/objects.ts';
import { type ContentAnswer, OnDemandContent } from '../../../src/snapshot/on-demand.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import {
  configMap,
  HEAD,
  modelOf,
  noRoutes,
  runSteps,
  templateConfig,
  textOf,
} from '../../support/templates.ts';
import { watched } from '../../support/watched.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
const RUNS = LONG ? 20_000 : 200;

/** Config maps name secrets by `get` and whole namespaces of them by `fetch`. */
const MAIN = `${HEAD}{% for one in resources.configmaps.list() %}
{% if one.data.all is defined %}
{% for secret in resources.secrets.fetch(one.data.all) %}
# {{ secret.metadata.name | comment }} {{ secret.data.x | comment }}
{% endfor %}
{% else %}
# {{ resources.secrets.get("shop", one.data.name).data.x | default("none") | comment }}
{% endif %}
{% endfor %}
`;

const engineWith = (store: 'full' | 'on-demand'): TemplateEngine => {
  const config = {
    ...templateConfig({ main: MAIN }),
    watched: [watched('configmaps'), watched('secrets', { store })],
  };
  const created = createEngine({
    config,
    routing: () => ({ route: () => modelOf(noRoutes()) }),
    digest: sha256,
  });
  if (!created.ok) throw new Error(created.problems.map(({ message }) => message).join('\n'));
  return created.engine;
};

const described = (result: RenderResult): unknown =>
  result.ok ? [result.render.plan.id, textOf(result.render)] : result.failure;

/** An API server, a watch that lags behind it, and answers that come in any order. */
class World {
  readonly engine = engineWith('on-demand');
  readonly #watched = this.engine.watched;
  #state = initialSnapshots(this.#watched);
  readonly #content = new OnDemandContent(['secrets'], (resource, key) =>
    this.#state.gathered.watched.get(resource)?.store.byKey(key),
  );
  readonly #api = {
    secrets: new Map<ObjectKey, KubeObject>(),
    configmaps: new Map<ObjectKey, KubeObject>(),
  };
  #version = 0;
  #events: ResourceChanges[] = [];
  readonly #asked: Need[] = [];
  readonly #read: (readonly [Need, KubeObject | undefined])[] = [];
  #answers: ContentAnswer[] = [];
  last: RenderResult | undefined;

  constructor() {
    for (const resource of ['configmaps', 'secrets'] as const) this.relist(resource);
  }

  write(
    resource: 'secrets' | 'configmaps',
    name: string,
    data: Readonly<Record<string, unknown>> | undefined,
  ): void {
    const key = `shop/${name}`;
    const before = this.#api[resource].get(key);
    this.#version += 1;
    if (data === undefined) {
      this.#api[resource].delete(key);
      this.#queue(resource, key, { type: 'Deleted', key });
      return;
    }
    const object = configMap(name, data);
    const uid = before?.metadata.uid ?? `uid-${this.#version}`;
    const versioned = {
      ...object,
      metadata: { ...object.metadata, uid, resourceVersion: `${this.#version}` },
    };
    this.#api[resource].set(key, versioned);
    this.#queue(resource, key, { type: 'Upserted', object: seen(resource, versioned) });
  }

  relist(resource: 'secrets' | 'configmaps'): void {
    const objects = [...this.#api[resource].values()].map((object) => seen(resource, object));
    this.#events = this.#events.filter((event) => event.resource !== resource);
    this.#queue(resource, REPLACEMENT_KEY, { type: 'Replaced', objects });
  }

  /** One event of the watch arrives. */
  observe(): boolean {
    const event = this.#events.shift();
    if (event !== undefined) this.#enter([this.#content.changed(event)]);
    return event !== undefined;
  }

  /** The API server reads an object that was asked for: what it holds now. */
  read(at: number): boolean {
    const [need] = this.#asked.splice(at % Math.max(this.#asked.length, 1), 1);
    if (need !== undefined) this.#read.push([need, this.#api.secrets.get(need.key)]);
    return need !== undefined;
  }

  /** One of the answers arrives, or fails. */
  answer(at: number, fails: boolean): boolean {
    const [given] = this.#read.splice(at % Math.max(this.#read.length, 1), 1);
    if (given === undefined) return false;
    const [need, object] = given;
    const shown = this.#content.answered(
      need,
      fails
        ? { type: 'Unreadable', reason: 'timeout' }
        : object === undefined
          ? { type: 'Gone' }
          : { type: 'Found', object },
    );
    if (fails) this.#content.again(need);
    if (shown !== undefined) this.#answers.push(shown);
    this.#asked.push(...this.#content.starts());
    return true;
  }

  /** What the answers showed enters the snapshot. */
  flush(): boolean {
    const answers = this.#answers;
    this.#answers = [];
    if (answers.length > 0) this.#enter(this.#content.shows(answers));
    return answers.length > 0;
  }

  render(steps = Infinity): void {
    const snapshot = this.#state.gathered;
    if (this.#events.some(({ changes }) => changes.has(REPLACEMENT_KEY)) && this.last === undefined)
      return;
    const work = this.engine.steps(snapshot);
    for (let step = 0; step < steps; step += 1) {
      const { done, value } = work.next();
      if (done !== true) continue;
      this.last = value;
      if (value.needs !== undefined) this.#enter(this.#content.needed(value.needs));
      return;
    }
  }

  settle(): void {
    for (;;) {
      this.render();
      const moved = [this.observe(), this.read(0), this.answer(0, false), this.flush()];
      if (!moved.includes(true)) break;
    }
    this.render();
  }

  fromScratch(): RenderResult {
    const engine = engineWith('full');
    const batch = (['configmaps', 'secrets'] as const).map((resource) => ({
      resource,
      changes: new Map([
        [
          REPLACEMENT_KEY,
          { type: 'Replaced', objects: [...this.#api[resource].values()] } as const,
        ],
      ]),
    }));
    return runSteps(engine, snapshotStep(initialSnapshots(engine.watched), batch).gathered);
  }

  /** Keys of secrets whose content is held. */
  held(): readonly ObjectKey[] {
    return this.#state.gathered.store('secrets').list().filter(hasContent).map(objectKey);
  }

  #queue(resource: string, key: string, event: WatchEvent): void {
    this.#events.push({ resource, changes: new Map([[key, event]]) });
  }

  #enter(batch: readonly ResourceChanges[]): void {
    this.#state = snapshotStep(this.#state, batch);
    this.#asked.push(...this.#content.starts());
  }
}

const seen = (resource: string, object: KubeObject): KubeObject =>
  resource === 'secrets' ? metadataOf(object) : object;

const NAMES = ['a', 'b', 'constructor', '__proto__'];
const name = fc.constantFrom(...NAMES);
const action = fc.oneof(
  fc.record({ type: fc.constant('secret' as const), name, x: fc.option(fc.nat({ max: 5 })) }),
  fc.record({
    type: fc.constant('user' as const),
    name: fc.constantFrom('one', 'two'),
    of: fc.option(fc.constantFrom(...NAMES, 'all')),
  }),
  fc.record({ type: fc.constant('relist' as const) }),
  fc.record({ type: fc.constant('observe' as const) }),
  fc.record({ type: fc.constant('observe' as const) }),
  fc.record({ type: fc.constant('read' as const), at: fc.nat({ max: 5 }) }),
  fc.record({ type: fc.constant('answer' as const), at: fc.nat({ max: 5 }), fails: fc.boolean() }),
  fc.record({ type: fc.constant('flush' as const) }),
  fc.record({
    type: fc.constant('render' as const),
    steps: fc.constantFrom(1, 2, Infinity, Infinity),
  }),
);

type Action = typeof action extends fc.Arbitrary<infer A> ? A : never;

const PLAYS: { readonly [Type in Action['type']]: (world: World, one: Action) => unknown } = {
  secret: (world, one) => {
    if (one.type !== 'secret') return;
    world.write('secrets', one.name, one.x === null ? undefined : { x: String(one.x) });
  },
  user: (world, one) => {
    if (one.type !== 'user') return;
    const named = one.of === 'all' ? { all: 'shop' } : { name: one.of };
    world.write('configmaps', one.name, one.of === null ? undefined : named);
  },
  relist: (world) => world.relist('secrets'),
  observe: (world) => world.observe(),
  read: (world, one) => one.type === 'read' && world.read(one.at),
  answer: (world, one) => one.type === 'answer' && world.answer(one.at, one.fails),
  flush: (world) => world.flush(),
  render: (world, one) => {
    if (one.type === 'render') world.render(one.steps);
  },
};

test.prop([fc.array(action, { maxLength: 60 })], { numRuns: RUNS })(
  'with on-demand content, in whatever order it comes, the render is the one from scratch, and nothing else is held (P6, R2)',
  (history) => {
    const world = new World();
    for (const one of history) PLAYS[one.type](world, one);
    world.settle();
    expect(described(world.last ?? world.fromScratch())).toStrictEqual(
      described(world.fromScratch()),
    );
    const needed = [...(world.last?.needs?.values() ?? [])].map(({ key }) => key);
    expect(world.held().filter((key) => !needed.includes(key))).toStrictEqual([]);
  },
);
