import { fileURLToPath } from 'node:url';
import { sha256, sha256Hasher } from '../src/digest.ts';
import { createEngine } from '../src/render/engine.ts';
import { parseConfig } from '../src/render/config/parse-config.ts';
import type { RenderResult, TemplateEngine } from '../src/render/render.ts';
import { createRouting } from '../src/routing/routing.ts';
import { applyBatch, emptySnapshot } from '../src/snapshot/apply-batch.ts';
import { eventKey } from '../src/snapshot/fold.ts';
import type { KubeObject } from '../src/snapshot/objects.ts';
import type { Snapshot } from '../src/snapshot/snapshot.ts';
import type { WatchEvent } from '../src/snapshot/watch.ts';
import { inspectKeyPair } from '../src/streams/key-pair.ts';
import { loadLibraries } from '../src/streams/libraries.ts';
import { summary, type Summary } from './statistics.ts';
import { application, ingress, slice } from './world.ts';

/** Rendering alone, in this process: no HAProxy, no agent, no files. */
export interface RenderFigures {
  readonly n: number;
  readonly fullMs: number;
  /** One EndpointSlice, one Ingress changed: snapshot, routes, cells, plan. */
  readonly endpoint: Summary;
  readonly ingress: Summary;
  /** Digest of the configuration file after a change, which a render leaves to whoever sends the file. */
  readonly fileDigest: Summary;
  /** Longest slice between two yields to the event loop. */
  readonly longestStallMs: number;
}

const ROUNDS = 200;

export const measureRender = async (n: number): Promise<RenderFigures> => {
  const engine = await benchEngine();
  const stall = { ms: 0 };
  let snapshot = applyBatch(emptySnapshot(engine.watched), new Map(lists(n)));
  const fullMs = timed(() => render(engine, snapshot, stall));
  const digests: number[] = [];
  const change = (resource: string, object: KubeObject): number => {
    const event: WatchEvent = { type: 'Upserted', object };
    let result: RenderResult | undefined;
    const ms = timed(() => {
      snapshot = applyBatch(snapshot, new Map([[resource, new Map([[eventKey(event), event]])]]));
      result = render(engine, snapshot, stall);
    });
    digests.push(timed(() => result?.ok === true && result.render.plan.config.digest));
    return ms;
  };
  const [endpoint, routes]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const name = `app-${String((round * 37) % n)}`;
    const namespace = `team-${String(((round * 37) % n) % 50)}`;
    endpoint.push(
      change('endpointslices', versioned(slice(name, namespace, [1_000 + round]), round)),
    );
    routes.push(change('ingresses', versioned(withPath(ingress(name, namespace), round), round)));
  }
  return {
    n,
    fullMs,
    endpoint: summary(endpoint),
    ingress: summary(routes),
    fileDigest: summary(digests),
    longestStallMs: stall.ms,
  };
};

const timed = (work: () => unknown): number => {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
};

const render = (
  engine: TemplateEngine,
  snapshot: Snapshot,
  stall: { ms: number },
): RenderResult => {
  const steps = engine.steps(snapshot);
  for (;;) {
    const startedAt = performance.now();
    const step = steps.next();
    stall.ms = Math.max(stall.ms, performance.now() - startedAt);
    if (step.done === true) {
      if (!step.value.ok) throw new Error(JSON.stringify(step.value.failure.problems[0]));
      return step.value;
    }
  }
};

const benchEngine = async (): Promise<TemplateEngine> => {
  const loaded = await loadLibraries(fileURLToPath(new URL('../libraries', import.meta.url)));
  if (!loaded.ok) throw new Error('the libraries do not load');
  const parsed = parseConfig(undefined, { libraries: loaded.libraries, digest: sha256 });
  if (!parsed.ok) throw new Error('the libraries do not merge');
  const routing = createRouting({
    ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
    standalone: true,
    defaultCertificate: { pem: PEM },
    inspectKeyPair,
  });
  const created = createEngine({
    config: parsed.config,
    routing,
    digest: sha256,
    hasher: () => sha256Hasher(),
  });
  if (!created.ok) throw new Error('the libraries do not compile');
  return created.engine;
};

const PEM = ['CERTIFICATE', 'PRIVATE KEY']
  .map((label) => `-----BEGIN ${label}-----\nAA==\n-----END ${label}-----\n`)
  .join('');

const RESOURCE_OF: Readonly<Record<string, string>> = {
  Ingress: 'ingresses',
  Service: 'services',
  EndpointSlice: 'endpointslices',
};

const lists = (n: number): readonly (readonly [string, ReadonlyMap<string, WatchEvent>])[] => {
  const all = Array.from({ length: n }, (_, index) =>
    application(`app-${String(index)}`, `team-${String(index % 50)}`, [9]),
  ).flat() as KubeObject[];
  return ['ingresses', 'services', 'endpointslices', 'secrets', 'ingressclasses'].map(
    (resource) => {
      const objects = all.filter(({ kind }) => RESOURCE_OF[kind] === resource);
      const event: WatchEvent = { type: 'Replaced', objects };
      return [resource, new Map([[eventKey(event), event]])] as const;
    },
  );
};

const versioned = (object: object, round: number): KubeObject => {
  const plain = object as KubeObject;
  return { ...plain, metadata: { ...plain.metadata, resourceVersion: String(round + 2) } };
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
