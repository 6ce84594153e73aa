/** The chart, installed in a namespace of its own on the test cluster. */
import { writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { afterAll } from 'vitest';
import { cluster, makeNamespace } from './cluster.ts';
import { waitFor } from './haproxy.ts';

const CHART = fileURLToPath(new URL('../../chart', import.meta.url));

/** Releases that the end of the test file removes, before their namespaces go. */
const installed = new Set<string>();

afterAll(async () => {
  for (const name of installed) {
    await cluster().run(['helm', 'uninstall', name, '-n', name, '--wait', '--timeout', '120s']);
  }
});

type Values = Readonly<Record<string, unknown>>;

/** The fields of a pod that tests look at. */
export interface PodObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec: { readonly nodeName: string };
  readonly status: {
    readonly podIP: string;
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

/** One container of a pod. */
export interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly containerID?: string;
}

/** An installed release. Release, namespace, IngressClass and the prefix of all names are one word. */
export interface Installation {
  readonly name: string;
  /** Where clients reach the load balancers: `http://ADDRESS`. */
  readonly url: string;
  /** kubectl in the namespace of the release. @throws {ProgramError} */
  readonly kubectl: (...args: readonly string[]) => Promise<string>;
  /** One object or a list of the namespace. @throws {ProgramError} */
  readonly get: <T>(...args: readonly string[]) => Promise<T>;
  readonly helm: (...args: readonly string[]) => Promise<string>;
  /** Installs what these values say over the usual ones, and waits until all of it is ready. */
  readonly upgrade: (values: Values) => Promise<void>;
  readonly pods: (component: 'controller' | 'loadbalancer') => Promise<readonly PodObject[]>;
  /** Name of the pod that leads. */
  readonly leader: () => Promise<string>;
  /** The value of a metric of every pod of a component, summed over its labels; 0 where it is absent. */
  readonly metric: (component: 'controller' | 'loadbalancer', metric: string) => Promise<number>;
}

/**
 * Installs the chart with the images of the tests and waits until everything is ready.
 *
 * @param purpose a word for its name
 * @param values over the defaults of the chart and the images of the tests
 */
export async function install(purpose: string, values: Values = {}): Promise<Installation> {
  const name = await makeNamespace(`haptic-${purpose}`);
  const folder = await mkdtemp(join(tmpdir(), 'haptic-values-'));
  const { helm, kubectl, get } = cluster();
  const inNamespace = (...args: readonly string[]): Promise<string> =>
    kubectl(['-n', name, ...args]);
  const upgrade = async (changed: Values): Promise<void> => {
    const files = [testValues(name), values, changed].map((content, index) => {
      const file = join(folder, `${index}.json`);
      writeFileSync(file, JSON.stringify(content));
      return ['-f', file];
    });
    const wait = ['--wait', '--timeout', '240s'];
    const options = { timeoutMs: 300_000 };
    await helm(
      ['upgrade', '--install', name, CHART, '-n', name, ...files.flat(), ...wait],
      options,
    );
  };
  installed.add(name);
  await upgrade({});
  const service = ['service', `${name}-haproxy`, '-n', name];
  let address = '';
  await waitFor(
    async () => {
      const { status } = await get<{
        status: { loadBalancer: { ingress?: readonly { ip: string }[] } };
      }>(service);
      address = status.loadBalancer.ingress?.[0]?.ip ?? '';
      return address !== '';
    },
    { timeoutMs: 30_000, what: 'an address for the load balancers' },
  );
  const pods: Installation['pods'] = async (component) => {
    const selector = `app.kubernetes.io/component=${component}`;
    const { items } = await get<{ items: PodObject[] }>(['pods', '-n', name, '-l', selector]);
    return items;
  };
  return {
    name,
    url: `http://${address}`,
    kubectl: inNamespace,
    get: (...args) => get([...args, '-n', name]),
    helm: (...args) => helm([...args, '-n', name], { timeoutMs: 300_000 }),
    upgrade,
    pods,
    leader: () =>
      inNamespace('get', 'lease', 'haptic-config', '-o', 'jsonpath={.spec.holderIdentity}'),
    metric: async (component, metric) => {
      const values = (await pods(component)).map(async (pod) =>
        sumOf(await metricsOf(pod, component), metric),
      );
      return (await Promise.all(values)).reduce((sum, value) => sum + value, 0);
    },
  };
}

/** Servers of a HAProxy pod that are up, as its HAProxy calls them: `BACKEND/SERVER`, sorted. */
export const serversOf = async ({ status: { podIP } }: PodObject): Promise<readonly string[]> => {
  const exposition = await metricsAt(`http://${podIP}:8404/metrics`);
  const up = /^haproxy_server_status\{proxy="([^"]*)",server="([^"]*)",state="UP"\} 1$/gm;
  return [...exposition.matchAll(up)].map(([, backend, server]) => `${backend}/${server}`).sort();
};

/** The metrics of one pod. */
export const metricsOf = (
  { status: { podIP } }: PodObject,
  component: 'controller' | 'loadbalancer',
): Promise<string> =>
  metricsAt(`http://${podIP}:${component === 'controller' ? 9090 : 5557}/metrics`);

const metricsAt = async (url: string): Promise<string> => {
  const { body } = await request(url);
  return body.text();
};

/** Sum of all samples of a metric in an exposition. */
export const sumOf = (exposition: string, metric: string): number =>
  exposition
    .split('\n')
    .filter((line) => line.startsWith(`${metric} `) || line.startsWith(`${metric}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);

/** The images of the tests, and requests that fit many releases on two small nodes. */
const testValues = (name: string): Values => {
  const { images } = cluster();
  const image = (key: string): Values => {
    const [repository, tag] = (images[key] ?? '').split(':');
    return { repository, tag };
  };
  return {
    image: image('controller'),
    agent: {
      image: image('agent'),
      resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '256Mi' } },
    },
    haproxy: {
      image: image('haproxy-3.4'),
      resources: { requests: { cpu: '10m', memory: '128Mi' }, limits: { memory: '512Mi' } },
    },
    resources: { requests: { cpu: '10m', memory: '256Mi' }, limits: { memory: '1Gi' } },
    ingressClass: { name, controllerName: `haptic.test/${name}` },
  };
};
