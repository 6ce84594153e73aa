import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { startEcho, type EchoBackend } from '../../support/echo.ts';
import { exampleConfig, exampleObjects } from '../../support/examples.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { makeKeyPair, type TestKeyPair } from '../../support/key-pairs.ts';
import { ingress } from '../../support/objects.ts';
import { startProxied, type Proxied, type ProxiedRequest } from '../../support/proxied.ts';

let shop: EchoBackend;
let legacy: EchoBackend;
let pair: TestKeyPair;

beforeAll(async () => {
  [shop, legacy, pair] = await Promise.all([
    startEcho('shop'),
    startEcho('legacy'),
    makeKeyPair(['default.invalid']),
  ]);
});

afterAll(async () => {
  await Promise.all([shop.stop(), legacy.stop()]);
});

/** The example with its endpoints where the echo backends are. */
const example = (): KubeObject[] =>
  exampleObjects('extending').map((object) => {
    if (object.kind === 'EndpointSlice')
      return { ...object, ports: [{ name: '', port: shop.port }] };
    if (object.kind !== 'StaticRoute') return object;
    return staticRoute(object.metadata.name, 'legacy.example.com');
  });

const staticRoute = (name: string, host: unknown, servers?: unknown): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'StaticRoute',
  metadata: { namespace: 'default', name },
  spec: { host, servers: servers ?? [{ address: '127.0.0.1', port: legacy.port }] },
});

const limited = (limit: string): KubeObject =>
  ingress('limited', {
    rules: [
      ['limited.example.com', '/', 'shop:80'],
      ['limited.example.com', '/exact', 'shop:80', 'Exact'],
    ],
    annotations: { 'example.com/max-body': limit },
  });

describe.each(haproxyVersions())('examples/extending on HAProxy $version', ({ binary }) => {
  let proxied: Proxied;

  beforeAll(async () => {
    proxied = await startProxied(binary, pair, exampleConfig('extending'));
  });

  afterAll(async () => {
    await proxied.stop();
  });

  const post = async (
    host: string,
    path: string,
    request: Partial<ProxiedRequest> = {},
  ): Promise<number> => (await proxied.get({ scheme: 'http', host, path, ...request })).status;

  test('S24: an annotation limits the bodies of its own Ingress, and of no other', async () => {
    await proxied.serve(example());
    const [small, large] = ['x'.repeat(2_048), 'x'.repeat(2_049)];
    expect(await post('shop.example.com', '/', { body: small })).toBe(200);
    expect(await post('shop.example.com', '/', { body: large })).toBe(413);
    expect(await post('shop.example.com', '/media/film', { body: large })).toBe(200);
    expect(await post('shop.example.com', '/mediathek', { body: large })).toBe(413);
    expect(await post('shop.example.com', '/')).toBe(200);
    expect(
      await proxied.get({ scheme: 'https', host: 'shop.example.com', path: '/', body: large }),
    ).toMatchObject({ status: 413 });
  });

  test('S24: a body of unknown length is refused where there is a limit', async () => {
    await proxied.serve(example());
    const request = { body: 'x', headers: { 'transfer-encoding': 'chunked' } };
    expect(await post('shop.example.com', '/', request)).toBe(400);
    expect(await post('shop.example.com', '/media', request)).toBe(200);
  });

  test('S24: neither does HTTP/2 hide the length of a body', async () => {
    await proxied.serve(example());
    const client = connect(`https://127.0.0.1:${proxied.httpsPort}`, {
      ...{ rejectUnauthorized: false, servername: 'shop.example.com' },
    });
    const request = client.request({
      ...{ ':method': 'POST', ':path': '/', ':authority': 'shop.example.com' },
    });
    request.write('x');
    const [headers] = (await once(request, 'response')) as [IncomingHttpHeaders];
    client.destroy();
    expect(headers[':status']).toBe(400);
  });

  test('S24: a limit of an exact path counts there', async () => {
    await proxied.serve([...example(), limited('1k')]);
    expect(await post('limited.example.com', '/exact', { body: 'x'.repeat(1_025) })).toBe(413);
    expect(await post('limited.example.com', '/exact', { body: 'x'.repeat(1_024) })).toBe(200);
  });

  test('S24: a limit of an exact path that ends in a slash counts there, and not without it', async () => {
    const rules = [['limited.example.com', '/a/', 'shop:80', 'Exact']] as const;
    await proxied.serve([...example(), limited('1k'), ingress('unlimited', { rules })]);
    const body = 'x'.repeat(1_025);
    expect(await post('limited.example.com', '/a', { body })).toBe(413);
    expect(await post('limited.example.com', '/a/', { body })).toBe(200);
  });

  test('S24: a limit counts for the default backend of its Ingress', async () => {
    const annotations = { 'example.com/max-body': '1k' };
    await proxied.serve([
      ...example(),
      ingress('all', { defaultBackend: 'shop:80', annotations }),
      ingress('own', {
        ...{ rules: [['own.example.com', '/free', 'shop:80']], defaultBackend: 'shop:80' },
        annotations,
      }),
      ingress('free', { rules: [['own.example.com', '/free/more', 'shop:80']] }),
    ]);
    const [small, large] = ['x'.repeat(1_024), 'x'.repeat(1_025)];
    for (const host of ['own.example.com', 'any.example.org']) {
      expect(await post(host, '/a', { body: small })).toBe(200);
      expect(await post(host, '/a', { body: large })).toBe(413);
    }
    expect(await post('own.example.com', '/free/more', { body: large })).toBe(200);
    expect(await post('shop.example.com', '/media', { body: large })).toBe(200);
  });

  test.each(['', 'lots', '0', '10 m', '1k\n    bind :1', '-1', '99999999999999999999'])(
    'R7, R18: the limit %j is told, and refuses bodies',
    async (limit) => {
      const { problems } = await proxied.serve([...example(), limited(limit)]);
      expect(problems).toMatchObject([
        {
          ...{ severity: 'error', reason: 'InvalidMaxBody' },
          object: { kind: 'Ingress', namespace: 'default', name: 'limited' },
        },
      ]);
      expect(await post('limited.example.com', '/', { body: 'x' })).toBe(413);
      expect(await post('limited.example.com', '/')).toBe(200);
      expect(await post('shop.example.com', '/', { body: 'x' })).toBe(200);
    },
  );

  test('S24: a resource of one’s own is a source of routes, and has a status', async () => {
    const { statuses } = await proxied.serve(example());
    const answer = await proxied.get({ scheme: 'http', host: 'legacy.example.com', path: '/a' });
    expect(answer.echo?.name).toBe('legacy');
    expect(statuses).toMatchObject([
      { object: { kind: 'StaticRoute', name: 'legacy' }, status: { accepted: true } },
    ]);
    await proxied.serve(example().filter(({ kind }) => kind !== 'StaticRoute'));
    expect(await post('legacy.example.com', '/a')).toBe(404);
  });

  test('S24: an Ingress comes before a StaticRoute for the same host', async () => {
    await proxied.serve([...example(), staticRoute('shop', 'shop.example.com')]);
    const answer = await proxied.get({ scheme: 'http', host: 'shop.example.com', path: '/' });
    expect(answer.echo?.name).toBe('shop');
  });

  test.each([
    ['another StaticRoute has this host', 'legacy.example.com', undefined],
    ['spec.host is no DNS name', 'a b\n.example.com', undefined],
    ['spec.host is no DNS name', { x: 1 }, undefined],
    ['spec.host is no DNS name', undefined, undefined],
    ['spec.servers is no list of servers', 'new.example.com', []],
    ['spec.servers is no list of servers', 'new.example.com', 'none'],
    ['an address in spec.servers is no IPv4 address', 'new.example.com', [{ port: 1 }]],
    [
      'an address in spec.servers is no IPv4 address',
      'new.example.com',
      [{ address: '999.1.1.1', port: 1 }],
    ],
    [
      'a port in spec.servers is no port',
      'new.example.com',
      [{ address: '192.0.2.1', port: '80 check' }],
    ],
    ['a port in spec.servers is no port', 'new.example.com', [{ address: '192.0.2.1', port: 8.5 }]],
  ])('R6, R18: a StaticRoute is left out: %s (%j, %j)', async (message, host, servers) => {
    const wrong = staticRoute('zebra', host, servers);
    const { problems, statuses } = await proxied.serve([...example(), wrong]);
    expect(problems).toMatchObject([
      { reason: 'InvalidStaticRoute', object: { kind: 'StaticRoute', name: 'zebra' } },
    ]);
    expect(problems[0]?.message).toContain(message);
    expect(statuses[1]).toMatchObject({ object: { name: 'zebra' }, status: { accepted: false } });
    const answer = await proxied.get({ scheme: 'http', host: 'legacy.example.com', path: '/' });
    expect(answer.echo?.name).toBe('legacy');
  });
});
