/**
 * A real Prometheus that scrapes a release as the operator would make it of ServiceMonitor and PodMonitor. Debian's one cannot
 * ask an API server, so the targets are found here.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll } from 'vitest';
import { providePackages } from '../cluster/harness/packages.ts';
import { present, type Rendered } from './chart.ts';
import { cluster } from './cluster.ts';
import { freePort, waitFor } from './haproxy.ts';

/** What is asked to scrape. */
export interface PrometheusOptions {
  /** The chart as rendered with its monitors and rules. */
  readonly objects: readonly Rendered[];
  /** Namespace of the release, all of whose pods run. */
  readonly namespace: string;
}

/** Time between two scrapes, in seconds. */
const INTERVAL_S = 1;

interface Monitor {
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly endpoints?: readonly Endpoint[];
  readonly podMetricsEndpoints?: readonly Endpoint[];
}

interface Endpoint {
  readonly port: string;
  readonly path: string;
  readonly params?: Readonly<Record<string, readonly string[]>>;
}

/** What is scraped of a pod. */
interface Target {
  readonly pod: string;
  readonly address: string;
}

interface Container {
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
}

interface Listed<T> {
  readonly items: readonly T[];
}

const selectorOf = ({ selector }: Monitor): string =>
  Object.entries(selector.matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

/** Pods that a PodMonitor selects, where a container (a native sidecar, too) has the port. */
const ofPods = async (
  monitor: Monitor,
  port: string,
  namespace: string,
): Promise<readonly Target[]> => {
  const { items } = await cluster().get<
    Listed<{
      metadata: { name: string };
      spec: { containers: readonly Container[]; initContainers?: readonly Container[] };
      status: { podIP: string };
    }>
  >(['pods', '-n', namespace, '-l', selectorOf(monitor)]);
  return items.flatMap(({ metadata, spec, status }) =>
    [...spec.containers, ...(spec.initContainers ?? [])]
      .flatMap(({ ports = [] }) => ports)
      .filter(({ name }) => name === port)
      .map(({ containerPort }) => ({
        pod: metadata.name,
        address: `${status.podIP}:${containerPort}`,
      })),
  );
};

/** Endpoints of the Services that a ServiceMonitor selects, where the Service has the port. */
const ofServices = async (
  monitor: Monitor,
  port: string,
  namespace: string,
): Promise<readonly Target[]> => {
  const { items } = await cluster().get<
    Listed<{
      endpoints: readonly { addresses: readonly string[]; targetRef: { name: string } }[];
      ports: readonly { name?: string; port: number }[];
    }>
    // An EndpointSlice carries the labels of its Service.
  >(['endpointslices', '-n', namespace, '-l', selectorOf(monitor)]);
  return items.flatMap(({ endpoints, ports }) =>
    ports
      .filter(({ name }) => name === port)
      .flatMap(({ port: number }) =>
        endpoints.map(({ addresses: [address = ''], targetRef }) => ({
          pod: targetRef.name,
          address: `${address}:${number}`,
        })),
      ),
  );
};

/** The scrape configuration of a monitor's endpoint, with the labels that the operator sets. */
const scrapeOf = (
  job: string,
  { port, path, params }: Endpoint,
  { namespace, targets }: { readonly namespace: string; readonly targets: readonly Target[] },
): object => ({
  job_name: job,
  scrape_interval: `${INTERVAL_S}s`,
  scrape_timeout: `${INTERVAL_S}s`,
  metrics_path: path,
  ...(params === undefined ? {} : { params }),
  static_configs: targets.map(({ pod, address }) => ({
    targets: [address],
    labels: { namespace, pod, endpoint: port },
  })),
});

const specOf = (objects: readonly Rendered[], kind: string): unknown =>
  present(objects.find((object) => object.kind === kind)?.spec, kind);

/** One series of a query over time. */
export interface RangeSeries {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [seconds: number, value: string])[];
}

/** A Prometheus that runs. */
export interface Prometheus {
  /** A query over the time since it started, a value each second. @throws when Prometheus refuses it */
  readonly over: (query: string) => Promise<readonly RangeSeries[]>;
  /** Targets that are scraped, by their labels, with the error of the last scrape. */
  readonly targets: () => Promise<
    readonly { readonly labels: Readonly<Record<string, string>>; readonly lastError: string }[]
  >;
}

/** Starts one; it ends with the test file. */
export async function startPrometheus(options: PrometheusOptions): Promise<Prometheus> {
  const { objects, namespace } = options;
  const folder = mkdtempSync(join(tmpdir(), 'haptic-prometheus-'));
  const services = specOf(objects, 'ServiceMonitor') as Monitor;
  const pods = specOf(objects, 'PodMonitor') as Monitor;
  const rules = join(folder, 'rules.json');
  writeFileSync(rules, JSON.stringify(specOf(objects, 'PrometheusRule')));
  const scrapes = [
    ...present(services.endpoints).map(async (endpoint) => {
      const targets = await ofServices(services, endpoint.port, namespace);
      return scrapeOf(`service/${endpoint.port}`, endpoint, { namespace, targets });
    }),
    ...present(pods.podMetricsEndpoints).map(async (endpoint) => {
      const targets = await ofPods(pods, endpoint.port, namespace);
      return scrapeOf(`pod/${endpoint.port}`, endpoint, { namespace, targets });
    }),
  ];
  const config = {
    global: { evaluation_interval: '5s' },
    rule_files: [rules],
    scrape_configs: await Promise.all(scrapes),
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const port = await freePort();
  const program = join((await providePackages()).root, 'usr/bin/prometheus');
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'config.json')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.on('data', (part: Buffer) => (said += part.toString()));
  afterAll(async () => {
    if (child.exitCode === null) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(folder, { recursive: true });
  });
  const base = `http://127.0.0.1:${port}`;
  const ask = async (path: string): Promise<unknown> => {
    const { body } = await request(`${base}${path}`);
    const answer = (await body.json()) as { status: string; error?: string; data?: unknown };
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error ?? 'no success'}`);
    return answer.data;
  };
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(said);
    const { statusCode, body } = await request(`${base}/-/ready`);
    await body.dump();
    return statusCode === 200;
  };
  await waitFor(isReady, { timeoutMs: 30_000, what: 'Prometheus' }).catch((error: unknown) => {
    throw new Error(said, { cause: error });
  });
  const started = Date.now();
  return {
    over: async (query) => {
      const times = { start: started / 1_000, end: Date.now() / 1_000, step: 1 };
      const parameters = new URLSearchParams({
        query,
        ...Object.fromEntries(Object.entries(times).map(([key, value]) => [key, String(value)])),
      });
      const data = await ask(`/api/v1/query_range?${parameters.toString()}`);
      return (data as { readonly result: readonly RangeSeries[] }).result;
    },
    targets: async () => {
      const data = (await ask('/api/v1/targets?state=active')) as {
        readonly activeTargets: Awaited<ReturnType<Prometheus['targets']>>;
      };
      return data.activeTargets;
    },
  };
}
