import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import { generate } from 'selfsigned';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KubeError, type KubeRequest } from '../../../src/kube/client.ts';
import { inClusterAccess, type KubeAccess } from '../../../src/kube/kube-access.ts';
import { kubeConfigAccess } from '../../../src/kube/kube-config.ts';
import { createKubeClient, type KubeClientOptions } from '../../../src/kube/undici-client.ts';
import { type Fault, FaultServer, statusObject } from '../../support/fault-server.ts';
import { plainAccess } from '../../support/watching.ts';

let server: FaultServer;
let directory: string;
const open: (() => unknown)[] = [];

beforeEach(async () => {
  server = await FaultServer.start();
  directory = await mkdtemp(join(tmpdir(), 'haptic-kube-'));
});

afterEach(async () => {
  for (const close of open.splice(0)) await close();
  await server.close();
  await rm(directory, { recursive: true });
});

const clientOf = (access: KubeAccess, limits: KubeClientOptions = {}) => {
  const client = createKubeClient(access, limits);
  open.push(() => client.close());
  return client;
};
const get = (
  request: Partial<KubeRequest> = {},
  limits: KubeClientOptions = {},
): Promise<unknown> =>
  result(
    clientOf(plainAccess(server.url), limits).request({ method: 'GET', path: '/x', ...request }),
  );
/** The last value, or undefined. */
const result = <T>(source$: Observable<T>): Promise<T | undefined> =>
  lastValueFrom(source$, { defaultValue: undefined });
const failure = async (work: Promise<unknown>): Promise<KubeError> => {
  const error: unknown = await work.catch((error: unknown) => error);
  expect(error).toBeInstanceOf(KubeError);
  return error as KubeError;
};
const answerWith = (fault: Fault): void => {
  server.fault = () => fault;
};

describe('requests', () => {
  it('verb, path, query, body and media types arrive as they are asked for', async () => {
    server.documents.set('/x', { kind: 'Thing' });
    const body = { metadata: { name: 'ä' } };
    const query = { fieldManager: 'haptic', force: true, limit: 5, labelSelector: 'a=b,c=d&e' };
    const request = { body, query, contentType: 'application/apply-patch+yaml' };
    expect(
      await get({ method: 'PATCH', ...request, accept: 'application/json;as=Table' }),
    ).toStrictEqual({
      kind: 'Thing',
    });
    const [asked] = server.requests;
    expect(asked).toMatchObject({ method: 'PATCH', path: '/x', body: JSON.stringify(body) });
    expect(Object.fromEntries(asked?.query ?? [])).toStrictEqual({
      fieldManager: 'haptic',
      force: 'true',
      limit: '5',
      labelSelector: 'a=b,c=d&e',
    });
    expect(asked?.headers).toMatchObject({
      'content-type': 'application/apply-patch+yaml',
      accept: 'application/json;as=Table',
    });
  });

  it('a path in the address of the server is put before every path', async () => {
    server.documents.set('/k8s/clusters/c-1/api/v1', { ok: true });
    const client = clientOf(plainAccess(`${server.url}/k8s/clusters/c-1/`));
    const answer = result(client.request({ method: 'GET', path: '/api/v1' }));
    expect(await answer).toStrictEqual({ ok: true });
  });

  it.for([
    [400, 'invalid'],
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'not-found'],
    [405, 'invalid'],
    [409, 'conflict'],
    [410, 'gone'],
    [415, 'invalid'],
    [422, 'invalid'],
    [418, 'invalid'],
    [429, 'too-many-requests'],
    [500, 'server'],
    [503, 'server'],
    [302, 'protocol'],
  ] as const)('status %i is the error %s, with what the server said', async ([status, code]) => {
    answerWith({ type: 'status', status, body: statusObject(status, 'so it is') });
    const error = await failure(get());
    expect(error).toMatchObject({ code, status, message: `GET /x: status ${status}: so it is` });
    expect(error.retryAfterMs).toBeUndefined();
  });

  it('a wait that the server asks for is in the error, from the header or from the Status', async () => {
    answerWith({ type: 'status', status: 429, headers: { 'retry-after': '7' } });
    expect((await failure(get())).retryAfterMs).toBe(7_000);
    const body = { ...statusObject(504, 'slow'), details: { retryAfterSeconds: 2 } };
    answerWith({ type: 'status', status: 504, body });
    expect((await failure(get())).retryAfterMs).toBe(2_000);
    answerWith({ type: 'status', status: 503, headers: { 'retry-after': 'soon' } });
    expect((await failure(get())).retryAfterMs).toBeUndefined();
  });

  it('a version that the server has not reached is as good as one it has forgotten', async () => {
    const details = { causes: [{ reason: 'ResourceVersionTooLarge' }] };
    answerWith({
      type: 'status',
      status: 504,
      body: { ...statusObject(504, 'too large'), details },
    });
    expect(await failure(get())).toMatchObject({ code: 'gone', status: 504 });
  });

  it('nothing of a body is in an error but the message of a Status', async () => {
    const secret = 'c2VjcmV0';
    answerWith({ type: 'raw', pieces: [`{"data":"${secret}`], then: 'end' });
    const broken = await failure(get());
    expect(broken).toMatchObject({ code: 'protocol', message: 'GET /x: the answer is not JSON' });
    answerWith({ type: 'status', status: 500, body: { data: secret } });
    const refused = await failure(get({ method: 'PUT', body: { data: secret } }));
    for (const error of [broken, refused]) {
      expect(`${error.stack ?? ''}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(
        secret,
      );
    }
  });

  it('an answer that is too long is refused', async () => {
    answerWith({ type: 'raw', pieces: [`"${'x'.repeat(2_000)}"`], then: 'stay' });
    expect(await failure(get({}, { maxAnswerBytes: 1_000 }))).toMatchObject({
      code: 'protocol',
      message: 'GET /x: the answer is longer than 1000 bytes',
    });
  });

  it('a server that does not answer, or stops in the middle, is given up after the time of the call', async () => {
    answerWith({ type: 'delay', ms: 60_000 });
    expect(await failure(get({ timeoutMs: 100 }))).toMatchObject({ code: 'timeout' });
    answerWith({ type: 'raw', pieces: ['{'], then: 'stay' });
    const error = await failure(get({ timeoutMs: 100 }));
    expect(error.message).toBe('GET /x: no answer in 100 ms');
  });

  it('a connection that breaks, or cannot be made, is unreachable', async () => {
    answerWith({ type: 'raw', pieces: ['{'], then: 'reset' });
    expect(await failure(get())).toMatchObject({ code: 'unreachable' });
    await server.close();
    expect((await failure(get())).message).toMatch(/^GET \/x: .*ECONNREFUSED/);
  });

  it('an empty answer is no value', async () => {
    answerWith({ type: 'raw', pieces: [], then: 'end' });
    expect(await get()).toBeUndefined();
  });
});

describe('streams', () => {
  const stream = (request: Partial<KubeRequest> = {}) =>
    clientOf(plainAccess(server.url)).stream({ method: 'GET', path: '/x', ...request });

  it('lines are parsed one by one, and the end in order completes', async () => {
    answerWith({ type: 'raw', pieces: ['{"n":1}\n{"n"', ':2}\n\n', '{"n":3}\n'], then: 'end' });
    expect(await result(stream().pipe(toArray()))).toStrictEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });

  it('the time of the call counts to the head; the head is told', async () => {
    answerWith({ type: 'silent' });
    const heads: string[] = [];
    const values: unknown[] = [];
    const subscription = stream({ timeoutMs: 50, onHead: () => heads.push('head') }).subscribe({
      next: (value) => values.push(value),
      error: (error: unknown) => values.push(error),
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    subscription.unsubscribe();
    expect({ heads, values }).toStrictEqual({ heads: ['head'], values: [] });
  });

  it('a server that connects and never answers is given up', async () => {
    const sockets: Socket[] = [];
    const mute = createTcpServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await new Promise((resolve) => mute.once('listening', resolve));
    open.push(() => {
      for (const socket of sockets) socket.destroy();
      mute.close();
    });
    const client = clientOf(
      plainAccess(`http://127.0.0.1:${(mute.address() as AddressInfo).port}`),
    );
    const work = result(client.stream({ method: 'GET', path: '/x', timeoutMs: 100 }));
    expect(await failure(work)).toMatchObject({ code: 'timeout' });
  });

  it('a consumer that leaves in the middle of a piece gets nothing more', async () => {
    answerWith({ type: 'raw', pieces: ['1\n2\n3\n4\n'], then: 'stay' });
    const values: unknown[] = [];
    await new Promise<void>((resolve) => {
      const subscription = stream().subscribe((value) => {
        values.push(value);
        if (value !== 2) return;
        subscription.unsubscribe();
        resolve();
      });
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(values).toStrictEqual([1, 2]);
  });

  it('closing the client ends what is open', async () => {
    answerWith({ type: 'silent' });
    const client = createKubeClient(plainAccess(server.url));
    const work = failure(result(client.stream({ method: 'GET', path: '/x' })));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await client.close();
    expect(await work).toMatchObject({ code: 'unreachable' });
  });
});

describe('credentials', () => {
  it('R14: a token that the kubelet replaces is used from the next request on', async () => {
    server.documents.set('/x', {});
    await writeFile(join(directory, 'token'), 'first\n');
    await writeFile(join(directory, 'ca.crt'), 'PEM');
    await writeFile(join(directory, 'namespace'), 'shop');
    const pod = { KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: '443' };
    const access = await inClusterAccess(pod, directory);
    expect(access).toMatchObject({ server: 'https://[::1]:443', namespace: 'shop' });
    const client = clientOf({
      ...plainAccess(server.url),
      credentials: async () => access!.credentials(),
    });
    const ask = () => result(client.request({ method: 'GET', path: '/x' }));
    await ask();
    await writeFile(join(directory, 'next'), 'second'); // the kubelet swaps a link, so the file is another one
    await rename(join(directory, 'next'), join(directory, 'token'));
    await ask();
    await rm(join(directory, 'token'));
    expect(await failure(ask())).toMatchObject({ code: 'unauthorized' });
    expect(server.requests.map(({ headers }) => headers.authorization)).toStrictEqual([
      'Bearer first',
      'Bearer second',
    ]);
    expect(await inClusterAccess({}, directory)).toBeUndefined();
  });

  it('certificates are checked, presented, and exchanged when they change', async () => {
    const issue = (name: string) =>
      generate([{ name: 'commonName', value: name }], {
        keyType: 'ec',
        extensions: [
          { name: 'basicConstraints', cA: true, critical: true },
          { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
        ],
      });
    const [own, alice, bob] = await Promise.all(['server', 'alice', 'bob'].map(issue));
    const seen: unknown[] = [];
    const tls = createTlsServer(
      { cert: own!.cert, key: own!.private, requestCert: true, ca: [alice!.cert, bob!.cert] },
      (request, response) => {
        if (request.socket instanceof TLSSocket) {
          seen.push(request.socket.getPeerCertificate().subject.CN);
        }
        response.end('{}');
      },
    ).listen(0, '127.0.0.1');
    await new Promise((resolve) => tls.once('listening', resolve));
    open.push(() => tls.close());
    const url = `https://127.0.0.1:${(tls.address() as AddressInfo).port}`;
    let user = alice!;
    const client = clientOf({
      ...plainAccess(url),
      credentials: async () => ({
        headers: {},
        tls: { ca: own!.cert, cert: user.cert, key: user.private },
      }),
    });
    const ask = () => result(client.request({ method: 'GET', path: '/' }));
    await ask();
    user = bob!;
    await ask();
    expect(seen).toStrictEqual(['alice', 'bob']);
    const stranger = clientOf(plainAccess(url)).request({ method: 'GET', path: '/' });
    expect(await failure(result(stranger))).toMatchObject({ code: 'unreachable' });
  });
});

describe('kubeconfig', () => {
  const write = async (user: unknown, cluster: unknown = {}): Promise<string> => {
    const file = join(directory, 'config');
    const config = {
      clusters: [{ name: 'c', cluster: { server: server.url, ...(cluster as object) } }],
      users: [{ name: 'u', user }],
      contexts: [
        { name: 'one', context: { cluster: 'c', user: 'u', namespace: 'shop' } },
        { name: 'lost', context: { cluster: 'nowhere', user: 'u' } },
      ],
      'current-context': 'one',
    };
    await writeFile(file, JSON.stringify(config)); // JSON is YAML
    return file;
  };

  it('server, namespace, authority and client certificate come from the context', async () => {
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const file = await write(
      { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') },
      {
        server: 'https://10.0.0.1:6443',
        'certificate-authority-data': base64('CA'),
        'tls-server-name': 'kube',
      },
    );
    const access = kubeConfigAccess({ file });
    expect(access).toMatchObject({ server: 'https://10.0.0.1:6443', namespace: 'shop' });
    const { tls, headers } = await access.credentials();
    expect(headers).toStrictEqual({});
    expect(tls.servername).toBe('kube');
    expect([tls.ca, tls.cert, tls.key].map(String)).toStrictEqual(['CA', 'CERT', 'KEY']);
  });

  it('a token, and one of an exec plugin, are headers', async () => {
    const cluster = { server: 'https://10.0.0.1:6443' };
    const plain = kubeConfigAccess({ file: await write({ token: 'abc' }, cluster) });
    expect((await plain.credentials()).headers).toStrictEqual({ authorization: 'Bearer abc' });
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'from-plugin' },
    };
    const exec = {
      apiVersion: credential.apiVersion,
      command: 'echo',
      args: [JSON.stringify(credential)],
      interactiveMode: 'Never',
    };
    const plugin = kubeConfigAccess({ file: await write({ exec }, cluster) });
    expect((await plugin.credentials()).headers).toStrictEqual({
      authorization: 'Bearer from-plugin',
    });
  });

  it('a context that leads nowhere, and a proxy, are refused with a way out', async () => {
    const file = await write({});
    expect(() => kubeConfigAccess({ file, context: 'lost' })).toThrow(
      /no context "lost".*--context/,
    );
    const proxied = await write({}, { 'proxy-url': 'http://proxy:3128' });
    expect(() => kubeConfigAccess({ file: proxied })).toThrow(/proxy-url/);
  });
});
