import { beforeAll, describe, expect, test } from 'vitest';
import type { RouteModel } from '../../../src/routing/model.ts';
import { createRouting, type RoutingSettings } from '../../../src/routing/routing.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { inspectKeyPair } from '../../../src/streams/key-pair.ts';
import { makeKeyPair, type TestKeyPair } from '../../support/key-pairs.ts';
import { changed, ingress, snapshotOf, tlsSecret } from '../../support/objects.ts';

let pair: TestKeyPair;
let other: TestKeyPair;

beforeAll(async () => {
  [pair, other] = await Promise.all([
    makeKeyPair(['a.example.com']),
    makeKeyPair(['b.example.com']),
  ]);
});

const settings: RoutingSettings = {
  ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
  standalone: true,
  inspectKeyPair,
};

const secret = (
  name: string,
  { certificate, key }: TestKeyPair,
  namespace = 'default',
): KubeObject => tlsSecret(name, { 'tls.crt': certificate, 'tls.key': key }, namespace);

const web = (words: Parameters<typeof ingress>[1] = {}): KubeObject =>
  ingress('web', {
    rules: [['a.example.com', '/', 'web:80']],
    tls: [['cert', 'a.example.com']],
    ...words,
  });

const route = (objects: readonly KubeObject[]): RouteModel =>
  createRouting(settings).route(snapshotOf(objects));

const tlsProblems = (model: RouteModel): RouteModel['problems'] =>
  model.problems.filter(({ reason }) => reason !== 'ServiceNotFound');

describe('a TLS entry', () => {
  test('serves its Secret for its hosts and redirects plain HTTP there', () => {
    const model = route([web(), secret('cert', pair)]);
    const record = model.certificates.get('default_cert');
    expect(record).toMatchObject({
      hosts: ['a.example.com'],
      object: { kind: 'Secret', namespace: 'default', name: 'cert' },
    });
    expect(record?.pem).toMatch(/^-----BEGIN CERTIFICATE-----[^]+-----END PRIVATE KEY-----\n$/);
    expect(model.hosts.get('a.example.com')?.httpsRedirect).toBe(true);
    expect(tlsProblems(model)).toStrictEqual([]);
  });

  test.each<[string, readonly (readonly [string, ...string[]])[], boolean]>([
    ['without hosts covers all hosts of the rules', [['cert']], true],
    ['for a wildcard covers the host', [['cert', '*.example.com']], true],
    ['for another host does not', [['cert', 'b.example.com']], false],
    [
      'without a Secret redirects as well: the default certificate is served',
      [['', 'a.example.com']],
      true,
    ],
  ])('%s', (_name, tls, redirects) => {
    const model = route([web({ tls }), secret('cert', pair)]);
    expect(model.hosts.get('a.example.com')?.httpsRedirect).toBe(redirects);
    expect(tlsProblems(model)).toStrictEqual([]);
  });

  test('of a host that no rule has changes nothing for that host', () => {
    const thief = ingress('thief', {
      rules: [['mine.example.org', '/', 'x:80']],
      tls: [['cert', 'a.example.com']],
    });
    const model = route([web({ tls: [] }), thief, secret('cert', pair)]);
    expect(model.hosts.get('a.example.com')?.httpsRedirect).toBe(false);
  });

  test('reads stringData as the API server would', () => {
    const plain = { 'tls.crt': pair.certificate, 'tls.key': pair.key };
    const model = route([web(), { ...secret('cert', pair), data: {}, stringData: plain }]);
    expect(model.certificates.has('default_cert')).toBe(true);
  });

  test('with the default certificate in the settings there is a certificate called default', () => {
    const routing = createRouting({ ...settings, defaultCertificate: { pem: 'PEM' } });
    expect(routing.route(snapshotOf([])).certificates.get('default')).toStrictEqual({
      name: 'default',
      hosts: [],
      pem: 'PEM',
      object: undefined,
    });
  });
});

describe('a Secret that cannot be used is told once, the host stays with the default certificate', () => {
  const broken: readonly [string, string, () => readonly KubeObject[]][] = [
    ['missing', 'SecretNotFound', () => []],
    [
      'without a key',
      'IncompleteKeyPair',
      () => [tlsSecret('cert', { 'tls.crt': pair.certificate })],
    ],
    [
      'without a certificate',
      'IncompleteKeyPair',
      () => [tlsSecret('cert', { 'tls.key': pair.key })],
    ],
    [
      'with the key of another certificate',
      'InvalidKeyPair',
      () => [secret('cert', { certificate: pair.certificate, key: other.key })],
    ],
    [
      'of another type',
      'InvalidSecretType',
      () => [{ ...secret('cert', pair), type: 'kubernetes.io/dockerconfigjson' }],
    ],
    [
      'that is no certificate inside',
      'InvalidKeyPair',
      () => [
        secret('cert', {
          certificate: '-----BEGIN CERTIFICATE-----\nTk9UIE9ORQ==\n-----END CERTIFICATE-----\n',
          key: pair.key,
        }),
      ],
    ],
    [
      'that is not base64',
      'IncompleteKeyPair',
      () => [{ ...secret('cert', pair), data: { 'tls.crt': '***', 'tls.key': '***' } }],
    ],
    [
      'with a key that holds other text',
      'IncompleteKeyPair',
      () => [secret('cert', { certificate: pair.certificate, key: 'hunter2' })],
    ],
  ];

  test.each(broken)('%s', (_name, reason, objects) => {
    const model = route([web(), ...objects()]);
    const problems = tlsProblems(model);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({
      reason,
      severity: 'error',
      object: { kind: 'Ingress', namespace: 'default', name: 'web' },
      field: 'spec.tls[0].secretName',
    });
    expect(problems[0]?.message).toContain('Secret default/cert');
    expect(problems[0]?.nextStep).not.toBe('');
    expect(model.certificates.size).toBe(0);
    expect(model.hosts.get('a.example.com')?.httpsRedirect).toBe(true);
  });

  test.each(broken)('%s: nothing of the Secret is in a problem', (_name, _reason, objects) => {
    const text = JSON.stringify(route([web(), ...objects()]).problems);
    const secrets = [pair.key, other.key, 'hunter2', 'Tk9UIE9ORQ', 'NOT ONE'].map(
      (value) => value.split('\n')[1] ?? value,
    );
    for (const value of secrets) expect(text).not.toContain(value);
  });

  test('is served once it is mended, and the problem is gone', () => {
    const routing = createRouting(settings);
    const before = snapshotOf([web()]);
    expect(tlsProblems(routing.route(before))).toHaveLength(1);
    const after = routing.route(changed(before, [secret('cert', pair)]));
    expect(tlsProblems(after)).toStrictEqual([]);
    expect(after.certificates.has('default_cert')).toBe(true);
  });

  test('a rotated Secret is served anew, and no other record changes', () => {
    const routing = createRouting(settings);
    const before = snapshotOf([web(), secret('cert', pair)]);
    const first = routing.route(before);
    const second = routing.route(changed(before, [secret('cert', other)]));
    expect(second.certificates.get('default_cert')?.pem).not.toBe(
      first.certificates.get('default_cert')?.pem,
    );
    expect(second.hosts).toBe(first.hosts);
  });
});

describe('two Secrets for one host (R24)', () => {
  const claim = (name: string, namespace: string, created: string): KubeObject =>
    ingress(name, {
      namespace,
      created,
      rules: [['a.example.com', `/${name}`, 'web:80']],
      tls: [['cert', 'a.example.com']],
    });

  test('the older Ingress decides, the other is told and its certificate is not listed', () => {
    const model = route([
      claim('young', 'team-a', '2025-01-01T00:00:00Z'),
      claim('old', 'team-b', '2024-01-01T00:00:00Z'),
      secret('cert', pair, 'team-a'),
      secret('cert', other, 'team-b'),
    ]);
    expect(model.certificates.keys()).toStrictEqual(['team-b_cert']);
    expect(tlsProblems(model)).toMatchObject([
      {
        reason: 'CertificateConflict',
        object: { namespace: 'team-a', name: 'young' },
        field: 'spec.tls[0].secretName',
      },
    ]);
  });

  test('an Ingress without a rule for the host does not decide, however old it is', () => {
    const thief = ingress('thief', {
      namespace: 'team-a',
      created: '2020-01-01T00:00:00Z',
      rules: [['mine.example.org', '/', 'web:80']],
      tls: [['cert', 'a.example.com', 'mine.example.org']],
    });
    const model = route([
      thief,
      claim('owner', 'team-b', '2024-01-01T00:00:00Z'),
      secret('cert', pair, 'team-a'),
      secret('cert', other, 'team-b'),
    ]);
    expect(model.certificates.get('team-a_cert')?.hosts).toStrictEqual(['mine.example.org']);
    expect(model.certificates.get('team-b_cert')?.hosts).toStrictEqual(['a.example.com']);
  });

  test('who asks for the default certificate keeps it', () => {
    const owner = ingress('owner', {
      namespace: 'team-b',
      created: '2024-01-01T00:00:00Z',
      rules: [['a.example.com', '/', 'web:80']],
      tls: [['', 'a.example.com']],
    });
    const routing = createRouting({ ...settings, defaultCertificate: { pem: 'PEM' } });
    const young = claim('young', 'team-a', '2025-01-01T00:00:00Z');
    const before = snapshotOf([owner, young, secret('cert', pair, 'team-a')]);
    const model = routing.route(before);
    expect(model.certificates.keys()).toStrictEqual(['default']);
    expect(tlsProblems(model)).toMatchObject([{ reason: 'CertificateConflict' }]);
    const after = routing.route(changed(before, [], [owner]));
    expect(after.certificates.keys()).toStrictEqual(['default', 'team-a_cert']);
    expect(tlsProblems(after)).toStrictEqual([]);
  });

  test('a certificate served without hosts takes those it names, but from nobody', () => {
    const forAll = ingress('all', {
      namespace: 'team-a',
      created: '2020-01-01T00:00:00Z',
      defaultBackend: 'web:80',
      tls: [['cert']],
    });
    const owner = claim('owner', 'team-b', '2024-01-01T00:00:00Z');
    const routing = createRouting(settings);
    const before = snapshotOf([forAll, secret('cert', pair, 'team-a')]);
    const alone = routing.route(before);
    expect(alone.certificates.get('team-a_cert')?.hosts).toStrictEqual(['a.example.com']);
    expect(alone.hosts.get('*')?.httpsRedirect).toBe(true);
    const taken = changed(before, [owner, secret('cert', other, 'team-b')]);
    expect(routing.route(taken).certificates.keys()).toStrictEqual(['team-b_cert']);
    const back = routing.route(changed(taken, [], [owner]));
    expect(back.certificates.keys()).toStrictEqual(['team-a_cert']);
  });
});
