import { EMPTY, NEVER } from 'rxjs';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createDiscovery } from '../../../src/kube/discovery.ts';
import type { Notification } from '../../../src/ports.ts';
import { hasContent } from '../../../src/snapshot/content.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import { clusterSource } from '../../../src/streams/cluster-source.ts';
import { reconcile } from '../../../src/streams/reconcile.ts';
import { renderEngine } from '../../../src/streams/render-engine.ts';
import { FaultServer } from '../../support/fault-server.ts';
import { makeKeyPair, type TestKeyPair } from '../../support/key-pairs.ts';
import { ingress, tlsSecret } from '../../support/objects.ts';
import { libraryEngine, textsOf } from '../../support/rendered.ts';
import { plainClient } from '../../support/watching.ts';

const SECRETS = '/api/v1/secrets';
const INGRESSES = '/apis/networking.k8s.io/v1/ingresses';
const CERTIFICATE = 'certs/default_web.pem';

let pairs: readonly TestKeyPair[];
let server: FaultServer;
let notifications: Notification[];
let problems: readonly Problem[];
const open: (() => void | Promise<void>)[] = [];

beforeAll(async () => {
  pairs = await Promise.all([makeKeyPair(['web.example.com']), makeKeyPair(['web.example.com'])]);
});

const served = (name: string, kind: string, namespaced = true) => ({ name, kind, namespaced });

/** A Secret on the server, and what a GET of it says. */
const putSecret = (name: string, pair = 0): void => {
  const { certificate = '', key = '' } = pairs[pair] ?? {};
  const { type, data } = tlsSecret(name, { 'tls.crt': certificate, 'tls.key': key });
  const object = server.collection(SECRETS, 'Secret').put(`default/${name}`, { type, data });
  server.documents.set(`/api/v1/namespaces/default/secrets/${name}`, object);
};
const putIngress = (secret: string): void => {
  const { spec } = ingress('web', { rules: [['web.example.com', '/', 'web:80']] });
  const tls = [{ hosts: ['web.example.com'], secretName: secret }];
  server
    .collection(INGRESSES, 'Ingress')
    .put('default/web', { spec: { ...(spec as object), tls, ingressClassName: 'haptic' } });
};

beforeEach(async () => {
  server = await FaultServer.start();
  server.documents.set('/api/v1', {
    resources: [served('secrets', 'Secret'), served('services', 'Service')],
  });
  server.documents.set('/apis/networking.k8s.io/v1', {
    resources: [served('ingresses', 'Ingress'), served('ingressclasses', 'IngressClass', false)],
  });
  server.documents.set('/apis/discovery.k8s.io/v1', {
    resources: [served('endpointslices', 'EndpointSlice')],
  });
  for (const path of ['/api/v1/services', '/apis/networking.k8s.io/v1/ingressclasses']) {
    server.collection(path);
  }
  server.collection('/apis/discovery.k8s.io/v1/endpointslices');
  server.collection(INGRESSES, 'Ingress');
  for (const name of ['web', 'other']) putSecret(name);
});

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
  await server.close();
});

const start = async (): Promise<void> => {
  const engine = await libraryEngine({
    defaultPem: `${pairs[0]?.certificate ?? ''}\n${pairs[0]?.key ?? ''}`,
  });
  const client = plainClient(server.url);
  const source = clusterSource({
    client,
    discovery: createDiscovery(client, { crdChanges$: NEVER }),
    random: () => 0.999,
    problemsMs: 10,
  });
  notifications = [];
  const told = source.problems$.subscribe((list) => (problems = list));
  const running = reconcile(
    { ok: true, engine: renderEngine(engine) },
    {
      source,
      verdict$: NEVER,
      stored$: EMPTY,
      leader$: NEVER,
      check: () => NEVER,
      open: (source$) => source$,
    },
  ).subscribe((notification) => notifications.push(notification));
  open.push(
    () => client.close(),
    () => running.unsubscribe(),
    () => told.unsubscribe(),
  );
};

const failures = () =>
  notifications.flatMap((one) =>
    one.type === 'RenderFailed' ? one.failure.problems.map(({ message }) => message) : [],
  );
const renders = () => notifications.filter((one) => one.type === 'Rendered');
const certificate = (): string | undefined => {
  const render = renders().at(-1)?.render;
  return render && textsOf(render)[CERTIFICATE];
};
const bodyOf = (pair: number): string => pairs[pair]?.key.split('\n')[1] ?? 'nothing';
const gets = (): readonly string[] =>
  server.requests
    .filter(({ path }) => path.includes('/secrets/'))
    .map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
const held = (): readonly string[] => {
  const snapshot = notifications.findLast((one) => one.type === 'Snapshot')?.snapshot;
  const secrets = snapshot?.store('secrets').list() ?? [];
  return secrets.filter(hasContent).map(({ metadata }) => metadata.name);
};
const until = (check: () => void): Promise<void> =>
  vi.waitFor(check, { timeout: 10_000, interval: 10 });

describe('Secrets on demand', () => {
  it('are fetched when a route names them, before the first render, and no others (G4)', async () => {
    putIngress('web');
    await start();
    await until(() => expect(certificate() ?? '').toContain(bodyOf(0)));
    expect(gets()).toEqual(['web']);
    expect(held()).toEqual(['web']);
    expect(renders()).toHaveLength(1);
    const lists = server.requests.filter(({ path }) => path === SECRETS);
    expect(lists.map(({ headers }) => headers.accept)).toSatisfy((all: readonly string[]) =>
      all.every((accept) => accept.includes('PartialObjectMetadata')),
    );
  });

  it('reach the render when they change, with one GET and without a gap', async () => {
    putIngress('web');
    await start();
    await until(() => expect(certificate() ?? '').toContain(bodyOf(0)));
    putSecret('web', 1);
    await until(() => expect(certificate() ?? '').toContain(bodyOf(1)));
    expect(gets()).toEqual(['web', 'web']);
    expect(renders().map(({ render }) => render.files.has(CERTIFICATE))).not.toContain(false);
  });

  it('give their content back when nobody names them any more', async () => {
    putIngress('web');
    await start();
    await until(() => expect(held()).toEqual(['web']));
    putIngress('other');
    await until(() => expect(held()).toEqual(['other']));
    expect(gets()).toEqual(['web', 'other']);
  });

  it('are not fetched again after a new list of the same versions', async () => {
    putIngress('web');
    await start();
    await until(() => expect(held()).toEqual(['web']));
    server.resetConnections();
    putSecret('other');
    server.collection(SECRETS).compact();
    await until(() =>
      expect(
        server.requests.filter(({ verb, path }) => verb === 'list' && path === SECRETS),
      ).not.toHaveLength(1),
    );
    expect(held()).toEqual(['web']);
    expect(gets()).toEqual(['web']);
  });

  it('that may not be read are a problem of the route and of the role, and the render goes on', async () => {
    server.fault = ({ path }) =>
      path.endsWith('/secrets/web') ? { type: 'status', status: 403 } : undefined;
    putIngress('web');
    await start();
    await until(() => expect([failures(), renders().length]).toEqual([[], 1]));
    expect(certificate()).toBeUndefined();
    expect(renders()[0]?.render.problems).toContainEqual(
      expect.objectContaining({
        reason: 'SecretUnreadable',
        object: expect.objectContaining({ kind: 'Ingress', name: 'web' }) as unknown,
      }),
    );
    await until(() => expect(problems.map(({ reason }) => reason)).toEqual(['ContentForbidden']));
  });

  it('that a GET does not find are missing, before the watch says so', async () => {
    server.fault = ({ path }) =>
      path.endsWith('/secrets/web') ? { type: 'status', status: 404 } : undefined;
    putIngress('web');
    await start();
    await until(() => expect([failures(), renders().length]).toEqual([[], 1]));
    expect(renders()[0]?.render.problems.map(({ reason }) => reason)).toContain('SecretNotFound');
  });

  it('are asked for no more after the end', async () => {
    server.fault = ({ path }) => (path.endsWith('/secrets/web') ? { type: 'silent' } : undefined);
    putIngress('web');
    await start();
    await until(() => expect(gets()).toEqual(['web']));
    const before = notifications.length;
    for (const close of open.splice(0).reverse()) await close();
    putSecret('web', 1);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([gets(), notifications.length]).toEqual([['web'], before]);
  });
});
