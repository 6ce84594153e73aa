import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { packLayer, writeArchive, type LayerEntry } from '../../cluster/harness/oci-image.ts';

let dir = '';

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hap-'));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

const ENTRIES: readonly LayerEntry[] = [
  { path: '/usr/bin/program', content: Buffer.from('#!'), executable: true },
  { path: '/usr/bin/alias', link: 'program' },
  { path: '/etc/settings', content: Buffer.from('a'.repeat(513)) },
];

/** What tar lists of an archive, with modes and owners. */
function listing(archive: Buffer): string[] {
  const { stdout, status } = spawnSync('tar', ['-tv', '--numeric-owner', '--utc'], {
    input: archive,
  });
  expect(status).toBe(0);
  return stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => line.replace(/ +/g, ' '));
}

function json(path: string): unknown {
  return JSON.parse(readFileSync(join(dir, path), 'utf8'));
}

describe('packLayer', () => {
  test('makes a tar that tar understands, with the folders on the way', () => {
    expect(listing(packLayer(ENTRIES).tar)).toEqual([
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 etc/',
      '-rw-r--r-- 0/0 513 1970-01-01 00:00 etc/settings',
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 usr/',
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 usr/bin/',
      'lrwxrwxrwx 0/0 0 1970-01-01 00:00 usr/bin/alias -> program',
      '-rwxr-xr-x 0/0 2 1970-01-01 00:00 usr/bin/program',
    ]);
  });

  test('gives equal files equal bytes, in whatever order they come', () => {
    expect(packLayer([...ENTRIES].reverse()).digest).toBe(packLayer(ENTRIES).digest);
    const changed = [...ENTRIES, { path: '/etc/more', content: Buffer.from('') }];
    expect(packLayer(changed).digest).not.toBe(packLayer(ENTRIES).digest);
  });

  test('refuses a path that would be cut off', () => {
    const path = `/${'long/'.repeat(20)}name`;
    expect(() => packLayer([{ path, content: Buffer.from('') }])).toThrow('more than 100 bytes');
  });
});

describe('writeArchive', () => {
  test('writes an OCI layout whose digests are true', () => {
    const archive = join(dir, 'image.tar');
    const layer = packLayer(ENTRIES);
    const config = { user: '65532:65532', entrypoint: ['/usr/bin/program'], stopSignal: 'SIGUSR1' };
    writeArchive(archive, { names: ['test/a:1', 'test/a:2'], config, layers: [layer] });
    expect(spawnSync('tar', ['-xf', archive, '-C', dir]).status).toBe(0);
    expect(json('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' });

    const { manifests } = json('index.json') as {
      manifests: { digest: string; annotations: Record<string, string> }[];
    };
    expect(manifests.map(({ annotations }) => annotations['io.containerd.image.name'])).toEqual([
      'test/a:1',
      'test/a:2',
    ]);
    const blob = (digest: string): string => join('blobs', digest.replace(':', '/'));
    const manifest = json(blob(manifests[0]!.digest)) as {
      config: { digest: string };
      layers: { digest: string; size: number }[];
    };
    expect(manifest.layers).toMatchObject([{ digest: layer.digest, size: layer.tar.length }]);
    expect(json(blob(manifest.config.digest))).toMatchObject({
      os: 'linux',
      config: {
        User: '65532:65532',
        Entrypoint: ['/usr/bin/program'],
        StopSignal: 'SIGUSR1',
      },
      rootfs: { diff_ids: [layer.digest] },
    });
    const sums = spawnSync('sh', ['-c', 'cd blobs/sha256 && sha256sum *'], { cwd: dir });
    for (const line of sums.stdout.toString().trim().split('\n')) {
      const [sum, name] = line.split(/\s+/);
      expect(sum).toBe(name);
    }
  });
});
