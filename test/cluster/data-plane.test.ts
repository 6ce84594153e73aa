/** HAProxy pods and their containers that end in every way, under load. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { kubeConfigAccess } from '../../src/kube/kube-config.ts';
import { createKubeClient } from '../../src/kube/undici-client.ts';
import { cluster, makeNamespace } from '../support/cluster.ts';
import { containerOf, signalContainer } from '../support/containers.ts';
import { waitFor } from '../support/haproxy.ts';
import {
  install,
  type Installation,
  metricsOf,
  type PodObject,
  serversOf,
  sumOf,
} from '../support/installation.ts';
import { Load, type LoadReport } from '../support/load.ts';
import { MovingBackend } from '../support/moving-backend.ts';
import { firstAnswer, hostOf, workload } from '../support/workload.ts';

const { kubectl, apply, get, kubeconfig, machines } = cluster();

/** What a request may take whose connection was lost, on a busy machine. */
const TIMEOUT_SLACK_MS = 2_000;
/** From the start of HAProxy in a pod that joins until it serves: G12 waits for nothing, the machine may be busy. */
const JOIN_MS = 10_000;

let client: KubeClient;
let release: Installation;
let moving: MovingBackend;
/** The HAProxy pods at the begin of a test. */
let haproxies: readonly PodObject[];

beforeAll(async () => {
  client = createKubeClient(kubeConfigAccess({ file: kubeconfig }));
  release = await install('data-plane');
  const namespace = await makeNamespace('shop');
  await apply(workload({ namespace, name: 'echo', className: release.name, replicas: 3 }));
  await kubectl(['rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=120s']);
  const { items: pods } = await get<{ items: PodObject[] }>(['pods', '-n', namespace]);
  moving = new MovingBackend({ client, namespace, name: 'moving', className: release.name, pods });
  await moving.create();
  await firstAnswer(release.url, hostOf('echo'));
});

beforeEach(async () => {
  await release.kubectl(
    'rollout',
    'status',
    `deployment/${release.name}-haproxy`,
    '--timeout=120s',
  );
  haproxies = await standing();
  await moving.served(haproxies, performance.now());
});

afterAll(() => client.close());

/** The HAProxy pods that are not being deleted. */
const standing = async (): Promise<readonly PodObject[]> =>
  (await release.pods('loadbalancer')).filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  );

const first = (): PodObject => {
  const [pod] = haproxies;
  if (pod === undefined) throw new Error('there is no HAProxy pod');
  return pod;
};

const newest = async ({ metadata: { name } }: PodObject): Promise<PodObject> =>
  release.get<PodObject>('pod', name);

const startLoad = (): Load => new Load({ url: release.url, host: hostOf('echo') });

const reloadsOf = async (pod: PodObject): Promise<number> =>
  sumOf(await metricsOf(pod, 'loadbalancer'), 'haptic_agent_reloads_total');

const told = ({ requests, failures }: LoadReport): string =>
  `${requests} requests, ${failures.length} not 200`;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Looks at a pod all the time, until it is Ready and serves what there is.
 *
 * @returns when its HAProxy started, when it was configured and when it was Ready, in milliseconds from `since`; and whether
 *   it was ever Ready before it was configured
 */
const watchJoining = async (name: string, since: number): Promise<Joining> => {
  const joining: Joining = { early: false };
  const look = async (): Promise<boolean> => {
    const pod = await release.get<PodObject>('pod', name);
    const serves = (await moving.answerOf(pod)) === moving.pod;
    return note(joining, { pod, serves, now: Math.round(performance.now() - since) });
  };
  const what = `${name} to be Ready`;
  await waitFor(look, { timeoutMs: 120_000, intervalMs: 50, what });
  return joining;
};

/** Writes down what is seen for the first time. @returns whether there is nothing more to see */
const note = (
  joining: Joining,
  { pod, serves, now }: { readonly pod: PodObject; readonly serves: boolean; readonly now: number },
): boolean => {
  const [haproxy] = pod.status.containerStatuses ?? [];
  const isReady = haproxy?.ready === true;
  const seen = { begun: haproxy?.containerID !== undefined, configured: serves, ready: isReady };
  for (const step of ['begun', 'configured', 'ready'] as const) {
    if (seen[step]) joining[step] ??= now;
  }
  if (isReady && !serves) joining.early = true;
  return serves && isReady;
};

interface Joining {
  begun?: number;
  configured?: number;
  ready?: number;
  early: boolean;
}

test('a HAProxy pod that is deleted drains: every answer is 200', async () => {
  const load = startLoad();
  const started = performance.now();
  const { name } = first().metadata;
  await release.kubectl('delete', 'pod', name, '--wait=true', '--timeout=120s');
  const gone = Math.round(performance.now() - started);
  await release.kubectl(
    'rollout',
    'status',
    `deployment/${release.name}-haproxy`,
    '--timeout=120s',
  );
  await sleep(3_000);
  const report = await load.stop();
  const pods = await standing();
  const served = await moving.served(pods, await moving.move());
  console.log(
    `pod deleted: gone after ${gone} ms; ${told(report)}; next change after ${served} ms`,
  );
  expect(report.failures).toStrictEqual([]);
  expect(pods.map(({ metadata }) => metadata.name)).not.toContain(name);
});

test.runIf(machines !== undefined)(
  'a HAProxy container that is killed comes back with what was applied, and gets the next change',
  async () => {
    const pod = first();
    const before = containerOf(pod, 'haproxy');
    await moving.served(haproxies, await moving.move()); // so that the worker holds what its files do not
    const load = startLoad();
    await sleep(1_000);
    const reloads = await reloadsOf(pod);
    const killed = performance.now();
    signalContainer(pod, 'haproxy', 'SIGKILL');
    await waitFor(
      async () => containerOf(await newest(pod), 'haproxy').containerID !== before.containerID,
      { timeoutMs: 120_000, what: 'another container' },
    );
    const restarted = Math.round(performance.now() - killed);
    const { configured = 0, ready = 0, early } = await watchJoining(pod.metadata.name, killed);
    await sleep(3_000);
    const report = await load.stop();
    const served = await moving.served(haproxies, await moving.move());
    const known = await keysKnown();
    console.log(
      `HAProxy killed: another container after ${restarted} ms, right answers after ${configured} ms, Ready after ${ready} ms; ${told(report)}, failures within ${span(report)} ms; next change after ${served} ms, ${(await reloadsOf(pod)) - reloads} reloads`,
    );
    expect(containerOf(await newest(pod), 'haproxy').restartCount).toBe(before.restartCount + 1);
    expect(early).toBe(false);
    // Connections that it had, and those that kube-proxy sends there until it listens again, get no answer; a wrong one
    // nobody gets.
    expect(report.failures.filter((failure) => failure.includes('status'))).toStrictEqual([]);
    expect(span(report)).toBeLessThan(configured + TIMEOUT_SLACK_MS);
    expect(known).toContain(containerOf(await newest(pod), 'haproxy').containerID);
    expect(known).not.toContain(before.containerID);
  },
);

/** Container ids in the keys of the pods that the leader knows. */
const keysKnown = async (): Promise<string> => {
  const leader = await release.leader();
  const script =
    "fetch('http://127.0.0.1:8081/debug/vars').then((a) => a.json()).then(({ agents }) => console.log(Object.values(agents).map(({ key }) => key).join()))";
  return release.kubectl('exec', leader, '-c', 'controller', '--', 'node', '-e', script);
};

/** Milliseconds from the first failure to the last one. */
const span = ({ failures }: LoadReport): number => {
  const at = failures.map((failure) => Number.parseInt(failure, 10));
  return at.length === 0 ? 0 : Math.max(...at) - Math.min(...at);
};

test.runIf(machines !== undefined)(
  'an agent container that is killed: every answer is 200, nothing reloads, and the next change is applied',
  async () => {
    const pod = first();
    const before = containerOf(pod, 'agent');
    const other = haproxies.find(({ metadata }) => metadata.uid !== pod.metadata.uid) as PodObject;
    const reloads = await reloadsOf(other);
    const load = startLoad();
    await sleep(1_000);
    const killed = performance.now();
    signalContainer(pod, 'agent', 'SIGKILL');
    await moving.move();
    const served = await moving.served(haproxies, killed);
    await sleep(3_000);
    const report = await load.stop();
    console.log(
      `agent killed: the next change after ${served} ms; ${told(report)}; ${await reloadsOf(pod)} reloads`,
    );
    expect(report.failures).toStrictEqual([]);
    const after = await newest(pod);
    expect(containerOf(after, 'agent').restartCount).toBe(before.restartCount + 1);
    expect(containerOf(after, 'haproxy').restartCount).toBe(
      containerOf(pod, 'haproxy').restartCount,
    );
    // Its counters began anew with it.
    expect(await reloadsOf(pod)).toBe(0);
    expect(await reloadsOf(other)).toBe(reloads);
  },
);

test('G12, R22: a fleet grows 2 → 3 → 2 under load: a new pod is Ready with its configuration only, and has the same servers', async () => {
  const load = startLoad();
  // What the old ones hold came by operations, what the new one gets is a file.
  await moving.served(haproxies, await moving.move());
  const started = performance.now();
  await scale(3);
  const joined = await waitFor(
    async () => (await standing()).find((pod) => !known(pod))?.metadata.name,
    { timeoutMs: 60_000, what: 'the third pod' },
  );
  const { begun = 0, configured = 0, ready = 0, early } = await watchJoining(joined, started);
  const pods = await standing();
  const servers = await Promise.all(pods.map(serversOf));
  await sleep(3_000);
  await scale(2);
  await waitFor(async () => (await release.pods('loadbalancer')).length === 2, {
    timeoutMs: 120_000,
    what: 'the third pod to be gone',
  });
  const report = await load.stop();
  console.log(
    `2 → 3 → 2: HAProxy started after ${begun} ms, configured ${configured - begun} ms and Ready ${ready - begun} ms later; ${told(report)}; ${servers[0]?.length} servers each`,
  );
  expect(pods).toHaveLength(3);
  expect(configured - begun).toBeLessThan(JOIN_MS);
  expect(early).toBe(false);
  expect(servers[0]?.length).toBeGreaterThan(3);
  expect(servers).toStrictEqual([servers[0], servers[0], servers[0]]);
  expect(report.failures).toStrictEqual([]);
});

const known = (pod: PodObject): boolean =>
  haproxies.some(({ metadata }) => metadata.uid === pod.metadata.uid);

const scale = (replicas: number): Promise<string> =>
  release.kubectl('scale', `deployment/${release.name}-haproxy`, `--replicas=${replicas}`);

test('R25: a HAProxy pod has no credentials of Kubernetes', async () => {
  const { spec } = await release.get<{ spec: PodSpec }>('pod', first().metadata.name);
  expect(spec.automountServiceAccountToken).toBe(false);
  const kinds = (spec.volumes ?? []).flatMap(({ name: _name, ...source }) => Object.keys(source));
  expect(kinds.toSorted()).toStrictEqual(['configMap', 'emptyDir', 'secret']);
  const script = "console.log(require('node:fs').existsSync('/var/run/secrets/kubernetes.io'))";
  const found = await release.kubectl(
    ...['exec', first().metadata.name, '-c', 'agent', '--', 'node', '-e', script],
  );
  expect(found.trim()).toBe('false');
});

interface PodSpec {
  readonly automountServiceAccountToken?: boolean;
  readonly volumes?: readonly { readonly name: string }[];
}
