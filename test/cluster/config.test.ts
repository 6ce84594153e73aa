/** Generations of the configuration, good and bad ones: a bad one changes nothing and is told. */
import { request } from 'undici';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { cluster, makeNamespace } from '../support/cluster.ts';
import { waitFor } from '../support/haproxy.ts';
import { install, type Installation } from '../support/installation.ts';
import { Load } from '../support/load.ts';
import { hostOf, servedByAll, workload } from '../support/workload.ts';

const { kubectl, apply } = cluster();
const WAIT = { timeoutMs: 150_000 };

let release: Installation;
let namespace: string;

beforeAll(async () => {
  release = await install('config');
  namespace = await makeNamespace('shop');
  await apply(workload({ namespace, name: 'echo', className: release.name }));
  await servedByAll(release.url, hostOf('echo'));
});

interface Configuration {
  readonly metadata: { readonly generation: number };
  readonly status: {
    readonly observedGeneration: number;
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly message: string;
    }[];
  };
}

/** Changes the spec; null takes a member away. */
const patch = (spec: object): Promise<string> =>
  release.kubectl(
    ...['patch', 'haproxytemplateconfig', 'haptic-config', '--type=merge'],
    ...['-p', JSON.stringify({ spec })],
  );

/** What the newest generation came to. */
const verdict = (): Promise<{ readonly accepted: string; readonly message: string }> =>
  waitFor(
    async () => {
      const { metadata, status } = await release.get<Configuration>(
        'haproxytemplateconfig',
        'haptic-config',
      );
      const condition = status.conditions.find(({ type }) => type === 'Accepted');
      if (condition === undefined || status.observedGeneration !== metadata.generation) return;
      return { accepted: condition.status, message: condition.message };
    },
    { ...WAIT, intervalMs: 500, what: 'the verdict about the newest generation' },
  );

/** The header that the snippet of {@link marked} sets, as the load balancers send it. */
const mark = async (): Promise<unknown> => {
  const { headers, body } = await request(release.url, {
    headers: { host: hostOf('echo') },
    reset: true,
  });
  await body.dump();
  return headers['x-mark'];
};

const marked = (value: string, line = `http-response set-header x-mark ${value}`) => ({
  templateSnippets: { 'frontend-http-900-mark': { template: `${line}\n` } },
});

const untilMarked = (value: string): Promise<boolean> =>
  waitFor(async () => (await mark()) === value, { ...WAIT, what: `the mark ${value}` });

/** Scales the backend and waits until all of its pods have answered: endpoints flow. */
const scaleTo = async (replicas: number): Promise<void> => {
  await kubectl(['scale', 'deployment/echo', '-n', namespace, `--replicas=${replicas}`]);
  await kubectl(['rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=120s']);
  const load = new Load({ url: release.url, host: hostOf('echo') });
  await waitFor(() => load.pods.size >= replicas, { ...WAIT, what: 'every pod to answer' });
  const { pods, failures } = await load.stop();
  expect(failures).toStrictEqual([]);
  expect(pods.size).toBeGreaterThanOrEqual(replicas);
};

test('G13: a valid generation takes over under load: every answer is 200', async () => {
  const load = new Load({ url: release.url, host: hostOf('echo') });
  const started = performance.now();
  await patch(marked('first'));
  await untilMarked('first');
  const took = Math.round(performance.now() - started);
  const { failures, requests } = await load.stop();
  console.log(`in force after ${took} ms; ${requests} requests, ${failures.length} not 200`);
  expect(failures).toStrictEqual([]);
  expect(await verdict()).toMatchObject({ accepted: 'True' });
});

describe('a generation that is refused', () => {
  beforeEach(async () => {
    await patch(marked('first'));
    await verdict();
    await untilMarked('first');
  });

  test.each([
    [
      'that HAProxy refuses',
      marked('second', 'http-response no-such-directive'),
      /no-such-directive/,
    ],
    ['whose template does not compile', marked('second', '{% if %}'), /frontend-http-900-mark/],
    [
      'whose template never ends',
      marked(
        'second',
        '{% for a in range(0, 100000) %}{% for b in range(0, 100000) %}{% endfor %}{% endfor %}',
      ),
      /was not completed|took|longer|range/,
    ],
    ['with an unknown field', { templateSnipets: {} }, /templateSnipets.*templateSnippets/s],
    [
      'whose own test fails',
      {
        ...marked('second'),
        validationTests: {
          marked: { assertions: [{ type: 'contains', pattern: 'x-mark third' }] },
        },
      },
      /marked/,
    ],
    [
      'that watches a resource nobody knows',
      {
        ...marked('second'),
        watchedResources: {
          gadgets: {
            apiVersion: 'example.com/v1',
            resources: 'gadgets',
            indexBy: ['metadata.name'],
          },
        },
      },
      /gadgets/,
    ],
  ])(
    'G13: %s changes nothing and is told in its status and an Event',
    async (_what, spec, told) => {
      const before = (await events()).length;
      await patch(spec);
      const { accepted, message } = await verdict();
      expect(accepted).toBe('False');
      expect(message).toMatch(told);
      expect(await mark()).toBe('first');
      await scaleTo(2);
      await scaleTo(1);
      await waitFor(async () => (await events()).length > before, { ...WAIT, what: 'an Event' });
      await patch({
        ...marked('first'),
        templateSnipets: null,
        validationTests: null,
        watchedResources: { gadgets: null },
      });
      expect(await verdict()).toMatchObject({ accepted: 'True' });
    },
  );

  test('R12: controllers that start while the newest generation is refused go on with the accepted one', async () => {
    await patch(marked('second', 'http-response no-such-directive'));
    expect(await verdict()).toMatchObject({ accepted: 'False' });
    await release.kubectl('rollout', 'restart', `deployment/${release.name}-controller`);
    await release.kubectl(
      ...['rollout', 'status', `deployment/${release.name}-controller`, '--timeout=180s'],
    );
    await scaleTo(3);
    expect(await mark()).toBe('first');
    await patch(marked('fourth'));
    await untilMarked('fourth');
    await scaleTo(1);
  });
});

interface EventObject {
  readonly type: string;
  readonly reason: string;
}

const events = async (): Promise<readonly EventObject[]> => {
  const selector = 'regarding.kind=HAProxyTemplateConfig';
  const { items } = await release.get<{ items: EventObject[] }>(
    ...['events.v1.events.k8s.io', '--field-selector', selector],
  );
  return items.filter(({ type }) => type === 'Warning');
};

const logs = async (): Promise<string> =>
  release.kubectl('logs', '-l', 'app.kubernetes.io/component=controller', '--tail=2000');

test('a podSelector that selects nothing is told, and what served goes on serving', async () => {
  const load = new Load({ url: release.url, host: hostOf('echo') });
  await patch({ podSelector: { matchLabels: { 'no-such': 'label' } } });
  await waitFor(async () => (await logs()).includes('NoHAProxyPods'), {
    ...WAIT,
    intervalMs: 1_000,
    what: 'the warning',
  });
  await patch({ podSelector: { matchLabels: { 'no-such': null } } });
  await scaleTo(2);
  const { failures } = await load.stop();
  expect(failures).toStrictEqual([]);
  await scaleTo(1);
});

test('a CustomResourceDefinition removed while it is watched is told, and everything else goes on', async () => {
  const group = 'gadgets.haptic.test';
  const name = `gadgets.${group}`;
  const metadata = { name };
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  await apply([
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata,
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: any } }],
      },
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata,
      rules: [{ apiGroups: [group], resources: ['gadgets'], verbs: ['get', 'list', 'watch'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [
        { kind: 'ServiceAccount', name: `${release.name}-controller`, namespace: release.name },
      ],
    },
  ]);
  try {
    const gadgets = {
      apiVersion: `${group}/v1`,
      resources: 'gadgets',
      indexBy: ['metadata.namespace', 'metadata.name'],
    };
    await patch({ watchedResources: { gadgets } });
    expect(await verdict()).toMatchObject({ accepted: 'True' });
    await kubectl(['delete', 'crd', name, '--wait=true']);
    await waitFor(async () => (await logs()).includes('ResourceNotServed'), {
      ...WAIT,
      intervalMs: 1_000,
      what: 'the problem',
    });
    await scaleTo(2);
    await scaleTo(1);
  } finally {
    await patch({ watchedResources: { gadgets: null } });
    await kubectl(['delete', 'clusterrole,clusterrolebinding', name, '--ignore-not-found']);
    await kubectl(['delete', 'crd', name, '--ignore-not-found']);
  }
  expect(await verdict()).toMatchObject({ accepted: 'True' });
});
