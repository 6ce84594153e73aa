/** What `haptic run` needs of an API server: it lists, watches, keeps what is written, and compares versions of a Lease. */
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { FaultServer, type FaultRequest, statusObject } from '../../support/fault-server.ts';

export const NAMESPACE = 'haptic';
const GROUP = '/apis/haproxy-haptic.org/v1alpha1';
const CORE = '/api/v1';
const LEASES = '/apis/coordination.k8s.io/v1';

const KINDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [GROUP]: {
    haproxytemplateconfigs: 'HAProxyTemplateConfig',
    haproxycfgs: 'HAProxyCfg',
    haproxymapfiles: 'HAProxyMapFile',
    haproxygeneralfiles: 'HAProxyGeneralFile',
    haproxycrtlistfiles: 'HAProxyCRTListFile',
  },
  [CORE]: { pods: 'Pod', secrets: 'Secret', configmaps: 'ConfigMap', services: 'Service' },
  [LEASES]: { leases: 'Lease' },
  '/apis/events.k8s.io/v1': { events: 'Event' },
  '/apis/apiextensions.k8s.io/v1': { customresourcedefinitions: 'CustomResourceDefinition' },
};

/** A fault server that also takes what a controller writes. */
export class FakeCluster {
  readonly server: FaultServer;

  private constructor(server: FaultServer) {
    this.server = server;
    for (const [path, kinds] of Object.entries(KINDS)) {
      const resources = Object.entries(kinds).map(([name, kind]) => {
        server.collection(`${path}/${name}`, kind);
        return { name, kind, namespaced: kind !== 'CustomResourceDefinition' };
      });
      server.documents.set(path, { kind: 'APIResourceList', resources });
    }
    server.write = (request) => this.#write(request);
  }

  static async start(): Promise<FakeCluster> {
    return new FakeCluster(await FaultServer.start());
  }

  /** A kubeconfig whose only user needs no credentials. */
  get kubeconfig(): string {
    const cluster = {
      name: 'c',
      cluster: { server: this.server.url, 'insecure-skip-tls-verify': true },
    };
    const context = { name: 'c', context: { cluster: 'c', user: 'u', namespace: NAMESPACE } };
    return JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
      ...{ clusters: [cluster], contexts: [context], users: [{ name: 'u', user: {} }] },
    });
  }

  /** Writes a HAProxyTemplateConfig as a person does: a new generation. */
  configure(name: string, spec: unknown): void {
    const path = `${GROUP}/namespaces/${NAMESPACE}/haproxytemplateconfigs`;
    const generation = (this.server.object(`${path}/${name}`)?.metadata.generation ?? 0) + 1;
    this.#store(path, name, { metadata: { generation }, spec });
  }

  /** Puts an object of the core group into the controller's namespace. */
  put(plural: string, name: string, content: Readonly<Record<string, unknown>>): void {
    this.#store(`${CORE}/namespaces/${NAMESPACE}/${plural}`, name, content);
  }

  /** An object of HAPTIC's own kinds. */
  own(plural: string, name: string): KubeObject | undefined {
    return this.server.object(`${GROUP}/namespaces/${NAMESPACE}/${plural}/${name}`);
  }

  /** Who holds the Lease; empty when it was given back. */
  holder(name: string): unknown {
    const lease = this.server.object(`${LEASES}/namespaces/${NAMESPACE}/leases/${name}`);
    return (lease?.['spec'] as { readonly holderIdentity?: unknown } | undefined)?.holderIdentity;
  }

  #write({ method, path, body }: FaultRequest): readonly [number, unknown] {
    const sent = (body === '' ? {} : JSON.parse(body)) as KubeObject;
    if (method === 'POST') return this.#create(path, sent);
    const { where, name, subresource } = targetOf(path);
    if (method === 'PATCH') {
      const { status } = sent;
      return [200, this.#store(where, name, subresource === undefined ? sent : { status })];
    }
    const held = this.server.object(`${where}/${name}`);
    if (held === undefined) return [404, statusObject(404, 'there is none')];
    if (method === 'DELETE') {
      this.server.collection(collectionOf(where)).remove(`${NAMESPACE}/${name}`);
      return [200, {}];
    }
    return held.metadata.resourceVersion === sent.metadata.resourceVersion
      ? [200, this.#store(where, name, sent)]
      : [409, statusObject(409, 'it is another version')];
  }

  #create(path: string, sent: KubeObject): readonly [number, unknown] {
    const { name } = sent.metadata;
    return this.server.object(`${path}/${name}`) === undefined
      ? [201, this.#store(path, name, sent)]
      : [409, statusObject(409, 'it exists')];
  }

  /** Lays the members over those that are there. */
  #store(where: string, name: string, content: Readonly<Record<string, unknown>>): KubeObject {
    const model = this.server.collection(collectionOf(where));
    const before = this.server.object(`${where}/${name}`);
    const metadata = {
      uid: `uid-of-${name}`,
      ...before?.metadata,
      ...(content['metadata'] as object | undefined),
      ...{ name, namespace: NAMESPACE, resourceVersion: String(model.version + 1) },
    };
    return model.put(`${NAMESPACE}/${name}`, { ...before, ...content, metadata });
  }
}

/** A namespaced object, or its status. */
const PLACE = /^(.*\/namespaces\/[^/]+\/[^/]+)\/([^/]+)(?:\/(status))?$/;

const targetOf = (path: string) => {
  const [, where = '', name = '', subresource] = PLACE.exec(path) ?? [];
  return { where, name, subresource };
};

const collectionOf = (where: string): string => where.replace(/\/namespaces\/[^/]+/, '');
