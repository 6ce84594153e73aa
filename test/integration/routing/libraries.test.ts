import { spawnSync } from 'node:child_process';
import { connect as connectPlain } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { startEcho, type EchoBackend } from '../../support/echo.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { makeKeyPair, type TestKeyPair } from '../../support/key-pairs.ts';
import { ingress, service, slice, tlsSecret } from '../../support/objects.ts';
import { startProxied, type Proxied } from '../../support/proxied.ts';

/** Something in every hook, and every setting away from its default. */
const config: KubeObject = {
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  metadata: { namespace: 'default', name: 'haptic' },
  spec: {
    templatingSettings: {
      extraContext: { healthChecks: { enabled: true, interval: '500ms' }, balance: 'leastconn' },
    },
    templateSnippets: {
      'global-600-mine': { template: '    tune.bufsize 32768\n' },
      'defaults-600-mine': { template: '    option contstats\n' },
      'sections-600-mine': { template: 'userlist staff\n    user me insecure-password x\n\n' },
      'stats-600-mine': {
        template: '    http-request return status 204 if { path /mine }\n',
      },
      'frontend-http-600-mine': { template: '    maxconn 400\n' },
      'frontend-https-600-mine': { template: '    maxconn 400\n' },
      'request-600-mine': { template: '    http-request set-header X-Mine yes\n' },
      'routed-600-mine': {
        template: '    http-request deny deny_status 403 if { path_beg /forbidden }\n',
      },
      'response-600-mine': { template: '    http-response set-header X-Answered yes\n' },
      'frontends-600-mine': {
        template:
          'frontend my-frontend from haptic-base\n    bind abns@mine-{{ extraContext.httpPort }}\n    http-request deny\n\n',
      },
      'profile-600-mine': { template: '    option prefer-last-server\n' },
      'backend-600-mine': {
        template: '    http-request set-header X-Team {{ route.object.namespace | header }}\n',
      },
      'backends-600-mine': {
        template: 'backend my-backend from haptic-base\n    http-request deny\n\n',
      },
    },
  },
};

const longHost = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.example.org`;
const longPath = `/${'p'.repeat(1000)}`;

let echo: EchoBackend;
let defaultPair: TestKeyPair;
let ownPair: TestKeyPair;

beforeAll(async () => {
  [echo, defaultPair, ownPair] = await Promise.all([
    startEcho('web'),
    makeKeyPair(['default.invalid']),
    makeKeyPair(['secure.example.com', '*.wild.example.com']),
  ]);
});

afterAll(async () => {
  await echo.stop();
});

const world = (): readonly KubeObject[] => [
  ingress('plain', {
    rules: [
      ['plain.example.com', '/', 'web:80'],
      ['plain.example.com', '/empty', 'empty:80'],
      [longHost, longPath, 'web:80'],
      [longHost, `${longPath}/x`, 'empty:80', 'Exact'],
      ['six.example.com', '/', 'six:80'],
    ],
  }),
  ingress('secure', {
    rules: [
      ['secure.example.com', '/', 'web:80'],
      ['*.wild.example.com', '/', 'web:80'],
    ],
    tls: [['own', 'secure.example.com', '*.wild.example.com']],
  }),
  ingress('rest', { rules: [['', '/only-here', 'web:80']] }),
  service('web'),
  service('empty'),
  service('six'),
  slice('web', { ports: { '': echo.port }, endpoints: ['127.0.0.1'] }),
  slice('six', { ports: { '': 9 }, addressType: 'IPv6', endpoints: ['fd00::1'] }),
  tlsSecret('own', { 'tls.crt': ownPair.certificate, 'tls.key': ownPair.key }),
];

const handshake = (
  port: number,
  servername: string,
  options: { readonly maxVersion?: 'TLSv1.1' | 'TLSv1.2' } = {},
): Promise<{ names: string | undefined; alpn: string | false | null; version: string | null }> =>
  new Promise((resolve, reject) => {
    const socket: TLSSocket = connectTls({
      port,
      host: '127.0.0.1',
      servername,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
      minVersion: 'TLSv1',
      ciphers: 'ALL:@SECLEVEL=0',
      ...options,
    });
    socket.on('error', reject);
    socket.on('secureConnect', () => {
      const names = socket.getPeerCertificate().subjectaltname;
      resolve({ names, alpn: socket.alpnProtocol, version: socket.getProtocol() });
      socket.destroy();
    });
  });

const raw = (port: number, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = connectPlain(port, '127.0.0.1', () => socket.write(text));
    socket.on('data', (part: Buffer) => parts.push(part));
    socket.on('error', reject);
    socket.on('end', () => resolve(Buffer.concat(parts).toString()));
  });

describe.each(haproxyVersions())('the libraries on HAProxy $version', ({ binary }) => {
  let proxied: Proxied;

  beforeAll(async () => {
    proxied = await startProxied(binary, defaultPair, config);
    const { problems } = await proxied.serve(world());
    expect(problems).toStrictEqual([]);
  });

  afterAll(async () => {
    await proxied.stop();
  });

  test('pass the checker without a warning, with something in every hook', () => {
    const { status, stdout, stderr } = spawnSync(binary, ['-c', '-dr', '-f', 'haproxy.cfg'], {
      cwd: proxied.directory,
      encoding: 'utf8',
    });
    expect(`${stdout}${stderr}`).not.toMatch(/\[(?:WARNING|ALERT)\]/);
    expect(status).toBe(0);
  });

  test('replace what a client says about itself, and run the hooks around a request', async () => {
    const { status, echo: asked } = await proxied.get({
      scheme: 'http',
      host: 'plain.example.com:8080',
      path: '/x?y=1',
      headers: {
        'x-forwarded-for': '6.6.6.6',
        'x-forwarded-proto': 'https',
        'x-forwarded-server': 'evil',
        'x-real-ip': '6.6.6.6',
        forwarded: 'for=6.6.6.6',
      },
    });
    expect(status).toBe(200);
    expect(asked?.path).toBe('/x?y=1');
    expect(asked?.headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'plain.example.com:8080',
      'x-real-ip': '127.0.0.1',
      'x-mine': 'yes',
      'x-team': 'default',
      host: 'plain.example.com:8080',
    });
    expect(asked?.headers).not.toHaveProperty('x-forwarded-server');
    expect(asked?.headers).not.toHaveProperty('forwarded');
  });

  test('say https on TLS', async () => {
    const request = { scheme: 'https', host: 'secure.example.com', path: '/' } as const;
    const { echo: asked } = await proxied.get(request);
    expect(asked?.headers).toMatchObject({ 'x-forwarded-proto': 'https' });
  });

  test.each<[string, string, number, string]>([
    ['plain.example.com', '/empty', 503, 'No server is available'],
    ['six.example.com', '/', 503, 'No server is available'],
    ['plain.example.com', '/forbidden', 403, 'not allowed'],
    ['nobody.example.com', '/', 404, 'Nothing is served'],
  ])('answer %s%s with %i and the page of its file', async (host, ...[path, status, text]) => {
    const answer = await proxied.get({ scheme: 'http', host, path });
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(text);
  });

  test('route hosts and paths at the greatest length', async () => {
    const ask = async (path: string): Promise<number> =>
      (await proxied.get({ scheme: 'http', host: longHost, path })).status;
    expect(await ask(`${longPath}/deeper`)).toBe(200);
    expect(await ask(`${longPath}/x`)).toBe(503);
    expect(await ask(`${longPath}y`)).toBe(404);
  });

  test.each<[string, string, number | RegExp]>([
    ['HTTP/1.0 without a host', 'GET /only-here HTTP/1.0\r\n\r\n', 200],
    [
      'a host that is the key of everything',
      'GET /only-here HTTP/1.1\r\nHost: *\r\nConnection: close\r\n\r\n',
      200,
    ],
    [
      'a trailing dot',
      'GET / HTTP/1.1\r\nHost: plain.example.com.\r\nConnection: close\r\n\r\n',
      200,
    ],
    [
      'an absolute URI',
      'GET http://plain.example.com/x HTTP/1.1\r\nHost: plain.example.com\r\nConnection: close\r\n\r\n',
      200,
    ],
    ['an IPv6 host', 'GET /only-here HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n', 200],
    [
      'an asterisk',
      'OPTIONS * HTTP/1.1\r\nHost: plain.example.com\r\nConnection: close\r\n\r\n',
      200,
    ],
    [
      'a slash in the host',
      'GET / HTTP/1.1\r\nHost: plain.example.com/empty\r\nConnection: close\r\n\r\n',
      /^HTTP\/1\.1 4\d\d/,
    ],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: plain.example.com\r\nHost: x.org\r\n\r\n', 400],
  ])('answer %s', async (_name, request, status) => {
    const answer = await raw(proxied.httpPort, request);
    const pattern = typeof status === 'number' ? new RegExp(`^HTTP/1\\.[01] ${status} `) : status;
    expect(answer).toMatch(pattern);
  });

  test.each([
    ['secure.example.com', 'secure.example.com'],
    ['x.wild.example.com', 'secure.example.com'],
    ['plain.example.com', 'default.invalid'],
    ['other.org', 'default.invalid'],
  ])('serve server name %s with the certificate for %s', async (name, certificate) => {
    const { names, alpn, version } = await handshake(proxied.httpsPort, name);
    expect(names).toContain(`DNS:${certificate}`);
    expect({ alpn, version }).toStrictEqual({ alpn: 'h2', version: 'TLSv1.3' });
  });

  test('accept TLS 1.2 and refuse TLS 1.1', async () => {
    const { version } = await handshake(proxied.httpsPort, 'x.org', { maxVersion: 'TLSv1.2' });
    expect(version).toBe('TLSv1.2');
    const old = handshake(proxied.httpsPort, 'x.org', { maxVersion: 'TLSv1.1' });
    await expect(old).rejects.toThrow();
  });

  test('answer health, readiness and metrics beside the traffic', async () => {
    const base = `http://127.0.0.1:${proxied.statsPort}`;
    expect(await (await fetch(`${base}/healthz`)).text()).toBe('ok');
    expect((await fetch(`${base}/ready`)).status).toBe(200);
    expect((await fetch(`${base}/mine`)).status).toBe(204);
    expect((await fetch(`${base}/`)).status).toBe(404);
    expect(await (await fetch(`${base}/metrics`)).text()).toContain(
      'haproxy_server_status{proxy="default_web_80",server="ep-127-0-0-1-',
    );
  });

  test('write one line of JSON for each request, whatever a client sends', async () => {
    const path = '/log"line\\%5bx';
    await raw(
      proxied.httpPort,
      `GET ${path} HTTP/1.1\r\nHost: "q".example.com\r\nConnection: close\r\n\r\n`,
    );
    await proxied.get({ scheme: 'http', host: 'plain.example.com', path: '/logged' });
    const line = await waitFor(() => {
      const lines = proxied.haproxy.output().split('\n');
      return lines.find((text) => text.includes('"/logged"'));
    });
    expect(JSON.parse(line)).toMatchObject({
      level: 'info',
      client: '127.0.0.1',
      frontend: 'haptic-http',
      backend: 'default_web_80',
      server: `ep-127-0-0-1-${echo.port}`,
      method: 'GET',
      host: 'plain.example.com',
      path: '/logged',
      status: 200,
    });
    const logged = proxied.haproxy
      .output()
      .split('\n')
      .filter((text) => text.startsWith('{'));
    for (const text of logged) expect(() => JSON.parse(text) as unknown).not.toThrow();
  });

  test('check servers where it is switched on', async () => {
    const down = 'haproxy_server_status{proxy="default_six_80",server="ep-fd00--1-9",state="UP"} 0';
    await waitFor(
      async () =>
        (await (await fetch(`http://127.0.0.1:${proxied.statsPort}/metrics`)).text()).includes(
          down,
        ),
      { timeoutMs: 20_000, what: 'the server that cannot be reached to be down' },
    );
  });
});
