import { describe, expect, test } from 'vitest';
import { addEntries, proxyCommands } from '../../../agent/haproxy/commands.ts';
import { lanesOf } from '../../../agent/haproxy/lanes.ts';
import { lineNumber } from '../../../agent/haproxy/tls-commands.ts';
import { escapeArgument, isToken } from '../../../agent/haproxy/tokens.ts';
import { packed, parseInfo, splitReplies } from '../../../agent/haproxy/worker.ts';
import { LIMITS, type Operation } from '../../../src/protocol/protocol.ts';

const add = (server: string): Operation => ({
  kind: 'server_add',
  backend: 'b',
  server,
  address: '::1',
  port: 80,
  weight: 3,
  state: 'ready',
  keywords: ['check'],
});
const remove = (server: string): Operation => ({ kind: 'server_remove', backend: 'b', server });
const address = (server: string): Operation => ({
  kind: 'server_address',
  backend: 'b',
  server,
  address: '10.0.0.1',
  port: 1,
});
const entry = (key: string): Operation => ({ kind: 'map_add', map: 'm', key, value: 'v' });

describe('commands', () => {
  test('a server takes traffic only when everything else is set', () => {
    const operation = add('s');
    if (!('server' in operation)) throw new Error('not a server');
    expect(proxyCommands(operation).map(({ line }) => line)).toEqual([
      'add server b/s [::1]:80 weight 3 check',
      'enable health b/s',
      'enable server b/s',
    ]);
  });

  test('lines stay under the limit, and a payload ends its line', () => {
    const line = `x${'y'.repeat(3_000)}`;
    const commands = Array.from({ length: 10 }, () => ({ line, accept: 'silent' as const }));
    expect(packed(commands).map((part) => part.length)).toEqual([4, 4, 2]);
    const payload = { line: 'p', payload: ['a b'], accept: 'silent' as const };
    expect(packed([payload, payload]).map((part) => part.length)).toEqual([1, 1]);
    expect(packed([])).toEqual([]);
  });

  test('entries of a map are cut so that each command fits the buffer of the worker', () => {
    const entries = Array.from(
      { length: 500 },
      (_, index) => [`key${index}`, 'v'.repeat(100)] as const,
    );
    const commands = addEntries('@1 m', entries);
    expect(commands.flatMap(({ payload }) => payload ?? [])).toHaveLength(500);
    for (const { line, payload = [] } of commands) {
      expect(line.length + payload.join('\n').length).toBeLessThan(LIMITS.commandLineBytes);
    }
  });

  test('a line of replies is told apart by its empty lines', () => {
    expect(splitReplies('\n[6]: New server registered.\n\n\n[3]: two\nlines\n\n')).toEqual([
      '',
      '[6]: New server registered.',
      '',
      '[3]: two\nlines',
    ]);
    expect(splitReplies('')).toEqual([]);
  });

  test('an answer that is not of a worker is no identity', () => {
    expect(parseInfo('Name: HAProxy\nVersion: 3.4.7-1\nPid: 7\nStart_time_sec: 9\n')).toEqual({
      version: '3.4.7',
      pid: 7,
      startMs: 9_000,
    });
    expect(parseInfo('Permission denied\n')).toBeNull();
    expect(parseInfo('Version: 3.4.7\nPid: x\nStart_time_sec: 1')).toBeNull();
  });
});

describe('lanes', () => {
  const kinds = (operations: readonly Operation[], leaving: readonly string[] = []): string[] =>
    lanesOf(operations, (name) => leaving.includes(name)).map((lane) => lane.kind);

  test('operations of one kind go together and keep their order', () => {
    expect(kinds([add('a'), remove('b'), entry('k'), entry('l'), add('c')])).toEqual([
      'proxies',
      'entries',
      'proxies',
    ]);
  });

  test('a server that comes back waits for the deletion of its namesake', () => {
    expect(kinds([remove('a'), add('a'), add('b')])).toEqual(['proxies', 'readd', 'proxies']);
    expect(kinds([add('a')], ['b/a'])).toEqual(['readd']);
    expect(kinds([add('a'), remove('a')])).toEqual(['proxies']);
  });

  test('entries that are added never share a line with entries that are set to use them', () => {
    expect(kinds([entry('k'), { kind: 'map_set', map: 'm', key: 'l', value: 'v' }])).toEqual([
      'entries',
      'entries',
    ]);
  });

  test('two addresses of one server never share a line', () => {
    expect(kinds([address('a'), address('b'), address('a')])).toEqual(['proxies', 'proxies']);
  });
});

describe('tokens', () => {
  test.each(['a', 'a.b-c_d:e', 'ns_svc_8080', 'é', '[::1]', '%[x]'])('%j is one word', (text) => {
    expect(isToken(text)).toBe(true);
  });

  test.each(['', 'a b', 'a\tb', 'a;b', 'a\\b', 'a\nb', 'a<<b', 'a\u0000', '\u0085', '\u2028'])(
    '%j is not one word',
    (text) => {
      expect(isToken(text)).toBe(false);
    },
  );

  test('what ends a word, a command or begins a payload is escaped', () => {
    expect(escapeArgument('a b;c\\d<<e')).toBe('a\\ b\\;c\\\\d\\<\\<e');
  });
});

test('a line of a certificate list with options is found as HAProxy shows it, with a null byte behind them', () => {
  const shown =
    '# l\ncerts/a.pem:1\ncerts/b.pem:2 [alpn h2,http/1.1\0] b.example\ncerts/b.pem:14 [verify none alpn h2\0] c.example';
  expect(lineNumber(shown, 'certs/b.pem [alpn h2 verify none] c.example')).toBe('14');
  expect(lineNumber(shown, 'certs/a.pem')).toBe('1');
  expect(lineNumber(shown, 'certs/b.pem b.example')).toBeUndefined();
});
