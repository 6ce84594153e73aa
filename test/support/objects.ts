/** Kubernetes objects for tests in few words, and snapshots of them. */
import { applyBatch, emptySnapshot, type IndexedSnapshot } from '../../src/snapshot/apply-batch.ts';
import { objectKey, type KubeObject, type ObjectKey } from '../../src/snapshot/objects.ts';
import type { WatchedResource, WatchEvent } from '../../src/snapshot/watch.ts';
import { resourceOfKind } from '../../src/streams/directory-kinds.ts';
import { REPLACEMENT_KEY } from '../../src/snapshot/folded-changes.ts';

/** A rule in few words: `['shop.example.com', '/cart', 'cart:80', 'Exact']`; path type Prefix when it is left out. */
export type RuleWords = readonly [host: string, path: string, backend: string, type?: string];

/** What {@link ingress} needs beyond a name. */
export interface IngressWords {
  readonly namespace?: string;
  readonly rules?: readonly RuleWords[];
  /** `service:port`. */
  readonly defaultBackend?: string;
  /** Secret (`` for none) and hosts. */
  readonly tls?: readonly (readonly [secret: string, ...hosts: string[]])[];
  /** Default: `haptic`; null for none. */
  readonly className?: string | null;
  readonly created?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** `web:80` or `web:http`, as an IngressBackend. */
export const backendOf = (words: string): unknown => {
  const [name = '', port = '80'] = words.split(':');
  const reference = /^\d+$/.test(port) ? { number: Number(port) } : { name: port };
  return { service: { name, port: reference } };
};

const ruleOf = ([host, path, backend, pathType = 'Prefix']: RuleWords): unknown => ({
  ...(host === '' ? {} : { host }),
  http: { paths: [{ path, pathType, backend: backendOf(backend) }] },
});

export const ingress = (name: string, words: IngressWords = {}): KubeObject => {
  const { namespace = 'default', rules = [], className = 'haptic', created, annotations } = words;
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: {
      namespace,
      name,
      uid: `uid-${namespace}-${name}`,
      ...(created === undefined ? {} : { creationTimestamp: created }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: {
      ...(className === null ? {} : { ingressClassName: className }),
      rules: rules.map(ruleOf),
      ...(words.defaultBackend === undefined
        ? {}
        : { defaultBackend: backendOf(words.defaultBackend) }),
      tls: (words.tls ?? []).map(([secretName, ...hosts]) => ({
        ...(secretName === '' ? {} : { secretName }),
        ...(hosts.length === 0 ? {} : { hosts }),
      })),
    },
  };
};

/** What {@link service} needs beyond a name; ports as `80` or `http:80`. */
export interface ServiceWords {
  readonly namespace?: string;
  readonly ports?: readonly string[];
  readonly spec?: Readonly<Record<string, unknown>>;
}

export const service = (name: string, words: ServiceWords = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: words.namespace ?? 'default', name },
  spec: {
    ports: (words.ports ?? ['80']).map((text) => {
      const [first = '', second] = text.split(':');
      return second === undefined ? { port: Number(first) } : { name: first, port: Number(second) };
    }),
    ...words.spec,
  },
});

/** What {@link slice} needs beyond its Service. */
export interface SliceWords {
  readonly namespace?: string;
  readonly name?: string;
  /** Default: IPv4. */
  readonly addressType?: string;
  /** Port name → number; `` is the port without name. Default: `{ '': 8080 }`. */
  readonly ports?: Readonly<Record<string, number>>;
  /** An address, or a whole endpoint. */
  readonly endpoints?: readonly (string | Readonly<Record<string, unknown>>)[];
}

export const slice = (serviceName: string, words: SliceWords = {}): KubeObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    namespace: words.namespace ?? 'default',
    name: words.name ?? `${serviceName}-1`,
    labels: { 'kubernetes.io/service-name': serviceName },
  },
  addressType: words.addressType ?? 'IPv4',
  ports: Object.entries(words.ports ?? { '': 8080 }).map(([name, port]) => ({ name, port })),
  endpoints: (words.endpoints ?? ['10.0.0.1']).map((endpoint) =>
    typeof endpoint === 'string' ? { addresses: [endpoint] } : endpoint,
  ),
});

/** An endpoint of a pod with its conditions. */
export const podEndpoint = (
  pod: string,
  address: string,
  conditions: Readonly<Record<string, boolean>> = {},
): Readonly<Record<string, unknown>> => ({
  addresses: [address],
  conditions,
  targetRef: { kind: 'Pod', name: pod, namespace: 'default' },
});

export const tlsSecret = (
  name: string,
  data: Readonly<Record<string, string>>,
  namespace = 'default',
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace, name },
  type: 'kubernetes.io/tls',
  data: Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  ),
});

export const ingressClass = (
  name: string,
  controller = 'haproxy-haptic.org/controller',
  isDefault = false,
): KubeObject => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'IngressClass',
  metadata: {
    name,
    ...(isDefault
      ? { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } }
      : {}),
  },
  spec: { controller },
});

const watched = (name: string, indexBy: readonly string[]): WatchedResource => ({
  name,
  apiVersions: ['v1'],
  resources: name,
  optional: false,
  namespaces: [],
  labelSelector: {},
  fieldSelector: {},
  indexBy,
  ignoreFields: [],
  store: 'full',
  debounceMs: 0,
  maxWaitMs: 1000,
});

/** What the ingress library watches. */
export const WATCHED: readonly WatchedResource[] = [
  watched('ingresses', ['metadata.namespace', 'metadata.name']),
  watched('ingressclasses', ['metadata.name']),
  watched('services', ['metadata.namespace', 'metadata.name']),
  watched('endpointslices', ['metadata.namespace', 'metadata.labels.kubernetes\\.io/service-name']),
  watched('secrets', ['metadata.namespace', 'metadata.name']),
];

const RESOURCE_OF: Readonly<Record<string, string>> = {
  Ingress: 'ingresses',
  IngressClass: 'ingressclasses',
  Service: 'services',
  EndpointSlice: 'endpointslices',
  Secret: 'secrets',
};

const batchOf = (
  events: Iterable<readonly [resource: string, key: ObjectKey, event: WatchEvent]>,
): Map<string, Map<ObjectKey, WatchEvent>> => {
  const batch = new Map<string, Map<ObjectKey, WatchEvent>>();
  for (const [resource, key, event] of events) {
    const folded = batch.get(resource) ?? new Map<ObjectKey, WatchEvent>();
    batch.set(resource, folded.set(key, event));
  }
  return batch;
};

/** Name of the watched resource of an object. */
export const resourceOf = (object: KubeObject): string => RESOURCE_OF[object.kind] ?? '';

/** A snapshot that holds exactly these objects. */
export const snapshotOf = (objects: readonly KubeObject[]): IndexedSnapshot =>
  applyBatch(
    emptySnapshot(WATCHED),
    batchOf(
      WATCHED.map(({ name }) => {
        const wanted = objects.filter((object) => resourceOf(object) === name);
        return [name, REPLACEMENT_KEY, { type: 'Replaced', objects: wanted }] as const;
      }),
    ),
  );

/** A snapshot of the objects that are watched, as a directory of manifests would give it. */
export const snapshotFor = (
  watched: readonly WatchedResource[],
  objects: readonly KubeObject[],
): IndexedSnapshot =>
  applyBatch(
    emptySnapshot(watched),
    batchOf(
      watched.map(({ name, resources }) => {
        const wanted = objects.filter(({ kind }) => resourceOfKind(kind) === resources);
        return [name, REPLACEMENT_KEY, { type: 'Replaced', objects: wanted }] as const;
      }),
    ),
  );

/** The snapshot after objects were written and others deleted. */
export const changed = (
  snapshot: IndexedSnapshot,
  upserted: readonly KubeObject[],
  deleted: readonly KubeObject[] = [],
): IndexedSnapshot =>
  applyBatch(
    snapshot,
    batchOf([
      ...upserted.map(
        (object) => [resourceOf(object), objectKey(object), { type: 'Upserted', object }] as const,
      ),
      ...deleted.map(
        (object) =>
          [
            resourceOf(object),
            objectKey(object),
            { type: 'Deleted', key: objectKey(object) },
          ] as const,
      ),
    ]),
  );
