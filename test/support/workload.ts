/** A backend with its Service and Ingress, for tests on the cluster. */
import { request } from 'undici';
import { cluster } from './cluster.ts';
import { waitFor } from './haproxy.ts';

/** A workload that echoes. */
export interface WorkloadOptions {
  readonly namespace: string;
  /** Name of Deployment, Service and Ingress; its host is `NAME.example.com`. */
  readonly name: string;
  readonly className: string;
  readonly replicas?: number;
  /** Secret of its certificate. Default: none, and plain HTTP. */
  readonly tls?: string;
}

/** Objects of a workload. A pod serves on while nobody sends it new requests any more, as it should anywhere. */
export const workload = ({
  namespace,
  name,
  className,
  replicas = 1,
  tls,
}: WorkloadOptions): readonly object[] => {
  const labels = { app: name };
  const metadata = { name, namespace };
  const host = hostOf(name);
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas,
        selector: { matchLabels: labels },
        strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 20,
            containers: [
              {
                name: 'echo',
                image: cluster().images['echo'],
                env: [
                  { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                ],
                readinessProbe: { httpGet: { path: '/health', port: 8080 }, periodSeconds: 1 },
                lifecycle: { preStop: { sleep: { seconds: 5 } } },
              },
            ],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata,
      spec: {
        ingressClassName: className,
        ...(tls === undefined ? {} : { tls: [{ hosts: [host], secretName: tls }] }),
        rules: [
          {
            host,
            http: {
              paths: [
                {
                  path: '/',
                  pathType: 'Prefix',
                  backend: { service: { name, port: { number: 80 } } },
                },
              ],
            },
          },
        ],
      },
    },
  ];
};

/** The host of a workload. */
export const hostOf = (name: string): string => `${name}.example.com`;

/** Status of one request to a host; 0 when there was no answer. */
export const statusAt = async (url: string, host: string): Promise<number> => {
  try {
    const { statusCode, body } = await request(url, { headers: { host }, reset: true });
    await body.dump();
    return statusCode;
  } catch {
    return 0;
  }
};

/** Waits for the first 200 of a host. @returns milliseconds it took */
export const firstAnswer = async (url: string, host: string): Promise<number> => {
  const started = performance.now();
  await waitFor(async () => (await statusAt(url, host)) === 200, {
    timeoutMs: 120_000,
    what: `the first 200 of ${host}`,
  });
  return performance.now() - started;
};

/** New connections in a row that have to be answered: enough to meet each of a few load balancers. */
const IN_A_ROW = 24;

/**
 * Waits until every load balancer serves a host. The first answer comes from one of them, and others may still be about
 * to reload.
 */
export const servedByAll = async (url: string, host: string): Promise<void> => {
  await waitFor(
    async () => {
      for (let count = 0; count < IN_A_ROW; count++) {
        if ((await statusAt(url, host)) !== 200) return false;
      }
      return true;
    },
    { timeoutMs: 120_000, intervalMs: 100, what: `${host} at every load balancer` },
  );
};
