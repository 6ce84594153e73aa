import fc from 'fast-check';
import { Agent, createServer, request, type Server as HttpServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BASE_CAPABILITIES } from '../../../src/plan/classify.ts';
import { applyOperations } from '../../../src/plan/apply-operations.ts';
import { diff } from '../../../src/plan/diff.ts';
import type { Server } from '../../../src/plan/plan.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import { isUsable } from '../../../src/plan/server-changes.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { executeOperations } from '../../support/execute-operations.ts';
import {
  freePort,
  haproxyVersions,
  runtimeCommand,
  type RunningHaproxy,
} from '../../support/haproxy.ts';
import { planOf, sha256, type World, type WorldBackend } from '../../support/plan-world.ts';
import { HASH_KEY, pairOf, runtimeEdit, world } from '../../support/plans.ts';
import { startWorld, type WorldProcess } from '../../support/world-process.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
/** Pairs of plans that share a process; their sum is what is tried per version. */
const ROUNDS = [50, 50, 50, 40, 6, 1, 1, 1, 1, 1, 1, 1].flatMap((pairs) =>
  LONG ? Array.from({ length: 10 }, () => pairs) : [pairs],
);
const SEED = LONG ? Date.now() : 20_261_129;

/** Answers with the address and port that were asked, on every local address. */
let echo: HttpServer;
let ports: readonly [number, number];
const echoes: HttpServer[] = [];
const client = new Agent({ keepAlive: true, maxSockets: 8 });

beforeAll(async () => {
  ports = [await freePort(), await freePort()];
  for (const port of ports) {
    echo = createServer(({ socket }, response) => {
      response.end(`${socket.localAddress ?? ''}:${socket.localPort ?? 0}`);
    });
    echoes.push(echo);
    await new Promise<void>((resolve) => echo.listen(port, '0.0.0.0', resolve));
  }
});

afterAll(() => {
  client.destroy();
  for (const server of echoes) server.close().closeAllConnections();
});

const CORE = [
  'frontend entry',
  '    bind unix@./web.sock',
  '    http-request set-header x-sub %[req.hdr(x-route),map_sub(maps/regex.map,none)]',
  ...['map_str(maps/exact.map)', 'map_beg(maps/prefix.map)'].map(
    (map) => `    use_backend %[req.hdr(x-route),${map}] if { req.hdr(x-route),${map} -m found }`,
  ),
];
const WEB = ['mode http', 'timeout client 5s', 'timeout server 5s', 'timeout connect 1s'];

/** Ports that answer, and addresses that this machine has. */
const real = (backend: WorldBackend): WorldBackend => ({
  ...backend,
  servers: backend.servers.map((server) => ({
    ...server,
    port: server.port === 80 ? ports[0] : ports[1],
    address: server.address === '10.0.0.1' ? '127.0.1.9' : server.address,
  })),
});

/** Several worlds in one process: names and keys get the world's number in front. */
function merged(worlds: readonly World[]): World {
  const named = worlds.map((world, number) => {
    const prefix = `p${number}_`;
    const names = new Set(world.backends.map(({ name }) => name));
    const value = (text: string): string => (names.has(text) ? prefix + text : text);
    return {
      backends: world.backends.map((backend) => real({ ...backend, name: prefix + backend.name })),
      maps: world.maps.map((map) => ({
        ...map,
        entries: map.entries.map(([key, target]) => [prefix + key, value(target)] as const),
      })),
    };
  });
  return {
    core: CORE,
    profiles: { web: WEB },
    backends: named.flatMap(({ backends }) => backends),
    maps: ['maps/exact.map', 'maps/prefix.map', 'maps/regex.map'].map((path) => ({
      path,
      ordered: path === 'maps/regex.map',
      entries: named.flatMap(({ maps }) => maps.find((map) => map.path === path)?.entries ?? []),
    })),
    files: [],
  };
}

const started = (before: World): Parameters<typeof diff>[0] => {
  const plan = planOf(before);
  return { applied: plan, running: plan, worker: runtimeState(plan), workerOperations: 0 };
};
const changes = (before: World, after: World): ReturnType<typeof diff> =>
  diff(started(before), planOf(after), BASE_CAPABILITIES);

type Pair = readonly [before: World, after: World];
const sampled = new Map<number, readonly Pair[]>();

/** Pairs that need no reload; the same for every version. */
function pairs(count: number, seed: number): readonly Pair[] {
  const found =
    sampled.get(seed) ??
    fc
      .sample(pairOf(runtimeEdit), { seed, numRuns: count * 3 + 20 })
      .filter(([before, after]) => changes(before, after).verdict === 'runtime')
      .slice(0, count);
  sampled.set(seed, found);
  expect(found).toHaveLength(count);
  return found;
}

/** Servers as they take part in balancing, and entries of maps. A server that drains is one without weight. */
async function stateOf({ workerSocket }: RunningHaproxy): Promise<unknown> {
  const rows = (await runtimeCommand(workerSocket, 'show servers state'))
    .split('\n')
    .filter((line) => /^\d+ /.test(line))
    .map((line) => line.split(' '));
  const servers = rows.map(([, backend, , name, address, , admin, weight, ...rest]) => {
    const maintenance = (Number(admin) & 3) !== 0;
    return `${backend}/${name} ${address}:${rest[10]} weight ${weight} ${maintenance ? 'maint' : 'in service'}`;
  });
  const maps = ['exact', 'prefix', 'regex'].map(async (name) => {
    const text = await runtimeCommand(workerSocket, `show map maps/${name}.map`);
    const entries = text.split('\n').map((line) => line.replace(/^0x[0-9a-f]+ /, ''));
    return name === 'regex' ? entries : entries.sort();
  });
  return { servers: servers.sort(), maps: await Promise.all(maps) };
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

const ask = ({ dir }: WorldProcess, headers: Readonly<Record<string, string>>): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const call = request(
      { socketPath: join(dir, 'web.sock'), agent: client, headers },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (part: string) => (body += part));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    call.on('error', reject).end();
  });

/** Where requests through the map of exact keys end, by key; only for backends whose servers all answer here. */
async function reached(process: WorldProcess, world: World, most: number): Promise<unknown> {
  const backends = new Map(world.backends.map((backend) => [backend.name, backend]));
  const routes = (world.maps[0]?.entries ?? []).flatMap(([key, value]) => {
    const backend = backends.get(value);
    const here = backend?.servers.every(({ address }) => !address.includes(':')) ?? false;
    return backend !== undefined && here && /^[\w.-]+$/.test(key) ? [{ key, backend }] : [];
  });
  const answers = routes.slice(0, most).map(async ({ key, backend }) => {
    const allowed = backend.servers
      .filter(isUsable)
      .map(({ address, port }) => `${address}:${port}`);
    const bodies: string[] = [];
    for (let number = 0; number < 8; number += 1) {
      const { status, body } = await ask(process, { 'x-route': key, 'x-key': `key-${number}` });
      expect(status, `${key} to ${backend.name}`).toBe(allowed.length === 0 ? 503 : 200);
      if (allowed.length > 0) expect(allowed).toContain(body);
      bodies.push(body);
    }
    // Only hashing says which server answers which request.
    return [key, backend.balance.startsWith('hash') ? bodies : allowed.sort()];
  });
  return Promise.all(answers);
}

test('the pairs that are tried include what is easily got wrong', () => {
  const all = ROUNDS.flatMap((count, round) => pairs(count, SEED + round));
  expect(all.length).toBeGreaterThanOrEqual(200);
  const how = (is: (before: WorldBackend, after: WorldBackend) => boolean): number =>
    all.filter(([before, after]) =>
      before.backends.some((old, at) => is(old, after.backends[at] ?? old)),
    ).length;
  const servers = (
    is: (server: Server, others: readonly Server[], before: readonly Server[]) => boolean,
  ): number =>
    how((before, after) =>
      after.servers.some((one) => before !== after && is(one, after.servers, before.servers)),
    );
  const place = ({ address, port }: Server): string => `${address}:${port}`;
  const named = (name: string, list: readonly Server[]): boolean =>
    list.some((other) => other.name === name);
  const counts = {
    renames: servers((one, after, before) =>
      before.some(
        (old) => place(old) === place(one) && !named(one.name, before) && !named(old.name, after),
      ),
    ),
    'weight 0': servers(({ weight, state }) => weight === 0 && state === 'ready'),
    'weight 256': servers(({ weight }) => weight === 256),
    'names of 127 characters': servers(({ name }) => name.length === 127),
    'two servers on one address': servers((one, after) =>
      after.some((other) => other !== one && place(other) === place(one)),
    ),
    'names that objects trip over': servers(({ name }) => name in {}),
    'servers that drain': servers(({ state }) => state === 'drain'),
    'hashed addresses that change': how(
      (before, after) =>
        before.hashType === 'consistent' &&
        before.servers.some((old) =>
          after.servers.some(({ name, address }) => name === old.name && address !== old.address),
        ),
    ),
    'values to be escaped': all.filter(([before, after]) =>
      changes(before, after).operations.some(
        (one) => one.kind === 'map_set' && one.value.includes(';'),
      ),
    ).length,
    'replaced maps': all.filter(([before, after]) =>
      changes(before, after).operations.some(({ kind }) => kind === 'map_replace'),
    ).length,
  };
  for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(4);
});

describe.each(haproxyVersions())('P2 on HAProxy $version', ({ binary }) => {
  test.each(ROUNDS.map((count, round) => ({ count, round })))(
    'operations leave $count pairs of plans as a fresh process has them (round $round)',
    async ({ count, round }) => {
      const sample = pairs(count, SEED + round);
      const upTo = (number: number): World =>
        merged(sample.map((pair, at) => pair[at < number ? 1 : 0]));
      const [before, after] = [upTo(0), upTo(count)];
      const worker = await startWorld(binary, before);
      const fresh = await startWorld(binary, after);
      // Pair by pair, so that each has the operations it would have alone.
      const running = planOf(before);
      let applied = running;
      for (let number = 1; number <= count; number += 1) {
        const plan = planOf(upTo(number));
        const baseline = { applied, running, worker: runtimeState(applied), workerOperations: 0 };
        const { verdict, operations } = diff(baseline, plan, BASE_CAPABILITIES);
        expect(verdict).toBe('runtime');
        await executeOperations(worker, operations);
        applied = plan;
      }
      expect(await stateOf(worker)).toEqual(await stateOf(fresh));
      expect(await reached(worker, after, 12)).toEqual(await reached(fresh, after, 12));
      await Promise.all([worker.stop(), fresh.stop()]);
    },
  );

  test('a worker that took one plan after another holds what a fresh process holds', async () => {
    const start = merged(fc.sample(world, { seed: SEED, numRuns: 4 }));
    const edits = fc.sample(runtimeEdit, { seed: SEED, numRuns: 150 });
    const worker = await startWorld(binary, start);
    const running = planOf(start);
    let [current, state, changed] = [start, runtimeState(running), 0];
    for (const edit of edits) {
      const next = { ...edit(current), backends: edit(current).backends.map(real) };
      const baseline = { ...started(start), worker: state };
      const { verdict, operations } = diff(baseline, planOf(next), BASE_CAPABILITIES);
      if (verdict !== 'runtime') continue;
      await executeOperations(worker, operations);
      state = applyOperations(state, operations, sha256);
      [current, changed] = [next, changed + 1];
    }
    expect(changed).toBeGreaterThan(50);
    const fresh = await startWorld(binary, current);
    expect(await stateOf(worker)).toEqual(await stateOf(fresh));
    expect(await reached(worker, current, 12)).toEqual(await reached(fresh, current, 12));
    await Promise.all([worker.stop(), fresh.stop()]);
  });
});

/** Servers of one name each, on addresses of their own. */
const backend = (name: string, servers: Readonly<Record<string, string>>): WorldBackend => ({
  name,
  profile: 'web',
  balance: 'roundrobin',
  dynamic: true,
  body: [],
  comment: '',
  servers: Object.entries(servers).map(([server, address]) => ({
    name: server,
    address,
    port: 80,
    weight: 100,
    state: 'ready',
    keywords: HASH_KEY,
  })),
});
const serving = (backends: readonly WorldBackend[], target: string): World => ({
  ...merged([]),
  backends: backends.map(real),
  maps: [
    { path: 'maps/exact.map', ordered: false, entries: [['shop', target]] },
    { path: 'maps/prefix.map', ordered: false, entries: [] },
    { path: 'maps/regex.map', ordered: true, entries: [] },
  ],
});

const MOVES: readonly (readonly [what: string, before: () => World, after: () => World])[] = [
  [
    'a server that gets another name',
    () => serving([backend('shop', { old: '127.0.1.1' })], 'shop'),
    () => serving([backend('shop', { new: '127.0.1.1' })], 'shop'),
  ],
  [
    'a route that moves to another backend, whose servers come as those of the first go',
    () => serving([backend('one', { a: '127.0.1.1' }), backend('two', {})], 'one'),
    () => serving([backend('one', {}), backend('two', { b: '127.0.1.2' })], 'two'),
  ],
];

/** Status of a request after each operation. */
async function statuses(
  binary: string,
  before: World,
  operations: readonly Operation[],
): Promise<readonly number[]> {
  const worker = await startWorld(binary, before);
  const seen = [(await ask(worker, { 'x-route': 'shop' })).status];
  for (const operation of operations) {
    await executeOperations(worker, [operation]);
    seen.push((await ask(worker, { 'x-route': 'shop' })).status);
  }
  await worker.stop();
  return seen;
}

describe.each(haproxyVersions())('P5 on HAProxy $version', ({ binary }) => {
  test.each(MOVES)(
    'no request is lost on the way of %s, but it is in the wrong order',
    async (...move) => {
      const [, before, after] = move;
      const { operations } = changes(before(), after());
      expect(operations.length).toBeGreaterThan(1);
      expect(new Set(await statuses(binary, before(), operations))).toEqual(new Set([200]));
      expect(await statuses(binary, before(), operations.toReversed())).toContain(503);
    },
  );
});
