import { describe, expect, test } from 'vitest';
import { archivesOf, dependedLibraries } from '../../../tools/setup/debian.js';
import {
  isSupportedHaproxy,
  nodeMajor,
  offeredVersions,
  parseHaproxyVersion,
} from '../../../tools/setup/version.js';

describe('parseHaproxyVersion', () => {
  test.each([
    ['HAProxy version 3.0.11-1+deb13u5 2026/11/18 - https://haproxy.org/', '3.0.11', '3.0'],
    ['HAProxy version 2.6.12-1+deb12u2 2025/04/25 - https://haproxy.org/', '2.6.12', '2.6'],
    ['HA-Proxy version 2.2.9-2 2021/02/28 - https://haproxy.org/', '2.2.9', '2.2'],
    ['HAProxy version 3.4-dev3-a1b2c3 2026/05/01 - https://haproxy.org/', '3.4-dev3', '3.4'],
    ['HAProxy version 3.10.2 2030/01/01\nStatus: long-term', '3.10.2', '3.10'],
    ['3.2.26-1', '3.2.26', '3.2'],
    ['1:3.2.26-1~bpo13+1', '3.2.26', '3.2'],
    ['3.4-1', '3.4', '3.4'],
  ])('reads %j', (text, version, branch) => {
    expect(parseHaproxyVersion(text)).toMatchObject({ version, branch });
  });

  test.each(['', 'nginx version: nginx/1.22.1', 'sh: haproxy: not found', 'HAProxy version x'])(
    'finds none in %j',
    (text) => {
      expect(parseHaproxyVersion(text)).toBeUndefined();
    },
  );

  test('knows what is new enough', () => {
    const supported = ['2.9.15', '3.0.0', '3.10.1', '4.0.0', ''].map((text) =>
      isSupportedHaproxy(parseHaproxyVersion(text)),
    );
    expect(supported).toEqual([false, true, true, true, false]);
  });
});

test('nodeMajor reads what node prints, and takes anything else for too old', () => {
  expect(['v26.12.1\n', 'v8.0.0', '', 'node: not found'].map(nodeMajor)).toEqual([26, 8, 0, 0]);
});

test('offeredVersions takes the newest of each supported branch', () => {
  const madison = [
    '   haproxy |    3.4.7-1 | http://mirror/debian experimental/main amd64 Packages',
    '   haproxy |   3.2.26-1 | http://mirror/debian sid/main amd64 Packages',
    '   haproxy |   3.2.25-2 | http://mirror/debian sid/main Sources',
    '   haproxy |  2.6.12-1 | http://mirror/debian bookworm/main amd64 Packages',
  ].join('\n');
  expect(offeredVersions(madison)).toEqual({ '3.4': '3.4.7-1', '3.2': '3.2.26-1' });
  expect(offeredVersions('')).toEqual({});
});

test('dependedLibraries takes libraries only, the first of alternatives, each once', () => {
  const records = [
    'Package: haproxy',
    'Depends: libc6 (>= 2.38), liblua5.4-0, adduser, libssl3t64 (>= 3.0) | libssl3, zlib1g:any',
    'Recommends: libnever0',
    '',
    'Package: libssl3t64',
    'Depends: libc6 (>= 2.34), libzstd1',
  ].join('\n');
  expect(dependedLibraries(records)).toEqual([
    'libc6',
    'liblua5.4-0',
    'libssl3t64',
    'zlib1g',
    'libzstd1',
  ]);
});

describe('archivesOf', () => {
  const uri = (base: string, suite: string): string =>
    `'${base}/dists/${suite}/InRelease' some_file 0 `;

  test('takes the archive of the machine, not the one of a third party with the same suite', () => {
    const uris = [
      uri('https://third.party/linux/debian', 'bookworm'),
      uri('http://mirror.example/pub/debian', 'bookworm'),
      uri('http://mirror.example/pub/debian', 'bookworm-updates'),
      uri('http://mirror.example/pub/debian-security', 'bookworm-security'),
    ].join('\n');
    expect(archivesOf(uris)).toEqual({
      mirror: 'http://mirror.example/pub/debian',
      security: 'http://mirror.example/pub/debian-security',
    });
  });

  test('needs neither an updates nor a security suite', () => {
    const uris = [uri('https://tool.example/apt', 'nodistro'), uri('http://m/debian', 'trixie')];
    expect(archivesOf(uris.join('\n'))).toEqual({ mirror: 'http://m/debian', security: undefined });
  });

  test('finds none where there is none', () => {
    expect(archivesOf(uri('https://tool.example/apt', 'nodistro'))).toBeUndefined();
    expect(archivesOf('')).toBeUndefined();
  });
});
