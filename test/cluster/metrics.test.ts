/** A real Prometheus scrapes a release as the chart's monitors say, and every query of the chart finds data. */
import { join } from 'node:path';
import { request } from 'undici';
import { beforeAll, expect, test } from 'vitest';
import { yamlDocuments } from '../../src/streams/yaml-documents.ts';
import { CHART, type Rendered } from '../support/chart.ts';
import { queriesOf, rulesOf } from '../support/chart-monitoring.ts';
import { cluster, makeNamespace } from '../support/cluster.ts';
import { waitFor } from '../support/haproxy.ts';
import { install, type Installation } from '../support/installation.ts';
import { Load } from '../support/load.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { firstAnswer, hostOf, workload } from '../support/workload.ts';
import { providePackages } from './harness/packages.ts';
import { type Outcome, run } from './harness/run.ts';

const { apply, kubectl, helm } = cluster();

let release: Installation;
let namespace: string;
let objects: readonly Rendered[];
let prometheus: Prometheus;

const MONITORING = ['serviceMonitor', 'podMonitor', 'prometheusRule', 'grafanaDashboard'];

/** The release's chart with everything that is for monitoring. */
const monitored = async (name: string): Promise<readonly Rendered[]> => {
  const on = MONITORING.flatMap((part) => ['--set', `monitoring.${part}.enabled=true`]);
  const text = await helm([
    ...['template', name, CHART, '-n', name, '--kube-version', '1.36.0', ...on],
  ]);
  const read = yamlDocuments(text);
  if (!read.ok) throw new Error(`line ${read.error.line}: ${read.error.reason}`);
  return read.documents as readonly Rendered[];
};

const promtool = async (args: readonly string[], stdin = ''): Promise<Outcome> =>
  run([join((await providePackages()).root, 'usr/bin/promtool'), ...args], { stdin });

beforeAll(async () => {
  release = await install('metrics');
  namespace = await makeNamespace('shop');
  objects = await monitored(release.name);
  prometheus = await startPrometheus({ objects, namespace: release.name });
  await apply(workload({ namespace, name: 'echo', className: release.name }));
  await firstAnswer(release.url, hostOf('echo'));
});

/** A value that a panel can show. */
const shows = async (query: string): Promise<boolean> =>
  (await prometheus.over(query)).some(({ values }) =>
    values.some(([, value]) => Number.isFinite(Number(value))),
  );

test('every endpoint of the monitors is scraped in both pods, with the labels that alerts select by', async () => {
  const targets = await waitFor(
    async () => {
      const all = await prometheus.targets();
      return all.length === 6 && all.every(({ lastError }) => lastError === '') ? all : undefined;
    },
    { timeoutMs: 60_000, what: 'six targets without an error' },
  );
  const names = async (component: 'controller' | 'loadbalancer') =>
    (await release.pods(component)).map(({ metadata }) => metadata.name);
  const [controllers, balancers] = [await names('controller'), await names('loadbalancer')];
  const expected = [
    ...controllers.map((pod) => ['metrics', pod]),
    ...balancers.flatMap((pod) => [
      ['agent-metrics', pod],
      ['stats', pod],
    ]),
  ].map(([endpoint, pod]) => `${release.name} ${pod} ${endpoint}`);
  const found = targets.map(
    ({ labels }) => `${labels['namespace']} ${labels['pod']} ${labels['endpoint']}`,
  );
  expect(found.toSorted()).toStrictEqual(expected.toSorted());
});

test('S23: promtool finds nothing to say about what controllers and agents expose', async () => {
  for (const [component, port] of [
    ['controller', 9090],
    ['loadbalancer', 5557],
  ] as const) {
    for (const { status } of await release.pods(component)) {
      const { body } = await request(`http://${status.podIP}:${port}/metrics`);
      const outcome = await promtool(['check', 'metrics'], await body.text());
      expect(outcome.stdout + outcome.stderr).toBe('');
      expect(outcome.status).toBe(0);
    }
  }
});

test('S23 R17: every query of the dashboard and every series that an alert is about has data', async () => {
  const load = new Load({ url: release.url, host: hostOf('echo'), perSecond: 20 });
  // A change of endpoints, a new backend with its reload, and one that changes nothing but a map.
  await kubectl(['scale', 'deployment/echo', '-n', namespace, '--replicas=2']);
  await apply(workload({ namespace, name: 'second', className: release.name }));
  await firstAnswer(release.url, hostOf('second'));
  await kubectl(['scale', 'deployment/echo', '-n', namespace, '--replicas=1']);

  const inDashboard = queriesOf(objects).map((query) =>
    query.replaceAll('$namespace', release.name).replaceAll('$__rate_interval', '15s'),
  );
  const selectors = rulesOf(objects).flatMap(({ expr }) =>
    [...expr.matchAll(/\b(?:(?:haptic|haproxy|process)_\w+|up)\{[^}]*\}/g)].map(([one]) => one),
  );
  expect(inDashboard.length).toBeGreaterThan(30);
  expect(selectors.length).toBeGreaterThanOrEqual(rulesOf(objects).length);
  const queries = [...new Set([...inDashboard, ...selectors])];
  const started = performance.now();
  let empty = queries;
  await waitFor(
    async () => {
      const found = await Promise.all(empty.map(shows));
      empty = empty.filter((_, index) => found[index] !== true);
      return empty.length === 0;
    },
    { timeoutMs: 60_000, intervalMs: 1_000, what: 'data for all queries' },
  ).catch(() => undefined);
  const report = await load.stop();
  console.log(
    `${queries.length} queries have data after ${Math.round(performance.now() - started)} ms; ` +
      `${report.requests} requests, ${report.failures.length} not 200`,
  );
  expect(empty).toStrictEqual([]);
});

test('alerts are evaluated, and none fires', async () => {
  for (const { expr } of rulesOf(objects)) await prometheus.over(expr);
  const series = await prometheus.over('ALERTS');
  const seen = (state: string): readonly string[] => [
    ...new Set(
      series
        .filter(({ metric }) => metric['alertstate'] === state)
        .map(({ metric }) => metric['alertname'] ?? ''),
    ),
  ];
  console.log(`alerts that were pending for a while: ${seen('pending').join(', ') || 'none'}`);
  expect(seen('firing')).toStrictEqual([]);
});
