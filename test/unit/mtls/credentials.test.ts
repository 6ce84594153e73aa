import { X509Certificate } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isDnsName, isNamed, isTrusted, readCredentials } from '../../../src/mtls/credentials.ts';
import { watchCredentials } from '../../../src/mtls/credentials-watch.ts';
import { Authority } from '../../support/authority.ts';
import { waitFor } from '../../support/haproxy.ts';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { projectSecret, type SecretFiles } from '../../support/secret-volume.ts';

let own: Authority;
let other: Authority;
let first: TestKeyPair;
let second: TestKeyPair;
let root: string;
let dir: string;

beforeAll(async () => {
  own = await Authority.root('own');
  other = await Authority.root('other');
  first = await own.issue({ names: ['first.example'] });
  second = await own.issue({ names: ['second.example'], toMs: 7_200_000 });
});

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'creds-'));
  dir = join(root, 'tls');
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const filesOf = (pair: TestKeyPair, ca = own.certificate): SecretFiles => ({
  'tls.crt': pair.certificate,
  'tls.key': pair.key,
  'ca.crt': ca,
});

describe('credentials', () => {
  test('are read with every authority, also where two certificates share a line', async () => {
    const bundle = own.certificate.trimEnd() + other.certificate;
    projectSecret(dir, filesOf(first, bundle));
    const { authorities, ca, notAfterMs, fingerprint } = await readCredentials(dir);
    expect(authorities.map(({ subject }) => subject)).toEqual(['CN=own', 'CN=other']);
    expect(ca).toMatch(/-----END CERTIFICATE-----\n+-----BEGIN CERTIFICATE-----/);
    expect(Math.abs(notAfterMs - Date.now() - 3_600_000)).toBeLessThan(60_000);
    projectSecret(dir, filesOf(second, bundle));
    expect((await readCredentials(dir)).fingerprint).not.toBe(fingerprint);
  });

  const half = (text: string): string => text.slice(0, text.length / 2);
  test.each<[string, (pair: TestKeyPair) => Partial<SecretFiles>, string]>([
    ['no certificate', () => ({ 'tls.crt': '' }), 'tls.crt holds no whole certificate'],
    ['half a certificate', (p) => ({ 'tls.crt': half(p.certificate) }), 'tls.crt holds no whole'],
    ['half a key', (p) => ({ 'tls.key': half(p.key) }), 'tls.key holds no whole private key'],
    ['another key', () => ({ 'tls.key': second.key }), 'tls.key does not belong to the first'],
    ['half a bundle', (p) => ({ 'ca.crt': own.certificate + half(p.certificate) }), 'ca.crt ends'],
    ['no authority', () => ({ 'ca.crt': 'nothing' }), 'ca.crt holds no whole certificate'],
    [
      'nonsense',
      () => ({ 'ca.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' }),
      'ca.crt holds a certificate that cannot be read',
    ],
  ])('with %s are refused by the name of the file', async (_what, change, message) => {
    projectSecret(dir, { ...filesOf(first), ...change(first) });
    await expect(readCredentials(dir)).rejects.toThrow(message);
  });

  test('are refused where a file is missing', async () => {
    await expect(readCredentials(dir)).rejects.toThrow(/ENOENT.*tls\.crt/);
  });

  test('are for exactly the names they carry', async () => {
    const { certificate } = await own.issue({ names: ['*.example', 'a.example'] });
    const read = new X509Certificate(certificate);
    expect(isNamed(read, 'a.example')).toBe(true);
    expect(isNamed(read, 'b.example')).toBe(false);
    expect(isNamed(read, 'example')).toBe(false);
    expect(isNamed(new X509Certificate(own.certificate), 'own')).toBe(false);
    expect(['haptic-agent', 'a.b-c.d'].map(isDnsName)).toEqual([true, true]);
    expect(['', '.example', '*.example', 'a b', 'a..b'].map(isDnsName)).not.toContain(true);
  });

  test('trust what their authorities signed, while it is valid', async () => {
    projectSecret(dir, filesOf(first));
    const credentials = await readCredentials(dir);
    const leaf = new X509Certificate(second.certificate);
    const stranger = await other.issue({ names: ['second.example'] });
    expect(isTrusted(leaf, credentials, Date.now())).toBe(true);
    expect(isTrusted(leaf, credentials, Date.now() + 7_300_000)).toBe(false);
    expect(isTrusted(leaf, credentials, Date.now() + 3_700_000)).toBe(false); // the authority is over
    expect(isTrusted(new X509Certificate(stranger.certificate), credentials, Date.now())).toBe(
      false,
    );
  });
});

describe('credentials that are followed', () => {
  let changes: string[];
  let problems: string[];
  let stop: () => void;

  afterEach(() => stop());

  const follow = async (options: { everyMs?: number; now?: () => number } = {}): Promise<void> => {
    changes = [];
    problems = [];
    stop = watchCredentials({
      dir,
      initial: await readCredentials(dir),
      onChange: ({ cert }) => changes.push(new X509Certificate(cert).subject),
      onProblem: (message) => problems.push(message),
      everyMs: 3_600_000,
      ...options,
    });
  };

  test('are taken over once when the link of their volume is replaced', async () => {
    projectSecret(dir, filesOf(first));
    await follow();
    projectSecret(dir, filesOf(second));
    await waitFor(() => changes.length > 0);
    projectSecret(dir, filesOf(second));
    await sleep(200);
    expect(changes).toEqual(['CN=second.example']);
    expect(problems).toEqual([]);
  });

  test('are looked at from time to time where the file system tells nothing', async () => {
    const versions = [join(root, 'v1'), join(root, 'v2')] as const;
    projectSecret(versions[0], filesOf(first));
    projectSecret(versions[1], filesOf(second));
    symlinkSync(versions[0], dir);
    await follow({ everyMs: 30 });
    symlinkSync(versions[1], join(root, 'new'));
    renameSync(join(root, 'new'), dir);
    await waitFor(() => changes.length > 0);
    expect(changes).toEqual(['CN=second.example']);
  });

  test('stay while the new ones are broken, and each fault is told once', async () => {
    projectSecret(dir, filesOf(first));
    await follow({ everyMs: 20 });
    projectSecret(dir, { ...filesOf(second), 'tls.key': first.key });
    await waitFor(() => problems.length > 0);
    await sleep(100);
    expect(problems).toEqual([
      `the credentials in ${dir} are not taken over, the ones before stay: tls.key does not belong to the first certificate of tls.crt`,
    ]);
    writeFileSync(join(dir, 'tls.key'), second.key);
    await waitFor(() => changes.length > 0);
    rmSync(join(dir, 'ca.crt'));
    await waitFor(() => problems.length > 1);
    expect(problems[1]).toContain('ENOENT');
    expect(changes).toEqual(['CN=second.example']);
  });

  test('that expire are told once and stay', async () => {
    projectSecret(dir, filesOf(first));
    let now = Date.now();
    await follow({ everyMs: 20, now: () => now });
    await sleep(60);
    expect(problems).toEqual([]);
    now += 3_700_000;
    await waitFor(() => problems.length > 0);
    await sleep(60);
    expect(problems).toEqual([expect.stringMatching(/expired at 20.*renew it$/)]);
    expect(changes).toEqual([]);
  });

  test('are left alone after the end', async () => {
    projectSecret(dir, filesOf(first));
    await follow({ everyMs: 20 });
    stop();
    projectSecret(dir, filesOf(second));
    await sleep(150);
    expect(changes).toEqual([]);
  });
});
