import { applyBatch, emptySnapshot, type IndexedSnapshot } from '../src/snapshot/apply-batch.ts';
import { eventKey } from '../src/snapshot/fold.ts';
import type { KubeObject } from '../src/snapshot/objects.ts';
import type { WatchEvent } from '../src/snapshot/watch.ts';
import type { TemplateEngine } from '../src/render/render.ts';
import { benchEngine, renderInTurns, tlsSecret } from './render-engine.ts';
import { summary, type Summary } from './statistics.ts';
import { application, ingress, slice } from './world.ts';

/** Rendering alone, in this process: no HAProxy, no agent, no files. In milliseconds. */
export interface RenderFigures {
  readonly n: number;
  readonly fullMs: number;
  /** One EndpointSlice, one Ingress changed: snapshot, routes, cells, plan. */
  readonly endpoint: Summary;
  readonly ingress: Summary;
  /** The content of a Secret that {@link SHARING} Ingresses (or all, if fewer) are served with. */
  readonly secret: Summary;
  /** A label of a Namespace that the backends of its applications print, a fiftieth of all. */
  readonly namespace: Summary;
  /** Digest of the configuration file after a change, which a render leaves to whoever sends the file. */
  readonly fileDigest: Summary;
  /** Longest time the event loop had to wait for the full render, and for that of a change. */
  readonly fullTurnMs: number;
  readonly changeTurnMs: number;
}

/** Ingresses that share one Secret. */
export const SHARING = 500;
const ROUNDS = 200;
const NAMESPACES = 50;

/** Runs the same code at a small size, so that what is measured first is not what is compiled first. */
export const warmUp = async (): Promise<void> => {
  await measureRender(200);
};

/** Measures one size; the world in which objects are shared has an engine of its own. */
export const measureRender = async (n: number): Promise<RenderFigures> => {
  const alone = new Bench(await benchEngine(), applications(n));
  const [endpoint, routes]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    endpoint.push(changeEndpoint(alone, n, round));
    routes.push(changeIngress(alone, n, round));
  }
  return {
    ...{ n, fullMs: alone.fullMs },
    ...{ endpoint: summary(endpoint), ingress: summary(routes) },
    ...(await measureShared(n)),
    fileDigest: summary(alone.digests),
    ...{ fullTurnMs: alone.fullTurnMs, changeTurnMs: alone.changeTurnMs },
  };
};

/** How many times as much the render of one changed object costs at one size as at another, by the medians. */
export interface Growth {
  readonly endpoint: number;
  readonly ingress: number;
}

/** Both sizes take turns, so that whatever else the machine does meets both alike. */
export const measureGrowth = async (small: number, large: number): Promise<Growth> => {
  const sizes: [number, Bench][] = [];
  for (const n of [small, large]) sizes.push([n, new Bench(await benchEngine(), applications(n))]);
  const growthOf = (change: typeof changeEndpoint): number => {
    const times = sizes.map((): number[] => []);
    for (let round = 0; round < ROUNDS; round += 1) {
      sizes.forEach(([n, bench], index) => times[index]?.push(change(bench, n, round)));
    }
    const [few = NaN, many = NaN] = times.map((samples) => summary(samples).p50);
    return many / few;
  };
  return { endpoint: growthOf(changeEndpoint), ingress: growthOf(changeIngress) };
};

const appOf = (n: number, round: number): readonly [name: string, namespace: string] => {
  const index = (round * 37) % n;
  return [`app-${String(index)}`, namespaceOf(index)];
};

const changeEndpoint = (bench: Bench, n: number, round: number): number =>
  bench.change('endpointslices', slice(...appOf(n, round), [1_000 + round]));

const changeIngress = (bench: Bench, n: number, round: number): number =>
  bench.change('ingresses', withPath(ingress(...appOf(n, round)), round));

const measureShared = async (n: number): Promise<Pick<RenderFigures, 'secret' | 'namespace'>> => {
  const secrets = [await tlsSecret('shared', 'team-0'), await tlsSecret('shared', 'team-0')];
  const sharing = Array.from({ length: Math.min(SHARING, n) }, (_, index) => {
    const [route, ...rest] = application(`tls-${String(index)}`, 'team-0', [9]);
    return [withTls(route as KubeObject, 'shared'), ...rest];
  }).flat() as KubeObject[];
  const namespaces = Array.from({ length: NAMESPACES }, (_, index) => namespace(index, 0));
  const objects = [...applications(n), ...sharing, ...namespaces, ...secrets.slice(0, 1)];
  const bench = new Bench(await benchEngine(READS_NAMESPACES), objects);
  const [secret, labels]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS / 4; round += 1) {
    secret.push(bench.change('secrets', secrets[(round + 1) % 2] as KubeObject));
    labels.push(bench.change('namespaces', namespace(1 + (round % (NAMESPACES - 1)), round + 1)));
  }
  return { secret: summary(secret), namespace: summary(labels) };
};

/** One engine over a world that changes. */
class Bench {
  readonly fullMs: number;
  readonly fullTurnMs: number;
  readonly digests: number[] = [];
  changeTurnMs = 0;
  readonly #engine: TemplateEngine;
  #snapshot: IndexedSnapshot;
  #version = 1;

  constructor(engine: TemplateEngine, objects: readonly KubeObject[]) {
    this.#engine = engine;
    this.#snapshot = applyBatch(emptySnapshot(engine.watched), lists(engine, objects));
    const startedAt = performance.now();
    this.fullTurnMs = renderInTurns(engine, this.#snapshot).longestTurnMs;
    this.fullMs = performance.now() - startedAt;
  }

  /** What it takes from the changed object to its render. */
  change(resource: string, object: object): number {
    this.#version += 1;
    const event: WatchEvent = { type: 'Upserted', object: versioned(object, this.#version) };
    const startedAt = performance.now();
    const changes = new Map([[resource, new Map([[eventKey(event), event]])]]);
    this.#snapshot = applyBatch(this.#snapshot, changes);
    const { render, longestTurnMs } = renderInTurns(this.#engine, this.#snapshot);
    const ms = performance.now() - startedAt;
    this.changeTurnMs = Math.max(this.changeTurnMs, longestTurnMs);
    const before = performance.now();
    if (render.plan.config.digest === '') throw new Error('the file has no digest');
    this.digests.push(performance.now() - before);
    return ms;
  }
}

const namespaceOf = (index: number): string => `team-${String(index % NAMESPACES)}`;

const applications = (n: number): readonly KubeObject[] =>
  Array.from({ length: n }, (_, index) =>
    application(`app-${String(index)}`, namespaceOf(index), [9]),
  ).flat() as KubeObject[];

const RESOURCE_OF: Readonly<Record<string, string>> = {
  Ingress: 'ingresses',
  Service: 'services',
  EndpointSlice: 'endpointslices',
  Secret: 'secrets',
  Namespace: 'namespaces',
};

const lists = (
  { watched }: TemplateEngine,
  all: readonly KubeObject[],
): ReadonlyMap<string, ReadonlyMap<string, WatchEvent>> =>
  new Map(
    watched.map(({ name }) => {
      const objects = all.filter(({ kind }) => RESOURCE_OF[kind] === name);
      const event: WatchEvent = { type: 'Replaced', objects };
      return [name, new Map([[eventKey(event), event]])] as const;
    }),
  );

const versioned = (object: object, version: number): KubeObject => {
  const plain = object as KubeObject;
  return { ...plain, metadata: { ...plain.metadata, resourceVersion: String(version) } };
};

/** The same Ingress with one more path, another one in each round. */
const withPath = (object: object, round: number): object => {
  const copy = structuredClone(object) as {
    spec: { rules: { http: { paths: { path: string }[] } }[] };
  };
  const paths = copy.spec.rules[0]?.http.paths ?? [];
  const [first] = paths;
  if (first !== undefined) paths.push({ ...first, path: `/v${String(round)}` });
  return copy;
};

const withTls = (route: KubeObject, secretName: string): KubeObject => ({
  ...route,
  spec: { ...(route['spec'] as object), tls: [{ secretName }] },
});

const namespace = (index: number, round: number): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Namespace' },
  metadata: { name: namespaceOf(index), labels: { tier: `tier-${String(round)}` } },
});

/** Every backend says what tier its namespace has. */
const READS_NAMESPACES: KubeObject = {
  ...{ apiVersion: 'haproxy-haptic.org/v1alpha1', kind: 'HAProxyTemplateConfig' },
  metadata: { name: 'bench', namespace: 'default' },
  spec: {
    watchedResources: {
      namespaces: { apiVersions: ['v1'], resources: 'namespaces', indexBy: ['metadata.name'] },
    },
    templateSnippets: {
      'backend-600-tier': {
        template:
          '    # {{ resources.namespaces.get("", route.object.namespace).metadata.labels.tier | comment }}\n',
      },
    },
  },
};
