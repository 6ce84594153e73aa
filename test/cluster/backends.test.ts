/** Endpoints that come and go under load: nobody notices, and nothing reloads. */
import { beforeAll, expect, test } from 'vitest';
import { cluster, makeNamespace } from '../support/cluster.ts';
import { install, type Installation } from '../support/installation.ts';
import { Load } from '../support/load.ts';
import { hostOf, servedByAll, workload } from '../support/workload.ts';

const { kubectl, apply } = cluster();
const NAME = 'echo';

let release: Installation;
let namespace: string;

beforeAll(async () => {
  release = await install('backends');
  namespace = await makeNamespace('shop');
  await apply(workload({ namespace, name: NAME, className: release.name, replicas: 1 }));
  await rolledOut();
  await servedByAll(release.url, hostOf(NAME));
});

const rolledOut = (): Promise<string> =>
  kubectl(['rollout', 'status', `deployment/${NAME}`, '-n', namespace, '--timeout=240s']);

const reloads = (): Promise<number> => release.metric('loadbalancer', 'haptic_agent_reloads_total');

test('R4: a Deployment scales 1 → 10 → 1 under load: every answer is 200, and nothing reloads', async () => {
  const before = await reloads();
  const load = new Load({ url: release.url, host: hostOf(NAME) });
  const started = performance.now();
  await kubectl(['scale', `deployment/${NAME}`, '-n', namespace, '--replicas=10']);
  await rolledOut();
  const scaledAfter = performance.now() - started;
  // Long enough for every pod to be asked.
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  await kubectl(['scale', `deployment/${NAME}`, '-n', namespace, '--replicas=1']);
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  const report = await load.stop();
  console.log(
    `${report.requests} requests, ${report.failures.length} not 200, ${report.pods.size} pods answered, 10 ready after ${Math.round(scaledAfter)} ms, ${(await reloads()) - before} reloads`,
  );
  expect(report.failures).toStrictEqual([]);
  expect(report.pods.size).toBe(10);
  expect(await reloads()).toBe(before);
});

test('R4: a rolling update of a backend under load: every answer is 200, and nothing reloads', async () => {
  await kubectl(['scale', `deployment/${NAME}`, '-n', namespace, '--replicas=3']);
  await rolledOut();
  const before = await reloads();
  const load = new Load({ url: release.url, host: hostOf(NAME) });
  await kubectl(['rollout', 'restart', `deployment/${NAME}`, '-n', namespace]);
  await rolledOut();
  await new Promise((resolve) => setTimeout(resolve, 8_000));
  const report = await load.stop();
  console.log(
    `${report.requests} requests, ${report.failures.length} not 200, ${report.pods.size} pods answered, ${(await reloads()) - before} reloads`,
  );
  expect(report.failures).toStrictEqual([]);
  expect(report.pods.size).toBeGreaterThan(3);
  expect(await reloads()).toBe(before);
});
