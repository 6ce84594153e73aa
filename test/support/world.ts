/**
 * A whole controller in virtual time: watches, renders, checks and agents are models whose delays the test chooses. The
 * plans, their differences and the decisions are the real ones.
 */
import {
  asyncScheduler,
  concatWith,
  filter,
  map,
  NEVER,
  type Observable,
  of,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { controller } from '../../src/controller.ts';
import { sha256 } from '../../src/digest.ts';
import { leaf } from '../../src/cells/chunk.ts';
import type { Checked, Verdict } from '../../src/gate/verdict.ts';
import { backendRecord, buildPlan, mapEntry, planMap } from '../../src/plan/build.ts';
import { merkleMapOf, merkleMap } from '../../src/plan/merkle-map.ts';
import type { PlanMap } from '../../src/plan/plan.ts';
import {
  AgentError,
  isType,
  type ConfigEvent,
  type AgentClient,
  type Notification,
  type NotificationOf,
  type Pod,
  type Ports,
  type RenderEngine,
} from '../../src/ports.ts';
import type { DataplaneSettings, Render, RenderResult } from '../../src/render/render.ts';
import { applyBatch, emptySnapshot } from '../../src/snapshot/apply-batch.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import type { WatchedResource, WatchEvent } from '../../src/snapshot/watch.ts';
import { ModelAgent } from './model-agent.ts';
import { defaultController, defaultSettings } from './renders.ts';
import { watched as plainlyWatched } from './watched.ts';

/**
 * A `Server` (runtime change), a `Route` named `entry…` (map entry, runtime change) or another `Route` (core change, needs
 * a reload) of the model configuration.
 */
export const thing = (kind: 'Server' | 'Route', name: string, version = '1'): KubeObject => ({
  apiVersion: 'test/v1',
  kind,
  metadata: { name, namespace: 'default', resourceVersion: version, uid: `${kind}-${name}` },
});

export const replaced = (...objects: KubeObject[]): WatchEvent => ({ type: 'Replaced', objects });
export const upserted = (object: KubeObject): WatchEvent => ({ type: 'Upserted', object });
export const deleted = (name: string): WatchEvent => ({ type: 'Deleted', key: `default/${name}` });

const watched = (name: 'servers' | 'routes', debounceMs: number): WatchedResource =>
  plainlyWatched(name, {
    apiVersions: ['test/v1'],
    debounceMs,
    maxWaitMs: Math.max(1_000, 10 * debounceMs),
  });

/** What a snapshot renders to: servers of one backend, and one line of core text per route. */
export const renderOf = (
  snapshot: Snapshot,
  { generation, settings }: Pick<RenderEngine, 'generation' | 'settings'>,
  balance = 'roundrobin',
): Render => {
  const names = (resource: string): readonly string[] =>
    snapshot
      .store(resource)
      .list()
      .map(({ metadata }) => `${metadata.name}-${metadata.resourceVersion ?? ''}`);
  const servers = names('servers').map((name, index) => ({
    name,
    address: '10.0.0.1',
    port: 1_000 + index,
    weight: 100,
    state: 'ready' as const,
    keywords: [],
  }));
  const isEntry = (name: string): boolean => name.startsWith('entry');
  const entries = names('routes').filter(isEntry);
  const core = `# ${generation}\n${names('routes')
    .filter((name) => !isEntry(name))
    .join('\n')}\n`;
  const mapText = entries.map((name) => `${name} b\n`).join('');
  const text = `${core}${JSON.stringify(servers)}\n`;
  const backend = backendRecord(
    {
      name: 'b',
      mode: 'http',
      profile: '',
      balance,
      structure: sha256('b'),
      text: sha256(JSON.stringify(servers)),
      dynamic: true,
      bare: true,
      servers,
    },
    sha256,
  );
  const plan = buildPlan(
    {
      sections: [
        { kind: 'core', name: 'core', digest: sha256(core) },
        { kind: 'backends', name: 'backends' },
      ],
      backends: merkleMapOf([['b', backend]], sha256),
      profiles: merkleMap(sha256),
      maps: merkleMapOf([['maps/m.map', mapOf(entries, mapText)]], sha256),
      files: merkleMap(sha256),
      crtLists: merkleMap(sha256),
      config: { path: 'haproxy.cfg', digest: sha256(text), size: Buffer.byteLength(text) },
    },
    sha256,
  );
  return {
    plan,
    snapshot,
    generation,
    haproxyVersion: '3.0',
    settings,
    files: new Map([
      ['haproxy.cfg', { path: 'haproxy.cfg', kind: 'config', text: leaf(text) }],
      ['maps/m.map', { path: 'maps/m.map', kind: 'map', text: leaf(mapText) }],
    ]),
    problems: [],
    statuses: [],
    cells: { evaluated: 1, reused: 0, live: 1, reads: 0 },
    provenance: () => undefined,
    lines: () => [],
  };
};

const mapOf = (keys: readonly string[], text: string): PlanMap =>
  planMap(
    {
      path: 'maps/m.map',
      ordered: false,
      entries: merkleMapOf(
        keys.map((key) => [key, mapEntry(key, 'b', sha256)] as const),
        sha256,
      ),
      text: sha256(text),
      size: Buffer.byteLength(text),
    },
    sha256,
  );

/** A render of these things, without a controller around it. */
export const renderWith = ({
  servers = [],
  routes = [],
  balance = 'roundrobin',
}: {
  readonly servers?: readonly string[];
  readonly routes?: readonly string[];
  readonly balance?: string;
}): Render => {
  const resources = [watched('servers', 0), watched('routes', 0)];
  const replacement = (objects: readonly KubeObject[]) => new Map([['*', replaced(...objects)]]);
  const snapshot = applyBatch(
    emptySnapshot(resources),
    new Map([
      ['servers', replacement(servers.map((name) => thing('Server', name)))],
      ['routes', replacement(routes.map((name) => thing('Route', name)))],
    ]),
  );
  return renderOf(snapshot, { generation: 'g1', settings: defaultSettings }, balance);
};

/** The names that a render holds, for expectations: `r1 r2 | s1 s2`. */
export const namesIn = ({ snapshot }: Render): string => {
  const names = (resource: string): string =>
    snapshot
      .store(resource)
      .list()
      .map(({ metadata }) => metadata.name)
      .join(' ');
  return `${names('routes')}|${names('servers')}`;
};

export interface EngineOptions {
  readonly generation?: string;
  readonly renderMs?: number;
  readonly debounceMs?: number;
  readonly settings?: Partial<DataplaneSettings>;
  /** Says why a snapshot cannot be rendered, if so. */
  readonly fails?: (snapshot: Snapshot) => string | undefined;
}

export const engine = ({
  generation = 'g1',
  renderMs = 1,
  debounceMs = 0,
  settings,
  fails,
}: EngineOptions = {}): RenderEngine => {
  const facts = { generation, settings: { ...defaultSettings, ...settings } };
  return {
    ...facts,
    controller: defaultController,
    podSelector: {},
    protective: new Set(),
    readsFor: () => () => new Set(),
    fork: () =>
      engine({
        generation,
        renderMs,
        debounceMs,
        ...(settings && { settings }),
        ...(fails && { fails }),
      }),
    watched: [watched('servers', debounceMs), watched('routes', debounceMs)],
    render: (snapshot) =>
      timer(renderMs).pipe(
        map((): RenderResult => {
          const message = fails?.(snapshot);
          if (message === undefined) return { ok: true, render: renderOf(snapshot, facts) };
          const problem = { severity: 'error', reason: 'Test', message, nextStep: '' } as const;
          return { ok: false, failure: { phase: 'template', problems: [problem] } };
        }),
      ),
  };
};

const pods = new Map<string, Pod>();

/** The pod of a name: the same object each time, as a source of pods gives while nothing changes. */
export const pod = (name: string): Pod => {
  const known = pods.get(name) ?? { key: name, name, url: `model:${name}` };
  pods.set(name, known);
  return known;
};

export const podSet = (...names: string[]): ReadonlyMap<string, Pod> =>
  new Map(names.map((name) => [name, pod(name)]));

/** The port to model agents; a pod without one is unreachable. */
export const clientOf = (agents: ReadonlyMap<string, ModelAgent>): AgentClient => {
  const find = <T>({ name }: Pod, ask: (agent: ModelAgent) => Observable<T>): Observable<T> => {
    const agent = agents.get(name);
    return agent === undefined ? throwError(() => new AgentError('unreachable', name)) : ask(agent);
  };
  return {
    state: (to, { verify }) => find(to, (agent) => agent.state(verify)),
    plan: (to) => find(to, (agent) => agent.plan()),
    apply: (to, request) => find(to, (agent) => agent.apply(request)),
  };
};

export const verdictAfter =
  (ms: number, judge: (render: Render) => Verdict) =>
  (render: Render): Observable<Checked> =>
    timer(ms).pipe(
      map((): Checked => ({ planId: render.plan.id, verdict: judge(render), durationMs: ms })),
    );

export const passed: Verdict = { result: 'passed' };
export const refused = (message: string): Verdict => ({ result: 'refused', message, problems: [] });

/** Ports with everything in the simplest working order; the test replaces what it is about. */
export const portsWith = (ports: Partial<Ports> & Pick<Ports, 'resources'>): Ports => ({
  config$: of({ ok: true, engine: engine() }),
  pods$: of(podSet('p1')),
  leader$: of({ leading: true, epoch: 1 }),
  agents: clientOf(new Map()),
  check: verdictAfter(0, () => passed),
  shutdown$: NEVER,
  observers: [],
  ...ports,
});

/** Changes of one thing, for diagrams. */
export const server = (name: string): WatchEvent => upserted(thing('Server', name));
export const route = (name: string): WatchEvent => upserted(thing('Route', name));

/** An agent in virtual time. */
export const model = (latencyMs = 1): ModelAgent =>
  new ModelAgent(() => asyncScheduler.now(), latencyMs);

/** One configuration, whose renders take no time unless the options say so. */
export const configured = (options: EngineOptions = {}): Observable<ConfigEvent> =>
  of({ ok: true, engine: engine({ renderMs: 0, ...options }) });

/** A source of these streams, without problems. */
export const watching = (
  servers$: Observable<WatchEvent>,
  routes$: Observable<WatchEvent> = of(replaced()),
): Ports['resources'] => ({
  watch: ({ name }) => (name === 'servers' ? servers$ : routes$.pipe(concatWith(NEVER))),
  problems$: NEVER,
});

/** The controller's notifications of one type, as `describe` writes them. */
export const told = <T extends Notification['type']>(
  ports: Ports,
  type: T,
  describe: (notification: NotificationOf<T>) => string,
): Observable<string> => controller(ports).pipe(filter(isType(type)), map(describe));

/** What was rendered, when. */
export const rendered = (ports: Ports): Observable<string> =>
  told(ports, 'Rendered', ({ render }) => namesIn(render));

/** What each pod took, when: `p1 reload r1|s1`. */
export const applied = (ports: Ports): Observable<string> => {
  const names = new Map<string, string>();
  return controller(ports).pipe(
    tap((event) => {
      if (event.type === 'Rendered') names.set(event.render.plan.id, namesIn(event.render));
    }),
    filter(isType('Applied')),
    map(({ pod: { name }, outcome, planId }) =>
      [name, outcome.outcome, names.get(planId) ?? '?'].join(' '),
    ),
  );
};
