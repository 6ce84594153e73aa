import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApplyOutcome } from '../../../src/protocol/answers.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, planIdOf, sha256, type Files } from './agent-bed.ts';

const LONG = 'n'.repeat(127);

describe.each(haproxyVersions())('runtime operations on HAProxy $version', ({ binary }) => {
  let bed: Bed;
  let files: Files;
  let pid = 0;

  beforeAll(async () => {
    bed = await Bed.start(binary);
  });

  afterAll(() => bed.stop());

  /** A fresh worker that holds the given map entries and servers of `web`. */
  const fresh = async (hosts: string, web: readonly string[] = []): Promise<void> => {
    files = bed.files({ hosts, web, more: { run: `${Math.random()}` } });
    const outcome = await bed.apply({ files });
    expect(outcome.outcome).toBe('reload');
    pid = (await bed.state()).haproxy.workerPid;
  };

  const run = (operations: readonly Operation[]): Promise<ApplyOutcome> =>
    bed.apply({ files, mode: 'auto', reload: false, send: [], operations });

  /** All of them are executed, by the worker that was there before. */
  const runs = async (operations: readonly Operation[]): Promise<void> => {
    const outcome = await run(operations);
    expect(outcome).toMatchObject({
      outcome: 'runtime',
      failedOperations: [],
      operationsRun: operations.length,
    });
    const state = await bed.state();
    expect(state.haproxy.workerPid).toBe(pid);
    expect(state.roles.workerOperations).toBe(outcome.roles.workerOperations);
  };

  const add = (server: string, more: Partial<Operation> = {}): Operation =>
    ({
      kind: 'server_add',
      backend: 'web',
      server,
      address: '127.0.0.1',
      port: 9,
      weight: 1,
      state: 'ready',
      keywords: [],
      ...more,
    }) as Operation;

  test('server_add makes servers as a fresh start would, and they take traffic', async () => {
    await fresh('a.example web\n');
    const app = await bed.backend('added');
    await runs([
      add('one', { port: app.port }),
      add(LONG, {
        weight: 256,
        port: app.port,
        keywords: ['check', 'inter', '5s', 'maxconn', '10'],
      }),
      add('zero', { weight: 0 }),
      add('six', { address: '::1', state: 'maint' }),
      add('drain', { state: 'drain' }),
    ]);
    expect(await bed.servers('web')).toEqual([
      `one 127.0.0.1 ${app.port} 1 0`,
      `${LONG} 127.0.0.1 ${app.port} 256 0`,
      'zero 127.0.0.1 9 0 0',
      'six ::1 9 1 1',
      'drain 127.0.0.1 9 1 8',
    ]);
    expect(await waitFor(async () => (await bed.request('a.example')) === '200 added')).toBe(true);
  });

  test('server_address, server_weight and server_state change a server in place', async () => {
    const app = await bed.backend('moved');
    await fresh('a.example web\n', ['s1 127.0.0.1:9 weight 5']);
    await runs([
      {
        kind: 'server_address',
        backend: 'web',
        server: 's1',
        address: '127.0.0.1',
        port: app.port,
      },
      { kind: 'server_weight', backend: 'web', server: 's1', weight: 256 },
    ]);
    expect(await bed.servers('web')).toEqual([`s1 127.0.0.1 ${app.port} 256 0`]);
    expect(await bed.request('a.example')).toBe('200 moved');
    await runs([
      { kind: 'server_state', backend: 'web', server: 's1', state: 'drain' },
      { kind: 'server_weight', backend: 'web', server: 's1', weight: 0 },
    ]);
    expect(await bed.servers('web')).toEqual([`s1 127.0.0.1 ${app.port} 0 8`]);
    await runs([{ kind: 'server_state', backend: 'web', server: 's1', state: 'maint' }]);
    expect(await bed.request('a.example')).toMatch(/^503/);
    await runs([
      { kind: 'server_state', backend: 'web', server: 's1', state: 'ready' },
      { kind: 'server_weight', backend: 'web', server: 's1', weight: 1 },
      // The same again is no failure.
      {
        kind: 'server_address',
        backend: 'web',
        server: 's1',
        address: '127.0.0.1',
        port: app.port,
      },
      { kind: 'server_address', backend: 'web', server: 's1', address: '::1', port: app.port },
      {
        kind: 'server_address',
        backend: 'web',
        server: 's1',
        address: '127.0.0.1',
        port: app.port,
      },
    ]);
    expect(await bed.request('a.example')).toBe('200 moved');
  });

  test('server_remove stops traffic at once and deletes when the last request has ended', async () => {
    const old = await bed.backend('old');
    const young = await bed.backend('young');
    await fresh('a.example web\n', [`s1 127.0.0.1:${old.port}`]);
    const slow = bed.request('a.example', '/slow');
    await waitFor(
      async () =>
        /scur=1|,1,1,/.test(await bed.runtime('show servers conn web')) ||
        (await bed.runtime('show sess')).includes('srv=s1'),
    );
    await runs([
      add('s2', { port: young.port }),
      { kind: 'server_remove', backend: 'web', server: 's1' },
    ]);
    expect((await bed.state()).pendingDeletes).toBe(1);
    for (let i = 0; i < 4; i += 1) expect(await bed.request('a.example')).toBe('200 young');
    expect(await bed.servers('web')).toHaveLength(2);
    old.release();
    expect(await slow).toBe('200 old-done');
    await waitFor(async () => (await bed.state()).pendingDeletes === 0);
    expect(await bed.servers('web')).toEqual([`s2 127.0.0.1 ${young.port} 1 0`]);
  });

  test('a server of the same name comes back after the old one is gone, or by a reload', async () => {
    const old = await bed.backend('old');
    await fresh('a.example web\n', [`s1 127.0.0.1:${old.port}`]);
    const remove = { kind: 'server_remove', backend: 'web', server: 's1' } as const;
    await runs([remove, add('s1', { port: old.port, weight: 7 })]);
    expect(await bed.servers('web')).toEqual([`s1 127.0.0.1 ${old.port} 7 0`]);
    const slow = bed.request('a.example', '/slow');
    await waitFor(async () => (await bed.runtime('show sess')).includes('srv=s1'));
    await runs([remove]);
    const outcome = await run([add('s1', { port: old.port })]);
    expect(outcome.outcome).toBe('reload');
    expect(outcome.failedOperations[0]?.message).toMatch(/connections attached/);
    old.release();
    expect(await slow).toBe('200 old-done');
    expect(await bed.servers('web')).toEqual([`s1 127.0.0.1 ${old.port} 1 0`]);
  });

  test('map_add, map_set and map_delete leave one entry a key', async () => {
    await fresh('a.example web\ndouble.example web\ndouble.example api\n');
    const hosts = (kind: 'map_add' | 'map_set', key: string, value: string): Operation => ({
      kind,
      map: 'maps/hosts.map',
      key,
      value,
    });
    await runs([
      hosts('map_add', 'new.example', 'web'),
      hosts('map_add', 'a.example', 'api'),
      hosts('map_add', 'twice.example', 'first'),
      hosts('map_add', 'twice.example', 'second'),
      hosts('map_set', 'absent.example', 'web'),
      hosts('map_add', '^/re\\.x$', 'a \\1 b;c << "d" \'e\' #f %[g]'),
      { kind: 'map_delete', map: 'maps/hosts.map', key: 'double.example' },
      { kind: 'map_delete', map: 'maps/hosts.map', key: 'never.example' },
    ]);
    await runs([hosts('map_set', 'new.example', 'x y\\2;z << "d" \'e\' #f %[g]')]);
    expect(await bed.hosts()).toEqual([
      '^/re\\.x$ a \\1 b;c << "d" \'e\' #f %[g]',
      'a.example api',
      'absent.example web',
      'new.example x y\\2;z << "d" \'e\' #f %[g]',
      'twice.example second',
    ]);
    await runs([{ kind: 'map_delete', map: 'maps/hosts.map', key: '^/re\\.x$' }]);
    expect(await bed.hosts()).toHaveLength(4);
  });

  test('map_replace puts a whole map in place, also a large and an empty one', async () => {
    await fresh('a.example web\n');
    const entries = Array.from(
      { length: 2_000 },
      (_, index) => [`h${index}.example`, `some value ${index}`] as const,
    );
    await runs([{ kind: 'map_replace', map: 'maps/hosts.map', entries }]);
    const hosts = await bed.hosts();
    expect(hosts).toHaveLength(2_000);
    expect(hosts).toContain('h1999.example some value 1999');
    await runs([{ kind: 'map_replace', map: 'maps/hosts.map', entries: [] }]);
    expect(await bed.hosts()).toEqual([]);
  });

  test('two addresses of one server, one after the other, end with the last', async () => {
    await fresh('a.example web\n', ['s1 127.0.0.1:9']);
    const to = (address: string): Operation => ({
      kind: 'server_address',
      backend: 'web',
      server: 's1',
      address,
      port: 9,
    });
    await runs([to('127.0.0.2'), to('::1'), to('127.0.0.1')]);
    expect(await bed.servers('web')).toEqual(['s1 127.0.0.1 9 1 0']);
  });

  test('many operations go in few lines', async () => {
    await fresh('a.example web\n');
    const operations = Array.from({ length: 1_000 }, (_, index): Operation[] => [
      add(`s${index}`),
      { kind: 'server_weight', backend: 'web', server: `s${index}`, weight: index % 257 },
    ]).flat();
    await runs(operations);
    const servers = await bed.servers('web');
    expect(servers).toHaveLength(1_000);
    expect(servers[256]).toMatch(/^s256 127\.0\.0\.1 9 256 /);
  });

  test('what was executed is told with the plan the worker was started from', async () => {
    await fresh('a.example web\n');
    await bed.apply({ files: { ...files, run: 'again' }, plan: 'the plan' });
    files = { ...files, run: 'again' };
    pid = (await bed.state()).haproxy.workerPid;
    const operations: Operation[] = [
      add('s1'),
      { kind: 'map_delete', map: 'maps/hosts.map', key: 'k' },
    ];
    await runs(operations);
    const stored = { planId: planIdOf(files), plan: 'the plan', operations };
    expect(await bed.plan()).toEqual(stored);
    await bed.agent.kill('SIGTERM');
    await bed.startAgent();
    expect(await bed.plan()).toEqual(stored);
    expect((await bed.state()).roles.workerOperations).toBe(2);
    expect(
      await bed.conflict({ files, mode: 'auto', reload: false, expected: { workerOperations: 1 } }),
    ).toMatchObject({ conflict: 'worker_mismatch' });
  });

  test('what was executed is read back: what the worker holds raises no alarm, what somebody else changed does', async () => {
    await fresh('a.example web\n', ['s1 127.0.0.1:9', 's2 127.0.0.1:9', 's3 127.0.0.1:9 disabled']);
    await bed.agent.kill('SIGTERM');
    await bed.startAgent({ args: ['--reload-interval-ms', '1'] });
    const server = (name: string): { backend: string; server: string } => ({
      backend: 'web',
      server: name,
    });
    const awkward = 'b"\\;.example';
    await runs([
      add('six', { address: '0:0:0:0:0:0:0:1', weight: 7, state: 'drain' }),
      { kind: 'server_address', ...server('s1'), address: '127.0.0.2', port: 10 },
      { kind: 'server_weight', ...server('s1'), weight: 0 },
      { kind: 'server_state', ...server('s3'), state: 'ready' },
      { kind: 'server_remove', ...server('s2') },
      { kind: 'map_add', map: 'maps/hosts.map', key: awkward, value: 'v "w" ;' },
      { kind: 'map_delete', map: 'maps/hosts.map', key: 'a.example' },
    ]);
    await sleep(2_300);
    const none = ['haptic_agent_drift_found_total{kind="runtime"} 0'];
    expect(await drift(bed)).toEqual([...none, 'haptic_agent_unverified_total 0']);
    expect((await bed.state()).haproxy.workerPid).toBe(pid);
    await runs([{ kind: 'server_weight', ...server('s1'), weight: 5 }]);
    await runs([{ kind: 'map_set', map: 'maps/hosts.map', key: awkward, value: 'x' }]);
    await bed.runtime('set server web/s1 weight 6');
    await bed.runtime(`set map maps/hosts.map ${awkward.replace(/["\\;]/g, '\\$&')} y`);
    const old = pid;
    await waitFor(async () => (await bed.state()).haproxy.workerPid !== old);
    expect(await drift(bed)).toEqual([
      'haptic_agent_drift_found_total{kind="runtime"} 2',
      'haptic_agent_unverified_total 0',
    ]);
  });

  test('more than can be read back is counted', async () => {
    await fresh('a.example web\n');
    await runs(Array.from({ length: 201 }, (_, index) => add(`s${index}`)));
    const counted = await waitFor(async () =>
      (await drift(bed)).find((line) => / 201$/.test(line)),
    );
    expect(counted).toBe('haptic_agent_unverified_total 201');
  });

  test('an operation that HAProxy refuses ends in a reload of the desired files', async () => {
    await fresh('a.example web\n', ['s1 127.0.0.1:9']);
    const outcome = await run([
      { kind: 'server_weight', backend: 'web', server: 'nobody', weight: 1 },
    ]);
    expect(outcome.outcome).toBe('reload');
    expect(outcome.failedOperations).toEqual([
      { kind: 'server_weight', target: 'web/nobody', ok: false, message: 'No such server.' },
    ]);
    expect((await bed.state()).haproxy.workerPid).not.toBe(pid);
    expect(outcome.roles).toMatchObject({ running: planIdOf(files), workerOperations: 0 });
  });

  test('a token that would end the command is refused and never sent', async () => {
    await fresh('a.example web\n', ['s1 127.0.0.1:9']);
    const bad: Operation[] = [
      add('x;disable server web/s1'),
      add('x y'),
      add('x\n'),
      add('x\\y'),
      add('x<<'),
      add('x', { address: 'localhost' }),
      add('x', { weight: 257 }),
      add('x', { keywords: ['check;'] }),
      { kind: 'map_add', map: 'maps/hosts.map', key: 'a b', value: 'v' },
      { kind: 'map_add', map: 'maps/hosts.map', key: '#a', value: 'v' },
      { kind: 'map_add', map: 'maps/hosts.map', key: 'a', value: 'v\nw' },
      { kind: 'map_add', map: 'maps/hosts.map', key: 'a', value: '' },
      { kind: 'map_add', map: '../hosts.map', key: 'a', value: 'v' },
      { kind: 'stick_add', backend: 'x' } as unknown as Operation,
    ];
    for (const operation of bad) {
      const outcome = await bed.apply({
        files,
        mode: 'auto',
        reload: false,
        send: [],
        operations: [{ kind: 'server_weight', backend: 'web', server: 's1', weight: 3 }, operation],
        reloadNotBeforeMs: 60_000,
      });
      expect(outcome).toMatchObject({ outcome: 'scheduled', operationsRun: 0 });
      expect(outcome.failedOperations).toHaveLength(1);
    }
    expect(await bed.servers('web')).toEqual(['s1 127.0.0.1 9 1 0']);
    expect(await bed.hosts()).toEqual(['a.example web']);
    expect((await bed.state()).roles.running).toBe(planIdOf(files));
  });

  test('of a map that the worker has not loaded the file is all there is', async () => {
    await fresh('a.example web\n');
    await runs([
      { kind: 'map_add', map: 'maps/none.map', key: 'a', value: 'b' },
      { kind: 'map_delete', map: 'maps/none.map', key: 'c' },
      { kind: 'map_replace', map: 'maps/none.map', entries: [] },
    ]);
    expect(await bed.runtime('show map')).not.toContain('none.map');
  });

  test('a map is addressed as the configuration spells it, here by its absolute path', async () => {
    const path = `${bed.base}/maps/abs.map`;
    files = bed.files({
      extra: `  http-request set-header x %[req.hdr(host),map(${path})]`,
      more: { 'maps/abs.map': 'a b\n' },
    });
    await bed.apply({ files });
    pid = (await bed.state()).haproxy.workerPid;
    await runs([{ kind: 'map_add', map: 'maps/abs.map', key: 'c', value: 'd' }]);
    expect(await bed.runtime(`show map ${path}`)).toMatch(/ a b\n.* c d$/);
  });

  test('operations and large files go side by side, and both arrive', async () => {
    await fresh('a.example web\n');
    const big = `# ${'x'.repeat(3_000_000)}\n`;
    files = { ...files, 'general/big': big };
    const outcome = await bed.apply({
      files,
      mode: 'auto',
      reload: false,
      operations: [add('s1')],
    });
    expect(outcome.outcome).toBe('runtime');
    expect(outcome.timings.confirmed).toBeLessThan(outcome.timings.total);
    const state = await bed.state(true);
    expect(state.files.find(({ path }) => path === 'general/big')?.digest).toBe(sha256(big));
    expect(await bed.servers('web')).toHaveLength(1);
  });
});

/** What the agent has counted that was not as it should be, or not looked at. */
const drift = async (bed: Bed): Promise<string[]> =>
  (await (await fetch(`${bed.agent.url}/metrics`)).text())
    .split('\n')
    .filter((line) => /^haptic_agent_(drift_found_total.*runtime|unverified)/.test(line));
