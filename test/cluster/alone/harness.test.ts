/** What every other cluster test takes for granted. */
import { request } from 'undici';
import { beforeAll, describe, expect, test } from 'vitest';
import { cluster, makeNamespace } from '../../support/cluster.ts';
import { waitFor } from '../../support/haproxy.ts';

interface Pod {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly nodeName: string };
  readonly status: {
    readonly podIP: string;
    readonly containerStatuses: readonly {
      readonly ready: boolean;
      readonly restartCount: number;
      readonly lastState: { readonly terminated?: { readonly reason: string } };
    }[];
  };
}
interface Answer {
  readonly pod: string;
  readonly node: string;
}

const { kubectl, apply, get, client, run, images, machines, nodes } = cluster();
const REPLICAS = 4;
let namespace = '';

function echoDeployment(): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'echo', namespace },
    spec: {
      replicas: REPLICAS,
      selector: { matchLabels: { app: 'echo' } },
      template: {
        metadata: { labels: { app: 'echo' } },
        spec: {
          terminationGracePeriodSeconds: 2,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: { app: 'echo' } },
            },
          ],
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [
            {
              name: 'echo',
              image: images['echo'],
              env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
              readinessProbe: { httpGet: { path: '/health', port: 8080 }, periodSeconds: 1 },
              resources: { limits: { memory: '64Mi' } },
              securityContext: {
                readOnlyRootFilesystem: true,
                allowPrivilegeEscalation: false,
                capabilities: { drop: ['ALL'] },
              },
            },
          ],
        },
      },
    },
  };
}

function echoService(): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'echo', namespace },
    spec: {
      type: 'LoadBalancer',
      selector: { app: 'echo' },
      ports: [{ port: 80, targetPort: 8080 }],
    },
  };
}

async function pods(): Promise<readonly Pod[]> {
  return (await get<{ items: Pod[] }>(['pods', '-n', namespace, '-l', 'app=echo'])).items;
}

async function podOn(node: string | undefined): Promise<Pod> {
  const found = (await pods()).find(({ spec }) => spec.nodeName === node);
  if (found === undefined) throw new Error(`no pod on ${node ?? 'a node without a name'}`);
  return found;
}

function inPod({ metadata }: Pod, ...command: string[]): Promise<string> {
  return kubectl(['exec', '-n', namespace, metadata.name, '--', ...command]);
}

beforeAll(async () => {
  namespace = await makeNamespace('harness');
  await apply([echoDeployment(), echoService()]);
  await kubectl(['rollout', 'status', '-n', namespace, 'deployment/echo', '--timeout=90s']);
});

describe('nodes and pods', () => {
  test('two nodes are Ready and run pods of one Deployment', async () => {
    expect(nodes).toHaveLength(2);
    const used = new Set((await pods()).map(({ spec }) => spec.nodeName));
    expect([...used].sort()).toEqual(nodes);
  });

  test('a pod runs commands and shows its log', async () => {
    const pod = await podOn(nodes[1]);
    expect(await inPod(pod, 'sh', '-c', 'echo "from $NODE_NAME"')).toBe(`from ${nodes[1]}\n`);
    const log = await kubectl(['logs', '-n', namespace, pod.metadata.name]);
    expect(log).toContain('listening on :8080');
  });

  test('a container that is killed starts again', async () => {
    const before = await podOn(nodes[0]);
    await inPod(before, 'sh', '-c', 'kill 1');
    await waitFor(
      async () => {
        const [container] = (await podOn(nodes[0])).status.containerStatuses;
        return container?.ready === true && container.restartCount === 1;
      },
      { timeoutMs: 60_000, what: 'the container to start again' },
    );
  });

  test('a container that uses more memory than its limit is killed for that', async () => {
    const pod = await podOn(nodes[1]);
    const url = 'http://127.0.0.1:8080/?hold=200Mi';
    await expect(inPod(pod, 'echo', 'get', url)).rejects.toThrow();
    await waitFor(
      async () => {
        const [container] = (await podOn(nodes[1])).status.containerStatuses;
        return container?.lastState.terminated?.reason === 'OOMKilled';
      },
      { timeoutMs: 60_000, what: 'the container to be killed' },
    );
  });
});

describe('network', () => {
  test('a pod reaches a pod on the other node', async () => {
    const target = await podOn(nodes[1]);
    const url = `http://${target.status.podIP}:8080/`;
    const answer = JSON.parse(await inPod(await podOn(nodes[0]), 'echo', 'get', url)) as Answer;
    expect(answer).toMatchObject({ pod: target.metadata.name, node: nodes[1] });
  });

  test('a pod reaches the API server by its Service', async () => {
    const url = 'https://10.96.0.1/version';
    expect(await inPod(await podOn(nodes[0]), 'echo', 'get', url)).toContain('"gitVersion": "v1.');
  });

  test('all pods answer at the ClusterIP, to a pod and to the test itself', async () => {
    const service = ['service', 'echo', '-n', namespace];
    const { spec } = await get<{ spec: { clusterIP: string } }>(service);
    const url = `http://${spec.clusterIP}/`;
    const answered = new Set<string>();
    await waitFor(
      async () => {
        const { body } = await request(url, { reset: true });
        answered.add(((await body.json()) as Answer).pod);
        return answered.size === REPLICAS;
      },
      { timeoutMs: 60_000, what: `all pods to answer at ${url}` },
    );
    const inside = JSON.parse(await inPod(await podOn(nodes[0]), 'echo', 'get', url)) as Answer;
    expect(answered).toContain(inside.pod);
  });

  test('a Service of type LoadBalancer gets an address that an outside client reaches', async () => {
    const service = ['service', 'echo', '-n', namespace];
    const { status: seen } = await get<{
      status: { loadBalancer: { ingress: readonly [{ ip: string }] } };
    }>(service);
    const url = `http://${seen.loadBalancer.ingress[0].ip}/`;
    for (const via of [0, 1]) {
      // A node whose proxy has just lost its API server learns of the address when it has asked again.
      const answer = await waitFor(
        async () => {
          const { status, stdout } = await client(['curl', '-s', '-m', '5', url], via);
          return status === 0 && stdout;
        },
        { timeoutMs: 60_000, what: `an answer to client ${via} at ${url}` },
      );
      expect(nodes).toContain((JSON.parse(answer) as Answer).node);
    }
  });

  test('there is no way out', async () => {
    expect((await run(['ip', 'route', 'show', 'default'])).stdout).toBe('');
  });
});

describe('machines', () => {
  test('a killed daemon starts again, and a stopped one does not until it may', async () => {
    const { controlPlane, signal, stop, start } = machines!;
    const isReady = async (): Promise<boolean> => {
      return (await run(['kubectl', 'get', '--raw', '/readyz'])).status === 0;
    };
    await signal(controlPlane, 'kube-apiserver', 'SIGKILL');
    await waitFor(isReady, { timeoutMs: 60_000, what: 'the API server to be back' });
    await stop(controlPlane, 'kube-apiserver');
    expect(await isReady()).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(await isReady()).toBe(false);
    start(controlPlane, 'kube-apiserver');
    await waitFor(isReady, { timeoutMs: 60_000, what: 'the API server to be back' });
  });

  test('a node that lost its power comes back with its pods', async () => {
    const { killNode, bootNode } = machines!;
    await killNode(1);
    await bootNode(1);
    await waitFor(
      async () => {
        const states = (await pods()).flatMap(({ status }) => status.containerStatuses);
        const restarted = (await podOn(nodes[1])).status.containerStatuses;
        const isBack = restarted.every(({ restartCount }) => restartCount > 0);
        return isBack && states.length === REPLICAS && states.every(({ ready }) => ready);
      },
      { timeoutMs: 120_000, intervalMs: 500, what: 'all pods to be ready' },
    );
  });
});
