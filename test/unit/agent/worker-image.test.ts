import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MapText, mapRepairs, readEntries } from '../../../agent/drift/map-text.ts';
import {
  compactRows,
  parseRows,
  printRows,
  rowAfter,
  serverRepairs,
} from '../../../agent/drift/server-row.ts';
import { WorkerImage } from '../../../agent/drift/worker-image.ts';
import { Worker } from '../../../agent/haproxy/worker.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { ScriptedSocket } from './scripted-haproxy.ts';

const HEAD = '1\n# be_id be_name srv_id srv_name srv_addr srv_op_state …';
const line = (
  server: string,
  more: { admin?: number; agent?: number; fqdn?: string } = {},
): string => {
  const { admin = 0, agent = 0, fqdn = '-' } = more;
  return `3 web 1 ${server} 127.0.0.1 2 ${admin} 5 1 9 1 0 0 0 ${agent} 0 0 ${fqdn} 80 - 0 0 - - 0`;
};
const row = (server: string, more = {}) =>
  parseRows(compactRows(`${HEAD}\n${line(server, more)}`) ?? '')[0];

describe('what a worker says of a server', () => {
  test('is read as far as operations can change it', () => {
    expect(row('a')).toEqual({
      name: 'a',
      address: '127.0.0.1',
      port: 80,
      weight: 5,
      state: 'ready',
    });
    expect([row('a', { admin: 5 })?.state, row('a', { admin: 8 })?.state]).toEqual([
      'maint',
      'drain',
    ]);
    expect(row('a', { admin: 4 })?.state).toBe('ready'); // disabled in the file, enabled since
    expect(compactRows("Can't find backend.")).toBeUndefined();
    expect(compactRows(HEAD)).toBe('');
  });

  test('is left aside where an agent-check or a resolver changes it', () => {
    const checked = row('a', { agent: 3 });
    const drained = row('a', { agent: 3, admin: 8 });
    expect(serverRepairs('web', checked, drained)).toEqual([]);
    const resolved = row('a', { fqdn: 'app.example' });
    expect(resolved).toMatchObject({ address: '', port: 0, weight: 5 });
  });

  test('survives being kept as one line', () => {
    const rows = [row('a'), row('b', { fqdn: 'x' }), row('c', { agent: 1 })].flatMap(
      (one) => one ?? [],
    );
    expect(rows).toHaveLength(3);
    expect(parseRows(printRows(rows))).toEqual(rows);
    expect(parseRows(printRows([]))).toEqual([]);
  });

  test('a server that is gone cannot be made again, one too many is removed', () => {
    expect(serverRepairs('web', row('a'), undefined)).toBeUndefined();
    expect(serverRepairs('web', undefined, row('a'))).toEqual([
      { kind: 'server_remove', backend: 'web', server: 'a' },
    ]);
  });

  test('an operation on a server that was never seen changes nothing', () => {
    const weight = { kind: 'server_weight', backend: 'web', server: 'x', weight: 1 } as const;
    expect(rowAfter(undefined, weight)).toBeUndefined();
  });
});

describe('what a worker says of a map', () => {
  const map = 'm';
  const one = (
    kind: 'map_add' | 'map_set',
    key: string,
    value: string,
  ): Extract<Operation, { kind: 'map_add' | 'map_set' }> => ({
    kind,
    map,
    key,
    value,
  });

  test('is followed through operations, values with spaces too', () => {
    const text = new MapText(readEntries('0x1 a 1\n0x2 b two words\n'));
    expect(text.lines()).toEqual(['a 1', 'b two words']);
    text.expect(one('map_set', 'a', 'x y'));
    text.expect(one('map_add', 'c', '3'));
    text.expect({ kind: 'map_delete', map, key: 'b' });
    expect(text.lines()).toEqual(['a x y', 'c 3']);
    text.expect(one('map_add', 'b', 'again'));
    text.expect({ kind: 'map_replace', map, entries: [['z', '9']] });
    expect(text.lines()).toEqual(['z 9']);
    text.expect({ kind: 'map_replace', map, entries: [] });
    expect(text.lines()).toEqual([]);
  });

  test('is repaired entry by entry, and as a whole where keys repeat', () => {
    expect(mapRepairs(map, ['a 1', 'b 2'], ['b 2', 'a 1'])).toEqual([]); // the order of keys says nothing
    expect(mapRepairs(map, ['a 1', 'b 2', 'c 3'], ['a 9', 'c 3', 'd 4'])).toEqual([
      one('map_set', 'a', '1'),
      one('map_add', 'b', '2'),
      { kind: 'map_delete', map, key: 'd' },
    ]);
    const entries = [
      ['a', '1'],
      ['a', '2 3'],
    ];
    expect(mapRepairs(map, ['a 1', 'a 2 3'], ['a 2 3', 'a 1'])).toEqual([
      { kind: 'map_replace', map, entries },
    ]);
    expect(mapRepairs(map, ['a 1'], ['a 1', 'a 1'])).toEqual([
      { kind: 'map_replace', map, entries: [['a', '1']] },
    ]);
  });
});

describe('the image of a worker', () => {
  let base = '';
  let socket: ScriptedSocket | undefined;
  let servers: readonly string[] = [];

  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'agu-'));
    servers = [line('a'), line('b')];
    socket = new ScriptedSocket(join(base, 'w.sock'), (said) =>
      said.includes('lost') ? undefined : `\n${HEAD}\n${servers.join('\n')}\n\n`,
    );
  });

  afterEach(() => {
    socket?.close();
    rmSync(base, { recursive: true, force: true });
  });

  const nobodyLeaves = (): boolean => false;

  test('is of one worker, and complete only when all was learnt', async () => {
    const image = new WorkerImage();
    const of = { pid: 1, startMs: 1_000 };
    expect(image.isOf(of)).toBe(false);
    image.begin(of);
    await image.learnBackends(new Worker(join(base, 'w.sock'), base), ['web']);
    expect(image.isOf(of)).toBe(false);
    image.end();
    expect([image.isOf(of), image.isOf({ pid: 1, startMs: 2_000 })]).toEqual([true, false]);
    expect(image.backends()).toEqual(['web']);
  });

  test('leaves servers aside that wait for their deletion, and answers that never came', async () => {
    const worker = new Worker(join(base, 'w.sock'), base);
    const image = new WorkerImage();
    await image.learnBackends(worker, ['web']);
    image.expect([{ kind: 'server_remove', backend: 'web', server: 'b' }]);
    const removed = await image.compareBackends(worker, ['web'], nobodyLeaves);
    expect(removed.map(({ target }) => target)).toEqual(['web/b']);
    expect(await image.compareBackends(worker, ['web'], (name) => name === 'web/b')).toEqual([]);
    expect(await image.compareBackends(worker, ['web', 'lost'], nobodyLeaves)).toEqual([]);
  });

  test('follows backends that come and go', () => {
    const image = new WorkerImage();
    const add: Operation = {
      kind: 'backend_add',
      backend: 'new',
      profile: 'p',
      mode: 'http',
      structure: '',
    };
    image.expect([add, { kind: 'server_weight', backend: 'other', server: 's', weight: 1 }]);
    expect(image.backends()).toEqual(['new']);
    image.expect([{ kind: 'backend_remove', backend: 'new' }]);
    expect(image.backends()).toEqual([]);
  });
});
