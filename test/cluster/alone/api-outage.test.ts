/** The API server away for two minutes, and killed at once: the data plane does not notice (R12). */
import { beforeAll, expect, onTestFailed, test } from 'vitest';
import { cluster, makeNamespace } from '../../support/cluster.ts';
import { waitFor } from '../../support/haproxy.ts';
import { install, type Installation } from '../../support/installation.ts';
import { Load } from '../../support/load.ts';
import { firstAnswer, hostOf, servedByAll, workload } from '../../support/workload.ts';

const { kubectl, apply, machines, run } = cluster();
const OUTAGE_MS = 120_000;

let release: Installation;
let namespace: string;

beforeAll(async () => {
  release = await install('outage');
  namespace = await makeNamespace('shop');
  await apply(workload({ namespace, name: 'echo', className: release.name, replicas: 2 }));
  await servedByAll(release.url, hostOf('echo'));
});

const isReady = async (): Promise<boolean> =>
  (await run(['kubectl', 'get', '--raw', '/readyz'])).status === 0;

test.runIf(machines !== undefined)(
  'R12: two minutes without an API server under load: every answer is 200, nothing reloads, and then changes go on',
  async () => {
    const { controlPlane, stop, start } = machines!;
    onTestFailed(async () => console.log(await kubectl(['get', 'events', '-A'])));
    const reloads = await release.metric('loadbalancer', 'haptic_agent_reloads_total');
    const restartsBefore = await restarts();
    const load = new Load({ url: release.url, host: hostOf('echo') });
    await stop(controlPlane, 'kube-apiserver');
    await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
    start(controlPlane, 'kube-apiserver');
    await waitFor(isReady, { timeoutMs: 120_000, what: 'the API server to be back' });
    const back = performance.now();
    await apply(workload({ namespace, name: 'later', className: release.name }));
    await firstAnswer(release.url, hostOf('later'));
    const report = await load.stop();
    const after = Math.round(performance.now() - back);
    console.log(
      `${report.requests} requests, ${report.failures.length} not 200; a new Ingress served ${after} ms after the API server was back`,
    );
    expect(report.failures).toStrictEqual([]);
    expect(report.requests).toBeGreaterThan(OUTAGE_MS / 100);
    // The one new Ingress may need one in each pod, the outage none.
    const now = await release.metric('loadbalancer', 'haptic_agent_reloads_total');
    expect(now - reloads).toBeLessThanOrEqual(2);
    expect(await restarts()).toBe(restartsBefore);
  },
);

const restarts = async (): Promise<number> => {
  const pods = [...(await release.pods('controller')), ...(await release.pods('loadbalancer'))];
  return pods
    .flatMap(({ status }) => [
      ...(status.containerStatuses ?? []),
      ...(status.initContainerStatuses ?? []),
    ])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
};

test.runIf(machines !== undefined)(
  'R12: an API server killed again and again under load: every answer is 200',
  async () => {
    const { controlPlane, signal } = machines!;
    const load = new Load({ url: release.url, host: hostOf('echo') });
    for (let times = 0; times < 3; times++) {
      await signal(controlPlane, 'kube-apiserver', 'SIGKILL');
      await waitFor(isReady, { timeoutMs: 120_000, what: 'the API server to be back' });
    }
    await kubectl(['scale', 'deployment/echo', '-n', namespace, '--replicas=3']);
    await kubectl(['rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=120s']);
    await waitFor(() => load.pods.size === 3, {
      timeoutMs: 60_000,
      what: 'the third pod to answer',
    });
    const report = await load.stop();
    console.log(`${report.requests} requests, ${report.failures.length} not 200`);
    expect(report.failures).toStrictEqual([]);
  },
);
