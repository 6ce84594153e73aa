import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { entryObstacle, isAddressLiteral } from '../../../src/plan/command-line.ts';
import { keywordObstacle } from '../../../src/plan/dynamic-servers.ts';
import type { Backend, Server } from '../../../src/plan/plan.ts';
import { haproxyVersions, runtimeCommand, startHaproxy } from '../../support/haproxy.ts';

/** Words with which a server can be added, on every version; `verify none` where a CA would be needed. */
const GOOD = [
  '',
  'addr 127.0.0.1',
  'alpn h2',
  'allow-0rtt',
  'backup',
  'check inter 2s fastinter 1s downinter 1s rise 2 fall 3',
  'check port 9 check-send-proxy',
  'check check-ssl verify none check-sni example.org check-alpn h2',
  'check check-proto none',
  'check observe layer4 error-limit 3 on-error fail-check',
  'check on-marked-down shutdown-sessions',
  'check on-marked-up shutdown-backup-sessions',
  'cookie c',
  'guid g:1',
  'hash-key addr-port',
  'hash-key addr',
  'maxconn 5 minconn 2 maxqueue 7',

  'no-send-proxy',
  'no-send-proxy-v2',
  'pool-low-conn 1 pool-max-conn 2 pool-purge-delay 3s',
  'proto h2',
  'send-proxy',
  'send-proxy-v2 proxy-v2-options crc32c',
  'send-proxy-v2-ssl',
  'send-proxy-v2-ssl-cn',
  'shard 1',
  'slowstart 5s',
  'ssl verify none sni str(example.org) verifyhost example.org',
  'ssl verify none ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.3',
  'ssl verify none ciphers ECDHE+AESGCM ciphersuites TLS_AES_128_GCM_SHA256',
  'ssl verify none no-ssl-reuse no-tls-tickets',
  'tfo',
  'ws h1',
];

/** Words that only a configuration file can have, on some version at least, and that are hence never sent. */
const FILE_ONLY = [
  'enabled',
  'init-addr none',
  'init-state up',
  'max-reuse 4',
  'namespace x',
  'no-check',
  'no-check-send-proxy',
  'no-ssl',
  'non-stick',
  'redir /x',
  'resolve-prefer ipv4',
  'resolvers x',
  'ssl-reuse',
  'stick',
  'tcp-ut 5s',
  'log-proto legacy',
  'ca-file missing.pem',
];

const backend: Backend = {
  name: 'be',
  mode: 'http',
  profile: 'web',
  balance: 'roundrobin',
  structure: '',
  text: '',
  dynamic: true,
  bare: true,
  servers: [],
  digest: '',
};
const serverWith = (words: string): Server => ({
  name: 'a',
  address: '127.0.0.1',
  port: 80,
  weight: 1,
  state: 'ready',
  keywords: words === '' ? [] : words.split(' '),
});

/** Entries with what a command line has to escape. */
const ENTRIES = [
  ['k1', 'a b'],
  ['k2', 'max-age=1; includeSubDomains'],
  ['k3', 'a\\b "c" \'d\' #e'],
  ['k4;k', '<<'],
  ['ü', '日本'],
  ['__proto__', 'constructor'],
] as const;
const escape = (text: string): string => text.replace(/[\s;\\<"'#]/g, '\\$&');

const dir = mkdtempSync(join(tmpdir(), 'haptic-words-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe.each(haproxyVersions())('HAProxy $version', ({ version, binary }) => {
  const start = async (): Promise<(command: string) => Promise<string>> => {
    const configFile = join(dir, `${version}.cfg`);
    const timeouts = ['client', 'server', 'connect'].map((what) => `timeout ${what} 1s`);
    writeFileSync(
      join(dir, 'file.map'),
      ENTRIES.map(([key, value]) => `${key} ${value}\n`).join(''),
    );
    writeFileSync(join(dir, 'empty.map'), '');
    const maps = ['file', 'empty'].map(
      (name) => `http-request set-header x-${name} %[path,map_str(${dir}/${name}.map)]`,
    );
    const lines = ['defaults web', 'mode http', ...timeouts, 'backend be from web', ...maps];
    writeFileSync(configFile, `${lines.join('\n')}\n`);
    const { workerSocket } = await startHaproxy({ binary, dir, configFile });
    return (command) => runtimeCommand(workerSocket, command);
  };

  test('adds servers with every word that counts as dynamic', async () => {
    const ask = await start();
    for (const [number, words] of GOOD.entries()) {
      expect(keywordObstacle(serverWith(words), backend), words).toBeUndefined();
      const answer = await ask(`add server be/s${number} 127.0.0.1:80 weight 1 ${words}`);
      expect(answer.trim(), words).toBe('New server registered.');
    }
  });

  test('is never sent a word that it refuses', async () => {
    const ask = await start();
    for (const [number, words] of FILE_ONLY.entries()) {
      expect(keywordObstacle(serverWith(words), backend), words).toBeDefined();
      const answer = await ask(`add server be/s${number} 127.0.0.1:80 weight 1 ${words}`);
      // Newer versions may have learned some of them.
      if (version === '3.0') expect(answer, words).not.toContain('New server registered');
    }
  });

  test('reads entries that count as possible the same from a file and from the socket', async () => {
    const ask = await start();
    for (const [key, value] of ENTRIES) {
      expect(entryObstacle(key, value)).toBeUndefined();
      expect((await ask(`add map ${dir}/empty.map ${escape(key)} x`)).trim()).toBe('');
      const set = await ask(`set map ${dir}/empty.map ${escape(key)} ${escape(value)}`);
      expect(set.trim()).toBe('');
    }
    const entries = async (name: string): Promise<readonly string[]> =>
      (await ask(`show map ${dir}/${name}.map`))
        .split('\n')
        .map((line) => line.replace(/^0x[0-9a-f]+ /, ''))
        .sort();
    expect(await entries('empty')).toEqual(await entries('file'));
    expect(await entries('file')).toHaveLength(ENTRIES.length);
  });

  test('takes every address that counts as a literal', async () => {
    const ask = await start();
    await ask('add server be/a 127.0.0.1:80');
    for (const address of [
      '::1',
      '2001:db8::1',
      '1:2:3:4:5:6:7:8',
      '::ffff:10.0.0.1',
      '10.0.0.1',
    ]) {
      expect(isAddressLiteral(address), address).toBe(true);
      expect(await ask(`set server be/a addr ${address} port 80`), address).toContain('IP changed');
    }
  });
});
