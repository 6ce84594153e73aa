/** Small template configurations, snapshots and routes for tests of the render. */
import { PersistentMap } from '../../src/cells/persistent-map.ts';
import { chunkText } from '../../src/cells/chunk.ts';
import { sha256, sha256Hasher } from '../../src/digest.ts';

import type { Server } from '../../src/plan/plan.ts';
import { createEngine } from '../../src/render/engine.ts';
import type { Render, RenderResult, TemplateEngine } from '../../src/render/render.ts';
import type { TemplateConfig, TemplateSource } from '../../src/render/config/template-config.ts';
import type { BackendModel, HostRoutes, RouteModel } from '../../src/routing/model.ts';
import { applyBatch, emptySnapshot, type IndexedSnapshot } from '../../src/snapshot/apply-batch.ts';
import { objectKey, type KubeObject, type ObjectRef } from '../../src/snapshot/objects.ts';
import type { Problem } from '../../src/snapshot/problem.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import type { WatchedResource } from '../../src/snapshot/watch.ts';
import { defaultController, defaultSettings } from './renders.ts';

/** Parts of a configuration by name; a template is its text. */
export interface TemplateParts {
  /** Default: nothing but what every configuration needs. */
  readonly main?: string;
  readonly snippets?: Readonly<Record<string, string>>;
  readonly maps?: Readonly<Record<string, string>>;
  readonly orderedMaps?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly certificates?: Readonly<Record<string, string>>;
  readonly extraContext?: Readonly<Record<string, unknown>>;
}

/** The line that every configuration needs. */
export const HEAD = 'global\n    default-path origin {{ dataplane.baseDir | token }}\n';

const watch = (name: string, indexBy: readonly string[]): WatchedResource => ({
  ...{ name, apiVersions: ['v1'], resources: name, optional: false, namespaces: [] },
  ...{ labelSelector: {}, fieldSelector: {}, indexBy, ignoreFields: [], store: 'full' },
  ...{ debounceMs: 0, maxWaitMs: 0 },
});

/** Services and config maps are watched. */
export const WATCHED = [
  watch('services', ['metadata.namespace', 'metadata.labels.app']),
  watch('configmaps', ['metadata.namespace', 'metadata.name']),
];

const sources = (
  kind: string,
  texts: Readonly<Record<string, string>> = {},
): Map<string, TemplateSource> =>
  new Map(
    Object.entries(texts).map(([name, text]) => [
      name,
      { source: `${kind}/${name}`, text, requires: [] },
    ]),
  );

const withFlag = <Name extends string>(
  templates: Map<string, TemplateSource>,
  name: Name,
  value: boolean,
): [string, TemplateSource & Record<Name, boolean>][] =>
  [...templates].map(([key, template]) => [
    key,
    { ...template, [name]: value } as TemplateSource & Record<Name, boolean>,
  ]);

export const templateConfig = (parts: TemplateParts = {}): TemplateConfig => ({
  generation: 'test',
  podSelector: {},
  watched: WATCHED,
  main: { source: 'main', text: parts.main ?? HEAD, requires: [] },
  snippets: sources('snippets', parts.snippets),
  maps: new Map([
    ...withFlag(sources('maps', parts.maps), 'ordered', false),
    ...withFlag(sources('maps', parts.orderedMaps), 'ordered', true),
  ]),
  files: new Map(withFlag(sources('files', parts.files), 'reloadOnPush', true)),
  certificates: sources('certificates', parts.certificates),
  extraContext: parts.extraContext ?? {},
  dataplane: defaultSettings,
  controller: defaultController,
  validationTests: new Map(),
  logLevel: 'info',
});

/** Routes that a test sets as it likes. */
export interface Routes {
  hosts: PersistentMap<HostRoutes>;
  backends: PersistentMap<BackendModel>;
}

export const noRoutes = (): Routes => ({
  hosts: PersistentMap.EMPTY,
  backends: PersistentMap.EMPTY,
});

/** A model without certificates. */
export const modelOf = ({ hosts, backends }: Routes): RouteModel => ({
  hosts,
  backends,
  certificates: PersistentMap.EMPTY,
  secrets: PersistentMap.EMPTY,
  awaited: 0,
  problems: [],
});

/** An engine, or a failure of the test with the problems of the configuration. */
export const engineOf = (
  parts: TemplateParts,
  route: (snapshot: Snapshot) => Routes = noRoutes,
): TemplateEngine => {
  const created = createEngine({
    config: templateConfig(parts),
    routing: () => ({ route: (snapshot) => modelOf(route(snapshot)) }),
    digest: sha256,
    hasher: () => sha256Hasher(),
  });
  if (created.ok) return created.engine;
  throw new Error(created.problems.map(({ message }) => message).join('\n'));
};

/** Problems of a configuration that must not load. */
export const refusedProblems = (parts: TemplateParts): readonly Problem[] => {
  const routing = () => ({ route: () => modelOf(noRoutes()) });
  const created = createEngine({ config: templateConfig(parts), routing, digest: sha256 });
  return created.ok ? [] : created.problems;
};

/** All steps at once. */
export const runSteps = (engine: TemplateEngine, snapshot: Snapshot): RenderResult => {
  const steps = engine.steps(snapshot);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
};

export const renderOf = (engine: TemplateEngine, snapshot: Snapshot): Render => {
  const result = runSteps(engine, snapshot);
  if (result.ok) return result.render;
  throw new Error(result.failure.problems.map(({ message }) => message).join('\n'));
};

/** Text of a file of a render. */
export const textOf = (render: Render, path = 'haproxy.cfg'): string => {
  const file = render.files.get(path);
  if (file === undefined) throw new Error(`no file ${path}`);
  return chunkText(file.text);
};

/** A template of a file, where an emitter can stand anywhere; its first line is the third of the source `files/out`. */
const inFile = (template: string, parts: TemplateParts): TemplateParts => ({
  ...parts,
  files: { ...parts.files, out: `{% if 1 %}\n{% endif %}\n${template}` },
});

/** What a template of a file prints. */
export const printed = (
  template: string,
  { objects = [], ...parts }: TemplateParts & { readonly objects?: readonly KubeObject[] } = {},
): string => {
  const render = renderOf(engineOf(inFile(template, parts)), snapshotOf(objects));
  const text = textOf(render, `${defaultSettings.generalStorageDir}/out`);
  return text.endsWith('\n') ? text : `${text}\n`;
};

/** The first problem with which a template fails while it is rendered. */
export const failureOf = (
  template: string,
  objects: readonly KubeObject[] = [],
  parts: TemplateParts = {},
): Problem => {
  const result = runSteps(engineOf(inFile(template, parts)), snapshotOf(objects));
  const problem = result.ok ? undefined : result.failure.problems[0];
  if (problem === undefined) throw new Error('the template does not fail');
  return problem;
};

export const EMPTY_SNAPSHOT = emptySnapshot(WATCHED);

/** A snapshot after these objects came; those with a `kind` of Service are services, all others config maps. */
export const withObjects = (
  snapshot: IndexedSnapshot,
  objects: readonly KubeObject[],
): IndexedSnapshot => {
  const changes = (kind: string, others: boolean) =>
    new Map(
      objects
        .filter((object) => (object.kind === kind) !== others)
        .map((object) => [objectKey(object), { type: 'Upserted', object } as const]),
    );
  return applyBatch(
    snapshot,
    new Map([
      ['services', changes('Service', false)],
      ['configmaps', changes('Service', true)],
    ]),
  );
};

export const snapshotOf = (objects: readonly KubeObject[]): IndexedSnapshot =>
  withObjects(EMPTY_SNAPSHOT, objects);

/** A config map with some data. */
export const configMap = (
  name: string,
  data: Readonly<Record<string, unknown>>,
  namespace = 'shop',
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, uid: `uid-${namespace}-${name}` },
  data,
});

export const service = (name: string, app: string, namespace = 'shop'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace, uid: `uid-${namespace}-${name}`, labels: { app } },
});

export const refOf = (name: string): ObjectRef => ({
  ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', namespace: 'shop' },
  ...{ name, uid: `uid-${name}` },
});

export const server = (name: string, address: string, port = 8080): Server => ({
  ...{ name, address, port, weight: 1, state: 'ready', keywords: [] },
});

export const backendModel = (name: string, servers: readonly Server[]): BackendModel => ({
  ...{ name, mode: 'http', object: refOf(name), servers },
});
