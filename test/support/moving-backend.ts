/** A Service without a selector, whose one endpoint a test moves: a change that waits for no kubelet and no scheduler. */
import { lastValueFrom } from 'rxjs';
import { request } from 'undici';
import { objectPath } from '../../src/kube/api-resource.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { cluster } from './cluster.ts';
import { waitFor } from './haproxy.ts';
import type { PodObject } from './installation.ts';
import { hostOf } from './workload.ts';

/** Where it is, and what its endpoint can be. */
export interface MovingBackendOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Name of Service and Ingress; its host is `NAME.example.com`. */
  readonly name: string;
  readonly className: string;
  /** Pods of an echo workload, at least two: the endpoint moves from one to the next. */
  readonly pods: readonly PodObject[];
}

/** The endpoint that moves. */
export class MovingBackend {
  readonly #options: MovingBackendOptions;
  #turn = 0;

  constructor(options: MovingBackendOptions) {
    this.#options = options;
  }

  /** Makes Service and Ingress, with the first pod as endpoint. */
  async create(): Promise<void> {
    const { namespace, name, className } = this.#options;
    const metadata = { name, namespace };
    await cluster().apply([
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata,
        spec: { ports: [{ name: 'http', port: 80 }] },
      },
      this.#slice(),
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'Ingress',
        metadata,
        spec: {
          ingressClassName: className,
          rules: [{ host: hostOf(name), http: { paths: [pathTo(name)] } }],
        },
      },
    ]);
  }

  /** Name of the pod that answers when all changes are applied. */
  get pod(): string {
    return this.#target.metadata.name;
  }

  /** Moves the endpoint to the next pod. @returns when the API server had it, by `performance.now()` */
  async move(): Promise<number> {
    this.#turn += 1;
    const { client, namespace, name } = this.#options;
    const slices = { apiVersion: 'discovery.k8s.io/v1', plural: 'endpointslices' };
    const change = client.request({
      method: 'PATCH',
      path: objectPath({ ...slices, namespace, name }),
      contentType: 'application/merge-patch+json',
      body: { endpoints: this.#slice().endpoints },
    });
    await lastValueFrom(change, { defaultValue: undefined });
    return performance.now();
  }

  /**
   * Waits until each of these HAProxy pods answers from where the endpoint was moved to.
   *
   * @param since by `performance.now()`
   * @returns milliseconds from `since` until the last one did
   */
  async served(through: readonly PodObject[], since: number, timeoutMs = 120_000): Promise<number> {
    const what = `${this.#options.name} to be served by ${this.pod}`;
    const each = through.map((haproxy) =>
      waitFor(async () => (await this.answerOf(haproxy)) === this.pod, { timeoutMs, what }),
    );
    await Promise.all(each);
    return Math.round(performance.now() - since);
  }

  /** Name of the pod that answers through this HAProxy pod, or why none does. */
  async answerOf({ status: { podIP } }: PodObject): Promise<string> {
    const headers = { host: hostOf(this.#options.name) };
    const signal = AbortSignal.timeout(2_000);
    try {
      const { statusCode, body } = await request(`http://${podIP}:8080/`, { headers, signal });
      const text = await body.text();
      return statusCode === 200
        ? (JSON.parse(text) as { pod: string }).pod
        : `status ${statusCode}`;
    } catch (error: unknown) {
      return String(error);
    }
  }

  get #target(): PodObject {
    const { pods } = this.#options;
    const target = pods[this.#turn % pods.length];
    if (target === undefined) throw new Error('there is no pod to move to');
    return target;
  }

  #slice() {
    const { namespace, name } = this.#options;
    const labels = { 'kubernetes.io/service-name': name };
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace, labels },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: [{ addresses: [this.#target.status.podIP], conditions: { ready: true } }],
    };
  }
}

const pathTo = (name: string) => ({
  path: '/',
  pathType: 'Prefix',
  backend: { service: { name, port: { number: 80 } } },
});
