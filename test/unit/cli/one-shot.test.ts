import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeKeyPair } from '../../support/key-pairs.ts';
import { ingress, service, slice, tlsSecret } from '../../support/objects.ts';
import { haptic } from '../../support/terminal.ts';

/** A directory of manifests, removed when the test ends. */
const directory = (objects: readonly object[]): string => {
  const path = mkdtempSync(join(tmpdir(), 'ho-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true, force: true });
  });
  writeFileSync(join(path, 'all.yaml'), objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  return path;
};

const rule = ingress('web', { rules: [['shop.example.com', '/', 'web:80']] });
const web = (...endpoints: readonly string[]) => [
  service('web'),
  slice('web', { endpoints }),
  rule,
];
const LOST = ingress('lost', { rules: [['lost.example.com', '/', 'nothing:80']] });
const WRONG = {
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  metadata: { name: 'haptic' },
  spec: { mapps: {} },
};
const LATEST = ['--haproxy-version', '3.4'];

describe('haptic render', () => {
  it('prints every file, and none of the secrets', async () => {
    const { certificate, key } = await makeKeyPair(['shop.example.com']);
    const secret = tlsSecret('tls', { 'tls.crt': certificate, 'tls.key': key });
    const secure = ingress('web', {
      rules: [['shop.example.com', '/', 'web:80']],
      tls: [['tls', 'shop.example.com']],
    });
    const { status, out, err } = await haptic([
      'render',
      directory([service('web'), slice('web'), secure, secret]),
      ...LATEST,
    ]);
    expect({ status, err }).toStrictEqual({ status: 0, err: '' });
    expect(out).toContain('### haproxy.cfg\n');
    expect(out).toContain('default-path origin /etc/haproxy\n');
    expect(out).toMatch(/^### maps\/hosts\.map\nshop\.example\.com shop\.example\.com\n/m);
    expect(out).toMatch(/^ {4}server \S+ 10\.0\.0\.1:8080 /m);
    expect(out).toMatch(/^### certs\/.*\.pem\n\(\d+ bytes, not shown\)$/m);
    expect(out).not.toContain('PRIVATE KEY');
    expect(out).not.toContain(key.split('\n')[1]);
  });

  it('takes base directory and ports', async () => {
    const { out } = await haptic([
      'render',
      directory(web('10.0.0.1')),
      ...LATEST,
      ...['--base-dir', '/run/x', '--http-port', '81', '--https-port', '444'],
    ]);
    expect(out).toContain('default-path origin /run/x\n');
    expect(out).toMatch(/^ {4}bind \S*:81$/m);
    expect(out).toMatch(/^ {4}bind \S*:444 ssl/m);
  });

  it('gives the same as JSON, and the same bytes each time', async () => {
    const path = directory(web('10.0.0.1'));
    const words = ['render', path, ...LATEST, '--output', 'json'];
    const { status, out } = await haptic(words);
    expect(status).toBe(0);
    const { planId, files } = JSON.parse(out) as {
      planId: string;
      files: { path: string; kind: string; size: number; content: string }[];
    };
    expect(planId).toMatch(/^[0-9a-f]{64}$/);
    const paths = files.map((file) => file.path);
    expect(paths).toStrictEqual(paths.toSorted());
    expect(files.find(({ path: name }) => name === 'haproxy.cfg')?.content).toContain('10.0.0.1');
    expect(files.find(({ kind }) => kind === 'cert')?.content).toMatch(/^\(\d+ bytes, not shown\)/);
    expect(await haptic(words)).toStrictEqual({ status, out, err: '' });
  });

  it('writes the files below --out, keys for this user alone', async () => {
    const out = join(directory([]), 'out');
    const printed = await haptic(['render', directory(web('10.0.0.1')), ...LATEST, '--out', out]);
    expect(printed.status).toBe(0);
    expect(printed.out).toContain(`${out}/haproxy.cfg\n`);
    expect(readFileSync(join(out, 'haproxy.cfg'), 'utf8')).toContain('10.0.0.1');
    const [, pem = ''] = /^(.*\/certs\/.*\.pem)$/m.exec(printed.out) ?? [];
    expect(statSync(pem).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(out, 'maps/hosts.map'), 'utf8')).toBe(
      'shop.example.com shop.example.com\n',
    );
  });

  it('tells what is wrong with the input, renders the rest, and fails with status 1', async () => {
    const { status, out, err } = await haptic([
      'render',
      directory([...web('10.0.0.1'), LOST]),
      ...LATEST,
    ]);
    expect(status).toBe(1);
    expect(out).toContain('10.0.0.1');
    expect(err).toMatch(
      /^error: Ingress default\/lost: spec\.rules\[0\].*: ServiceNotFound: .*\n$/,
    );
  });

  it('tells kinds that nobody watches as a warning, which fails nothing', async () => {
    const other = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } };
    const { status, err } = await haptic([
      'render',
      directory([...web('10.0.0.1'), other]),
      ...LATEST,
    ]);
    expect(status).toBe(0);
    expect(err).toMatch(/^warning: all\.yaml:\d+: Deployment default\/web: KindNotWatched: .*\n$/);
  });

  it('prints nothing of a configuration that is refused', async () => {
    const { status, out, err } = await haptic(['render', directory([WRONG]), ...LATEST]);
    expect({ status, out }).toStrictEqual({ status: 1, out: '' });
    expect(err).toMatch(/^error: HAProxyTemplateConfig default\/haptic: spec\.mapps: .*maps/);
  });

  it('tells what is wrong as JSON too, with what could be rendered', async () => {
    const json = [...LATEST, '--output', 'json'];
    const refused = await haptic(['render', directory([WRONG]), ...json]);
    expect({ status: refused.status, err: refused.err }).toStrictEqual({ status: 1, err: '' });
    expect(JSON.parse(refused.out)).toMatchObject({
      files: [],
      problems: [{ reason: 'InvalidConfig', field: 'spec.mapps' }],
    });
    const partly = await haptic(['render', directory([...web('10.0.0.1'), LOST]), ...json]);
    expect({ status: partly.status, err: partly.err }).toStrictEqual({ status: 1, err: '' });
    const { files, problems } = JSON.parse(partly.out) as Record<string, readonly object[]>;
    expect(files).not.toHaveLength(0);
    expect(problems).toMatchObject([{ reason: 'ServiceNotFound' }]);
  });

  it.each([
    [['--base-dir', 'x'], '--base-dir takes an absolute path'],
    [['--haproxy-version', '2.8'], '--haproxy-version takes a version such as 3.0 or 3.4.7'],
    [['--http-port', '70000'], '--http-port takes a port number'],
    [['--timeout', '0'], '--timeout takes a whole number from 1 to 3600'],
    [['--timeout', '1e3'], '--timeout takes a whole number from 1 to 3600'],
    [['--memory', '31'], '--memory takes a whole number from 32 to 65536'],
  ])('%j cannot run', async (flags, message) => {
    const { status, err } = await haptic(['render', directory([]), ...flags]);
    expect(status).toBe(2);
    expect(err).toContain(`haptic render: ${message}`);
  });
});

describe('haptic diff', () => {
  const between = async (before: readonly object[], after: readonly object[], ...flags: string[]) =>
    haptic(['diff', directory(before), directory(after), ...LATEST, ...flags]);

  it('R4: an endpoint is a matter of operations', async () => {
    const { status, out, err } = await between(web('10.0.0.1'), web('10.0.0.1', '10.0.0.2'));
    expect({ status, err }).toStrictEqual({ status: 0, err: '' });
    expect(out).toMatch(/^verdict: runtime\noperation server_add .*address="10\.0\.0\.2"/);
    expect(out).toContain('\nfile haproxy.cfg\n');
  });

  it.each([
    ['3.0', /^verdict: reload\nreload because .*cart.* \(backend-added\)\n/],
    ['3.4', /^verdict: runtime\noperation backend_add .*cart/],
  ])('R3: a new backend, for HAProxy %s', async (version, told) => {
    const more = [
      service('cart'),
      slice('cart'),
      ingress('cart', { rules: [['c.example.com', '/', 'cart:80']] }),
    ];
    const after = [...web('10.0.0.1'), ...more];
    const { status, out } = await between(web('10.0.0.1'), after, '--haproxy-version', version);
    expect(status).toBe(0);
    expect(out).toMatch(told);
  });

  it('P3: nothing differs from itself', async () => {
    const { status, out } = await between(web('10.0.0.1'), web('10.0.0.1'));
    expect({ status, out }).toStrictEqual({ status: 0, out: 'verdict: nothing differs\n' });
  });

  it('gives the same as JSON', async () => {
    const { out } = await between(web('10.0.0.1'), web('10.0.0.2'), '--output', 'json');
    const changes = JSON.parse(out) as Record<string, unknown>;
    expect(changes).toMatchObject({
      haproxyVersion: '3.4',
      verdict: 'runtime',
      reasons: [],
      changedFiles: ['haproxy.cfg'],
    });
    expect(changes['operations']).not.toHaveLength(0);
  });

  it('fails with status 1 when one of the two cannot be rendered as it is', async () => {
    const { status, err } = await between(web('10.0.0.1'), [...web('10.0.0.1'), LOST]);
    expect(status).toBe(1);
    expect(err).toContain('ServiceNotFound');
  });

  it('tells what is wrong as JSON too', async () => {
    const printed = await between(web('10.0.0.1'), [WRONG], '--output', 'json');
    expect({ status: printed.status, err: printed.err }).toStrictEqual({ status: 1, err: '' });
    expect(JSON.parse(printed.out)).toMatchObject({ problems: [{ reason: 'InvalidConfig' }] });
  });
});
