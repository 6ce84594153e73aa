/** The Helm chart, rendered by the real helm for tests. */
import type {
  V1ClusterRole,
  V1ClusterRoleBinding,
  V1ConfigMap,
  V1Container,
  V1Deployment,
  V1Pod,
  V1PodSpec,
  V1Role,
  V1RoleBinding,
  V1Secret,
  V1Service,
  V1ServiceAccount,
} from '@kubernetes/client-node';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { yamlDocuments } from '../../src/streams/yaml-documents.ts';
import { provideKubernetes } from '../cluster/harness/programs.ts';
import { type Outcome, run } from '../cluster/harness/run.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The chart's folder. */
export const CHART = join(ROOT, 'chart');
/** A folder for each value set: `values.yaml`, and `expected.yaml`, what it renders to. */
export const GOLDENS = join(ROOT, 'test/golden/chart');
/** Value sets that are rendered and compared. */
export const VALUE_SETS = [
  'defaults',
  'minimal',
  'namespaced',
  'cert-manager',
  'customised',
] as const;
export type ValueSet = (typeof VALUE_SETS)[number];
/** The namespace of every release here; the release is called haptic. */
export const NAMESPACE = 'haptic';

/** Kinds whose fields tests look at. */
export interface Kinds {
  readonly ClusterRole: Fields<V1ClusterRole>;
  readonly ClusterRoleBinding: Fields<V1ClusterRoleBinding>;
  readonly ConfigMap: Fields<V1ConfigMap>;
  readonly Deployment: Fields<V1Deployment>;
  readonly Pod: Fields<V1Pod>;
  readonly Role: Fields<V1Role>;
  readonly RoleBinding: Fields<V1RoleBinding>;
  readonly Secret: Fields<V1Secret>;
  readonly Service: Fields<V1Service>;
  readonly ServiceAccount: Fields<V1ServiceAccount>;
}

/** A parsed object has the fields of the class, and is no instance of it. */
type Fields<T> = { readonly [K in keyof T]: T[K] };

/** Any rendered object. */
export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: unknown;
}

/** How the chart is rendered. */
export interface RenderWords {
  /** Default: defaults. */
  readonly values?: ValueSet;
  /** Values as on helm's command line, by path; they win. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Objects that an earlier release left are asked for at this API server. Default: none is asked. */
  readonly kubeconfig?: string;
}

/** Runs helm: the one that is built for the test cluster, or the one that `HELM` names. */
export async function helm(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  const program = process.env['HELM'] ?? join(await provideKubernetes(), 'helm');
  // Nobody's own configuration, repositories or cluster.
  const isolated = { PATH: process.env['PATH'], HOME: '/nonexistent', HELM_NAMESPACE: NAMESPACE };
  return run([program, ...args], { env: { ...isolated, ...env } });
}

/** `helm template` of the chart; the outcome as it is. */
export function template(words: RenderWords = {}): Promise<Outcome> {
  const { values = 'defaults', set = {}, kubeconfig } = words;
  const settings = Object.entries(set).flatMap(([path, value]) => [
    '--set-json',
    `${path}=${JSON.stringify(value)}`,
  ]);
  const lookups = kubeconfig === undefined ? [] : ['--dry-run=server'];
  return helm(
    [
      ...['template', 'haptic', CHART, '--namespace', NAMESPACE, '--kube-version', '1.36.0'],
      ...['--values', join(GOLDENS, values, 'values.yaml'), ...settings, ...lookups],
    ],
    kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig },
  );
}

/**
 * The objects that the chart renders to.
 *
 * @throws with helm's words when it refuses, or when the output is no YAML
 */
export async function rendered(words: RenderWords = {}): Promise<readonly Rendered[]> {
  const { status, stdout, stderr } = await template(words);
  if (status !== 0) throw new Error(stderr);
  const read = yamlDocuments(stdout);
  if (!read.ok) throw new Error(`line ${read.error.line}: ${read.error.reason}`);
  return read.documents as readonly Rendered[];
}

/** All objects of a kind. */
export function ofKind<K extends keyof Kinds>(
  objects: readonly Rendered[],
  kind: K,
): readonly (Kinds[K] & Rendered)[] {
  return objects.filter((object) => object.kind === kind) as (Kinds[K] & Rendered)[];
}

/**
 * The one object of a kind whose name ends like this.
 *
 * @throws when there is none, or more than one
 */
export function named<K extends keyof Kinds>(
  objects: readonly Rendered[],
  kind: K,
  ending: string,
): Kinds[K] & Rendered {
  const found = ofKind(objects, kind).filter(({ metadata }) => metadata.name.endsWith(ending));
  const [one, ...others] = found;
  if (one === undefined || others.length > 0) {
    throw new Error(`${found.length} objects of kind ${kind} end with ${ending}`);
  }
  return one;
}

/** What runs a pod. */
type Workload = Kinds['Deployment'] | Kinds['Pod'];

/** The pod of a Deployment, or of a bare Pod. */
export function podSpec(object: Workload): V1PodSpec {
  const spec = object.spec;
  if (spec === undefined) throw new Error('no spec');
  return 'template' in spec ? present(spec.template.spec) : spec;
}

/** The containers of a pod by name, native sidecars included. */
export function containersOf(spec: V1PodSpec): Readonly<Record<string, V1Container>> {
  return Object.fromEntries(
    [...(spec.initContainers ?? []), ...spec.containers].map((container) => [
      container.name,
      container,
    ]),
  );
}

/** One container. @throws when there is none of this name */
export function container(object: Workload, name: string): V1Container {
  return present(containersOf(podSpec(object))[name]);
}

/** @throws when the value is missing */
export function present<T>(value: T | null | undefined, what = 'something'): T {
  if (value === undefined || value === null) throw new Error(`${what} is missing`);
  return value;
}

/** One YAML document of the repository. */
export function yamlFile(path: string): unknown {
  const read = yamlDocuments(readFileSync(join(ROOT, path), 'utf8'));
  if (!read.ok) throw new Error(`${path}:${read.error.line}: ${read.error.reason}`);
  return read.documents[0];
}
