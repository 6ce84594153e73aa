import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createDiscovery } from '../../../src/kube/discovery.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import type { WatchedResource } from '../../../src/snapshot/watch.ts';
import { clusterSource, type WatchName } from '../../../src/streams/cluster-source.ts';
import { crdChanges } from '../../../src/streams/crd-changes.ts';
import type { WatchSignal } from '../../../src/streams/list-watch.ts';
import type { ResourceSource } from '../../../src/ports.ts';
import { FaultServer } from '../../support/fault-server.ts';
import { watched } from '../../support/watched.ts';
import { plainClient, Watching } from '../../support/watching.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const WIDGETS = '/apis/example.com/v1';

let server: FaultServer;
let client: KubeClient;
let source: ResourceSource;
let problems: readonly Problem[];
let signals: (readonly [WatchName, WatchSignal])[];
const open: (() => void | Promise<void>)[] = [];
const random = (): number => 0.999;

const resource = (plural: string, kind: string, namespaced = true) => ({
  name: plural,
  namespaced,
  kind,
  verbs: ['list', 'watch'],
});

beforeEach(async () => {
  server = await FaultServer.start();
  server.documents.set('/api/v1', {
    kind: 'APIResourceList',
    resources: [
      resource('secrets', 'Secret'),
      resource('configmaps', 'ConfigMap'),
      resource('namespaces', 'Namespace', false),
      resource('namespaces/status', 'Namespace', false),
    ],
  });
  server.collection(CRDS, 'CustomResourceDefinition');
  client = plainClient(server.url);
  signals = [];
  source = clusterSource({
    client,
    discovery: createDiscovery(client, { crdChanges$: crdChanges({ client, random }) }),
    random,
    problemsMs: 10,
    onSignal: (watch, signal) => signals.push([watch, signal]),
  });
  const told = source.problems$.subscribe((list) => (problems = list));
  open.push(
    () => client.close(),
    () => told.unsubscribe(),
  );
});

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
  await server.close();
});

const watch = (over: Partial<WatchedResource> = {}): Watching => {
  const watching = new Watching(
    source.watch({
      ...watched('secrets', { labelSelector: {}, ignoreFields: [], namespaces: [] }),
      apiVersions: ['v1'],
      resources: 'secrets',
      ...over,
    }),
  );
  open.push(() => watching.stop());
  return watching;
};
const widgets = (over: Partial<WatchedResource> = {}): Watching =>
  watch({ name: 'widgets', apiVersions: ['example.com/v1'], resources: 'widgets', ...over });
const install = (): void => {
  server.documents.set(WIDGETS, { resources: [resource('widgets', 'Widget')] });
  server.collection(CRDS).put('/widgets.example.com');
};
const uninstall = (): void => {
  server.documents.delete(WIDGETS);
  server.collections.delete(`${WIDGETS}/widgets`);
  server.collection(CRDS).remove('/widgets.example.com');
  server.resetConnections();
};

const until = (check: () => void, timeout = 10_000): Promise<void> =>
  vi.waitFor(check, { timeout, interval: 10 });
const synced = (watching: Watching, ...keys: readonly string[]): Promise<void> =>
  until(() => {
    expect(watching.replaced).toBeGreaterThan(0);
    expect(Object.keys(watching.content)).toStrictEqual(keys);
  });

describe('kinds', () => {
  it('G4: an optional kind that is not served is empty, and comes and goes with its definition', async () => {
    server.collection(`${WIDGETS}/widgets`, 'Widget').put('shop/a');
    const watching = widgets({ optional: true });
    await synced(watching);
    expect(problems).toStrictEqual([]);
    await until(() => expect(server.watches).toBe(1)); // of the definitions
    install();
    await synced(watching, 'shop/a');
    expect(watching.get('shop/a')).toMatchObject({ apiVersion: 'example.com/v1', kind: 'Widget' });
    uninstall();
    await synced(watching);
  });

  it('G4: a mandatory kind that is not served holds everything back, and says what to do', async () => {
    const watching = watch({ name: 'keys', resources: 'secretz' });
    await until(() => expect(problems).toHaveLength(1));
    expect(problems[0]).toMatchObject({
      severity: 'error',
      reason: 'ResourceNotServed',
      message: 'watchedResources.keys: the API server does not serve secretz in v1.',
      field: 'spec.watchedResources.keys',
    });
    expect(problems[0]?.nextStep).toContain('write secrets, which is served there');
    expect(watching.events).toStrictEqual([]);
  });

  it('a mandatory kind starts when its definition comes, and keeps its state when that goes', async () => {
    server.collection(`${WIDGETS}/widgets`, 'Widget').put('shop/a');
    const watching = widgets();
    await until(() => expect(problems).toHaveLength(1));
    await until(() => expect(server.watches).toBe(1));
    install();
    await synced(watching, 'shop/a');
    await until(() => expect(problems).toStrictEqual([]));
    uninstall();
    await until(() => expect(problems[0]?.reason).toBe('ResourceNotServed'));
    expect(Object.keys(watching.content)).toStrictEqual(['shop/a']);
    expect(watching.events.length).toBe(1);
  });

  it('the first version that is served is taken', async () => {
    server.collection(`${WIDGETS}/widgets`, 'Widget').put('shop/a');
    install();
    const watching = widgets({ apiVersions: ['example.com/v2', 'example.com/v1'] });
    await synced(watching, 'shop/a');
  });

  it('definitions are asked for by their metadata, and who may not list them still hears of kinds', async () => {
    server.fault = ({ path }) => (path === CRDS ? { type: 'status', status: 403 } : undefined);
    server.collection(`${WIDGETS}/widgets`, 'Widget').put('shop/a');
    install();
    const watching = widgets();
    await synced(watching, 'shop/a');
    uninstall(); // the watch finds that its resource is gone
    await until(() => expect(problems[0]?.reason).toBe('ResourceNotServed'));
    const [asked] = server.requests.filter(({ path }) => path === CRDS);
    expect(asked?.headers.accept).toContain('as=PartialObjectMetadataList');
  });

  it('a server that cannot be asked what it serves is a problem, until it can', async () => {
    server.collection('/api/v1/secrets', 'Secret').put('shop/a');
    server.fault = ({ verb }) => (verb === 'get' ? { type: 'status', status: 500 } : undefined);
    const watching = watch();
    await until(() => expect(problems[0]?.reason).toBe('DiscoveryFailing'));
    expect(watching.events).toStrictEqual([]);
    server.fault = () => undefined;
    await synced(watching, 'shop/a');
    await until(() => expect(problems).toStrictEqual([]));
  });
});

describe('rights', () => {
  it.for([
    ['list', undefined, ' in all namespaces', 'its ClusterRole'],
    ['list', 'shop', ' in namespace shop', 'to a Role bound in namespace shop'],
    ['watch', undefined, ' in all namespaces', 'its ClusterRole'],
  ] as const)(
    'a missing right to %s (%s) says what to add to which role',
    async ([verb, namespace, where, role]) => {
      server.collection('/api/v1/secrets', 'Secret').put('shop/a');
      server.fault = (request) =>
        request.verb === verb && request.path.endsWith('/secrets')
          ? { type: 'status', status: 403 }
          : undefined;
      const watching = watch({ namespaces: namespace === undefined ? [] : [namespace] });
      await until(() => expect(problems).toHaveLength(1));
      expect(problems[0]).toMatchObject({
        reason: 'WatchForbidden',
        message: `watchedResources.secrets: the controller may not ${verb} secrets${where}.`,
      });
      expect(problems[0]?.nextStep).toContain(
        'get, list and watch on resource secrets of API group ""',
      );
      expect(problems[0]?.nextStep).toContain(role);
      server.fault = () => undefined;
      await synced(watching, 'shop/a');
      await until(() => expect(problems).toStrictEqual([]));
    },
  );

  it('an API server that goes away is told of once, and its last state stays', async () => {
    server.collection('/api/v1/secrets', 'Secret').put('shop/a');
    const watching = watch();
    await synced(watching, 'shop/a');
    await server.close();
    await until(() => expect(problems.map(({ reason }) => reason)).toContain('WatchFailing'));
    expect(Object.keys(watching.content)).toStrictEqual(['shop/a']);
    await server.listen();
    await until(() => expect(problems).toStrictEqual([]));
    expect(watching.events.length).toBe(1);
  });

  it('problems end with their watch', async () => {
    const watching = watch({ resources: 'nothing' });
    await until(() => expect(problems).toHaveLength(1));
    watching.stop();
    await until(() => expect(problems).toStrictEqual([]));
  });
});

describe('selection', () => {
  it('R14: with namespaces nothing is asked for beyond them, and they start as one list', async () => {
    const model = server.collection('/api/v1/secrets', 'Secret');
    for (const key of ['shop/a', 'blog/a', 'other/a']) model.put(key);
    const watching = watch({ namespaces: ['shop', 'blog', 'empty', 'shop'] });
    await synced(watching, 'blog/a', 'shop/a');
    expect(watching.events.length).toBe(1);
    const paths = new Set(
      server.requests.map(({ path }) => path).filter((path) => path.endsWith('secrets')),
    );
    expect([...paths].sort()).toStrictEqual([
      '/api/v1/namespaces/blog/secrets',
      '/api/v1/namespaces/empty/secrets',
      '/api/v1/namespaces/shop/secrets',
    ]);
    await until(() => expect(server.watches).toBe(4));
    model.put('shop/b');
    model.put('other/b');
    model.remove('blog/a');
    await synced(watching, 'shop/a', 'shop/b');
  });

  it('R14: a re-list of one namespace leaves the others alone', async () => {
    const model = server.collection('/api/v1/secrets', 'Secret');
    for (const key of ['shop/a', 'shop/b', 'blog/a']) model.put(key);
    const watching = watch({ namespaces: ['shop', 'blog'] });
    await synced(watching, 'blog/a', 'shop/a', 'shop/b');
    await until(() => expect(server.watches).toBe(3));
    await server.close();
    model.remove('shop/a');
    model.put('shop/c');
    model.compact();
    await server.listen();
    await synced(watching, 'blog/a', 'shop/b', 'shop/c');
    expect(watching.replaced).toBe(1);
  });

  it('a kind without namespaces is asked for as a whole', async () => {
    server.collection('/api/v1/namespaces', 'Namespace').put('/shop');
    const watching = watch({ name: 'ns', resources: 'namespaces', namespaces: ['shop'] });
    await synced(watching, '/shop');
  });

  it('selectors the server knows are left to it, others are applied here; who leaves is deleted', async () => {
    const model = server.collection('/api/v1/secrets', 'Secret');
    const labels = { app: 'web' };
    model.put('shop/a', { labels, data: { tier: 'one' } });
    model.put('shop/b', { labels, data: { tier: 'two' } });
    model.put('shop/c', { data: { tier: 'one' } });
    const watching = watch({ labelSelector: labels, fieldSelector: { 'data.tier': 'one' } });
    await synced(watching, 'shop/a');
    const [list] = server.requests.filter(({ path }) => path === '/api/v1/secrets');
    expect(list?.query.get('labelSelector')).toBe('app=web');
    expect(list?.query.has('fieldSelector')).toBe(false);
    await until(() => expect(server.watches).toBe(2));
    model.put('shop/b', { labels, data: { tier: 'one' } });
    await synced(watching, 'shop/a', 'shop/b');
    model.put('shop/a', { labels, data: { tier: 'two' } });
    await synced(watching, 'shop/b');
    model.put('shop/b', { data: { tier: 'one' } });
    await synced(watching);
  });

  it('metadata.name is left to the server, with its special characters escaped', async () => {
    server.collection('/api/v1/secrets', 'Secret').put('shop/a');
    const watching = watch({ fieldSelector: { 'metadata.name': 'a' } });
    await synced(watching, 'shop/a');
    const [list] = server.requests.filter(({ path }) => path === '/api/v1/secrets');
    expect(list?.query.get('fieldSelector')).toBe('metadata.name=a');
    watch({ fieldSelector: { type: 'a,b=c' } });
    await until(() =>
      expect(server.requests.map(({ query }) => query.get('fieldSelector'))).toContain(
        'type=a\\,b\\=c',
      ),
    );
  });

  it('ignored fields are dropped on arrival, but for those that a selector looks at', async () => {
    const model = server.collection('/api/v1/secrets', 'Secret');
    model.put('shop/a', { data: { tier: 'one', big: 'x' }, status: { ready: true } });
    const watching = watch({
      fieldSelector: { 'data.tier': 'one' },
      ignoreFields: ['status', 'data.tier', 'data.big'],
    });
    await synced(watching, 'shop/a');
    expect(watching.get('shop/a')).not.toHaveProperty('status');
    expect(watching.get('shop/a')?.['data']).toStrictEqual({ tier: 'one' });
    model.put('shop/b', { data: { tier: 'one', big: 'y' } });
    await synced(watching, 'shop/a', 'shop/b');
    expect(watching.get('shop/b')?.['data']).toStrictEqual({ tier: 'one' });
  });
});

it('S23: every list-watch tells what happens to it under its own name', async () => {
  server.collection('/api/v1/secrets', 'Secret').put('shop/a');
  const watching = watch({ namespaces: ['shop'] });
  await until(() => expect(signals.at(-1)?.[1].type).toBe('Watching'));
  watching.stop();
  expect(new Set(signals.map(([name]) => name)).size).toBe(1);
  expect(signals[0]?.[0]).toStrictEqual({ resource: 'secrets', namespace: 'shop' });
  expect(signals.map(([, { type }]) => type)).toStrictEqual([
    'Listing',
    'Received',
    'Synced',
    'Received',
    'Watching',
    'Stopped',
  ]);
});
