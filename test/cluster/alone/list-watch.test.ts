/** The list-watch against a real API server: killed, cut off, compacted, and under a storm. */
import { lastValueFrom } from 'rxjs';
import { request } from 'undici';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type ApiResource, collectionPath, objectPath } from '../../../src/kube/api-resource.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import type { KubeAccess } from '../../../src/kube/kube-access.ts';
import { kubeConfigAccess } from '../../../src/kube/kube-config.ts';
import { createKubeClient } from '../../../src/kube/undici-client.ts';
import { type KubeObject, objectKey } from '../../../src/snapshot/objects.ts';
import { listWatch, type WatchSignal } from '../../../src/streams/list-watch.ts';
import { cluster, makeNamespace } from '../../support/cluster.ts';
import { waitFor } from '../../support/haproxy.ts';
import { Watching } from '../../support/watching.ts';

const { kubeconfig, machines, run } = cluster();
const MAPS: ApiResource = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};
const CONCURRENT_WRITES = 48;
/** 20 s on a machine of its own, more than three minutes on one that is busy. */
const STORM = { timeout: 600_000 };
const random = (): number => 0.999; // the shortest waits that the jitter allows

let namespace = '';
/** Changes objects; has nothing to do with what is watched. */
let writer: KubeClient;
let client: KubeClient;
let watching: Watching;
let signals: WatchSignal[];
/** Whether the watching client is cut off from the API server. */
let cut = false;

const ask = <T>(request: Parameters<KubeClient['request']>[0]): Promise<T> =>
  lastValueFrom(writer.request(request), { defaultValue: undefined }) as Promise<T>;

const create = (name: string): Promise<unknown> =>
  ask({
    method: 'POST',
    path: collectionPath({ ...MAPS, namespace }),
    body: { metadata: { name, labels: { storm: 'yes' } }, data: { n: '0' } },
  });
const change = (name: string, n: number): Promise<unknown> =>
  ask({
    method: 'PATCH',
    path: objectPath({ ...MAPS, namespace, name }),
    contentType: 'application/merge-patch+json',
    body: { data: { n: String(n) } },
  });
const remove = (name: string): Promise<unknown> =>
  ask({ method: 'DELETE', path: objectPath({ ...MAPS, namespace, name }) });

const freshList = async (): Promise<ReadonlyMap<string, KubeObject>> => {
  const path = collectionPath({ ...MAPS, namespace });
  const { items } = await ask<{ items: KubeObject[] }>({ method: 'GET', path });
  return new Map(
    items.map((item) => [objectKey(item), { ...item, apiVersion: 'v1', kind: 'ConfigMap' }]),
  );
};

/** Waits until what is watched equals a fresh list, object by object. */
const converged = async (): Promise<number> => {
  let objects = 0;
  await waitFor(
    async () => {
      const fresh = await freshList().catch(() => undefined);
      if (fresh === undefined) return false;
      objects = fresh.size;
      const versions = [...fresh.values()].map(({ metadata }) => metadata.resourceVersion);
      const held = [...fresh.keys()].map((key) => watching.get(key)?.metadata.resourceVersion);
      return fresh.size === Object.keys(watching.content).length && versions.join() === held.join();
    },
    { timeoutMs: 120_000, what: 'the watch to hold what a fresh list holds' },
  );
  for (const [key, object] of await freshList()) expect(watching.get(key)).toStrictEqual(object);
  return objects;
};

/** Does the work of all names, a few at a time. */
const each = async (
  names: readonly string[],
  work: (name: string) => Promise<unknown>,
): Promise<void> => {
  const rest = [...names];
  const worker = async (): Promise<void> => {
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) await work(name);
  };
  await Promise.all(Array.from({ length: CONCURRENT_WRITES }, worker));
};

const gated = (access: KubeAccess): KubeAccess => ({
  ...access,
  credentials: () => (cut ? Promise.reject(new Error('cut off')) : access.credentials()),
});

const apiIsReady = async (): Promise<boolean> =>
  (await run(['kubectl', 'get', '--raw', '/readyz'])).status === 0;
const lists = (): number => signals.filter(({ type }) => type === 'Listing').length;

beforeAll(async () => {
  namespace = await makeNamespace('list-watch');
});

beforeEach(async () => {
  const access = kubeConfigAccess({ file: kubeconfig });
  writer = createKubeClient(access);
  client = createKubeClient(gated(access));
  cut = false;
  signals = [];
  await create('first').catch(() => undefined);
  watching = new Watching(
    listWatch({ client, api: MAPS, namespace, random, onSignal: (signal) => signals.push(signal) }),
  );
  await converged();
});

afterEach(async () => {
  watching.stop();
  await Promise.all([client.close(), writer.close()]);
});

test(
  'R14: a storm of 20,000 updates over 2,000 objects with three disconnects ends in what is there',
  STORM,
  async () => {
    const names = Array.from({ length: 2_000 }, (_, index) => `storm-${index}`);
    await each(names, create);
    await converged();
    const startedAt = performance.now();
    for (let round = 1; round <= 10; round += 1) {
      if (round % 3 === 0) void client.close(); // breaks every connection; the next request makes a new one
      await each(names, (name) => change(name, round));
    }
    const stormS = (performance.now() - startedAt) / 1_000;
    const objects = await converged();
    const settleS = (performance.now() - startedAt) / 1_000 - stormS;
    const failed = signals.filter(({ type }) => type === 'Failed').length;
    console.log(
      `storm: 20,000 updates in ${stormS.toFixed(1)} s, ${failed} disconnects, ${lists()} list(s), ` +
        `${watching.events.length} events, equal ${settleS.toFixed(1)} s after the end (${objects} objects)`,
    );
    expect(failed).toBeGreaterThanOrEqual(3);
    await each(names, remove);
    await converged();
  },
);

test.runIf(machines)('R14: a killed API server loses nothing', async () => {
  const { signal, controlPlane } = machines!;
  const before = watching.events.length;
  await signal(controlPlane, 'kube-apiserver', 'SIGKILL');
  await waitFor(apiIsReady, { timeoutMs: 120_000, what: 'the API server to be back' });
  await create(`after-kill-${before}`);
  await converged();
  console.log(`killed API server: ${lists()} list(s)`);
  expect(signals.some(({ type }) => type === 'Failed')).toBe(true);
});

test.runIf(machines)(
  'R14: an API server that is away for a while changes nothing meanwhile',
  async () => {
    const { stop, start, controlPlane } = machines!;
    const before = watching.content;
    await stop(controlPlane, 'kube-apiserver');
    try {
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      expect(watching.content).toStrictEqual(before);
    } finally {
      start(controlPlane, 'kube-apiserver');
    }
    await waitFor(apiIsReady, { timeoutMs: 120_000, what: 'the API server to be back' });
    await create('after-absence');
    await converged();
  },
);

test.runIf(machines)(
  'R14: versions that are compacted away are listed anew, uids included',
  async () => {
    const { signal, controlPlane } = machines!;
    const uid = watching.get(`${namespace}/first`)?.metadata.uid;
    cut = true;
    await client.close();
    await remove('first');
    await create('first');
    await create('after-compaction');
    const { metadata } = await ask<{ metadata: { resourceVersion: string } }>({
      method: 'GET',
      path: collectionPath({ ...MAPS, namespace }),
      query: { limit: 1 },
    });
    const { statusCode } = await request('http://127.0.0.1:2379/v3/kv/compaction', {
      method: 'POST',
      body: JSON.stringify({ revision: metadata.resourceVersion }), // the same number in etcd and in Kubernetes
    });
    expect(statusCode).toBe(200);
    // The API server still remembers what etcd has forgotten, until it starts again.
    await signal(controlPlane, 'kube-apiserver', 'SIGKILL');
    await waitFor(apiIsReady, { timeoutMs: 120_000, what: 'the API server to be back' });
    cut = false;
    await converged();
    expect(watching.get(`${namespace}/first`)?.metadata.uid).not.toBe(uid);
    expect(signals.filter((one) => one.type === 'Failed').map(({ error }) => error.code)).toContain(
      'gone',
    );
    expect(lists()).toBe(2);
  },
);
