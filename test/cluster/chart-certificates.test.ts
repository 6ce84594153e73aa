import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ofKind, present, type Rendered, rendered, type RenderWords } from '../support/chart.ts';

const DAY_MS = 24 * 3_600_000;
const NOT_AFTER = 'haproxy-haptic.org/not-after';

interface Pair {
  readonly certificate: X509Certificate;
  readonly pem: string;
  readonly bundle: string;
  readonly secret: Rendered & { readonly data?: Readonly<Record<string, string>> };
}

const decoded = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString();

const pairs = (objects: readonly Rendered[]): Readonly<Record<string, Pair>> =>
  Object.fromEntries(
    ofKind(objects, 'Secret').map((secret) => {
      const { data = {} } = secret;
      const pem = decoded(data['tls.crt']);
      const certificate = new X509Certificate(pem);
      return [secret.metadata.name, { certificate, pem, bundle: decoded(data['ca.crt']), secret }];
    }),
  );

/** Secrets that an earlier release left, at an API server that helm asks for them. */
const left = new Map<string, unknown>();
const folder = mkdtempSync(join(tmpdir(), 'haptic-chart-'));
const kubeconfig = join(folder, 'kubeconfig');
let server: Server;

const answers = (path: string): unknown => {
  if (path === '/api/v1') {
    const secrets = {
      name: 'secrets',
      singularName: '',
      namespaced: true,
      kind: 'Secret',
      verbs: [],
    };
    return { kind: 'APIResourceList', groupVersion: 'v1', resources: [secrets] };
  }
  return left.get(path.replace('/api/v1/namespaces/haptic/secrets/', ''));
};

beforeAll(async () => {
  server = createServer((request, response) => {
    const found = answers(new URL(request.url ?? '', 'http://localhost').pathname);
    const missing = {
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'NotFound',
      code: 404,
    };
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? missing));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      users: [{ name: 'u', user: {} }],
      'current-context': 'c',
    }),
  );
});

afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

beforeEach(() => {
  left.clear();
});

/** The chart installed, or upgraded over what is left of the last time. */
const release = async (words: RenderWords = {}): Promise<Readonly<Record<string, Pair>>> => {
  const objects = await rendered({ ...words, kubeconfig });
  for (const secret of ofKind(objects, 'Secret')) left.set(secret.metadata.name, secret);
  return pairs(objects);
};

/** As if the certificate in a Secret ended so many days from now. */
const ages = (name: string, daysLeft: number): void => {
  const secret = left.get(name) as Rendered;
  const end = new Date(Date.now() + daysLeft * DAY_MS).toISOString().replace(/\.\d+Z$/, 'Z');
  const annotations = { ...secret.metadata.annotations, [NOT_AFTER]: end };
  left.set(name, { ...secret, metadata: { ...secret.metadata, annotations } });
};

const AGENT = ['haptic-agent-ca', 'haptic-agent-server', 'haptic-agent-client'];

describe('certificates at install', () => {
  test('are one for each side, by one CA, on an elliptic curve', async () => {
    const made = await release();
    const [ca, agent, controller] = AGENT.map((name) => present(made[name]));
    expect(ca?.certificate.ca).toBe(true);
    for (const { certificate, bundle } of [present(agent), present(controller)]) {
      expect(certificate.ca).toBe(false);
      expect(certificate.verify(present(ca).certificate.publicKey)).toBe(true);
      expect(certificate.publicKey.asymmetricKeyType).toBe('ec');
      expect(bundle).toBe(ca?.pem);
    }
    expect(agent?.certificate.subjectAltName).toBe('DNS:haptic-agent');
    expect(controller?.certificate.subjectAltName).toBe('DNS:haptic-controller');
  });

  test('say when they end', async () => {
    for (const { certificate, secret } of Object.values(await release())) {
      const told = Date.parse(present(secret.metadata.annotations?.[NOT_AFTER]));
      expect(Math.abs(told - certificate.validToDate.getTime())).toBeLessThan(60_000);
      expect(told).toBeGreaterThan(Date.now() + 1_000 * DAY_MS);
    }
  });

  test('have the names and days of the values', async () => {
    const made = await release({
      set: {
        'agent.tls.serverName': 'agent.edge',
        'agent.tls.serverSecretName': 'agent',
        'agent.tls.certValidityDays': 90,
        'agent.tls.renewBeforeDays': 30,
      },
    });
    const agent = present(made['agent']).certificate;
    expect(agent.subjectAltName).toBe('DNS:agent.edge');
    expect(Math.round((agent.validToDate.getTime() - Date.now()) / DAY_MS)).toBe(90);
  });

  test('hold the key that belongs to them', async () => {
    for (const { certificate, secret } of Object.values(await release())) {
      const key = decoded(secret.data?.['tls.key']);
      expect(certificate.checkPrivateKey(createPrivateKey(key))).toBe(true);
    }
  });
});

describe('certificates at an upgrade', () => {
  test('stay as they are', async () => {
    const before = await release();
    const after = await release();
    for (const name of [...AGENT, 'default-ssl-cert']) {
      expect(after[name]?.secret, name).toStrictEqual(before[name]?.secret);
    }
  });

  test('are renewed by the same CA when little is left of them, the others stay', async () => {
    const before = await release();
    ages('haptic-agent-client', 364);
    ages('haptic-agent-server', 366);
    const after = await release();
    expect(after['haptic-agent-ca']?.secret).toStrictEqual(before['haptic-agent-ca']?.secret);
    expect(after['haptic-agent-server']?.pem).toBe(before['haptic-agent-server']?.pem);
    const renewed = present(after['haptic-agent-client']);
    expect(renewed.pem).not.toBe(before['haptic-agent-client']?.pem);
    const ca = present(after['haptic-agent-ca']).certificate;
    expect(renewed.certificate.verify(ca.publicKey)).toBe(true);
  });

  test('come from a new CA before the old one ends, and the old one stays trusted', async () => {
    const before = await release();
    ages('haptic-agent-ca', 1_094);
    const after = await release();
    const ca = present(after['haptic-agent-ca']);
    expect(ca.pem).not.toBe(before['haptic-agent-ca']?.pem);
    for (const name of ['haptic-agent-server', 'haptic-agent-client']) {
      const { certificate, bundle } = present(after[name]);
      expect(certificate.verify(ca.certificate.publicKey)).toBe(true);
      expect(bundle).toBe(`${ca.pem}${before['haptic-agent-ca']?.pem}`);
    }
  });

  test('are made anew for another name', async () => {
    const before = await release();
    const after = await release({ set: { 'agent.tls.clientName': 'controller.example.com' } });
    expect(after['haptic-agent-server']?.pem).toBe(before['haptic-agent-server']?.pem);
    expect(after['haptic-agent-client']?.certificate.subjectAltName).toBe(
      'DNS:controller.example.com',
    );
  });

  test('are made anew when somebody deleted one', async () => {
    const before = await release();
    left.delete('haptic-agent-server');
    const after = await release();
    expect(after['haptic-agent-ca']?.pem).toBe(before['haptic-agent-ca']?.pem);
    expect(after['haptic-agent-server']?.pem).not.toBe(before['haptic-agent-server']?.pem);
  });

  test('are all made anew when the CA is gone', async () => {
    const before = await release();
    left.delete('haptic-agent-ca');
    const after = await release();
    const ca = present(after['haptic-agent-ca']).certificate;
    for (const name of ['haptic-agent-server', 'haptic-agent-client']) {
      expect(after[name]?.pem).not.toBe(before[name]?.pem);
      expect(after[name]?.certificate.verify(ca.publicKey)).toBe(true);
    }
  });

  test('are left alone where cert-manager or the administrator makes them', async () => {
    const made = async (words: RenderWords): Promise<readonly string[]> =>
      Object.keys(pairs(await rendered(words))).sort();
    expect(await made({ values: 'cert-manager' })).toStrictEqual([]);
    expect(await made({ set: { 'agent.tls.managed': false } })).toStrictEqual(['default-ssl-cert']);
  });
});
