/**
 * Each row of the table of what changes without a reload, on each version that takes it: the difference of two plans is sent to
 * a real worker, and a request or a handshake sees the effect. On versions that do not, the difference says why.
 */
import { X509Certificate } from 'node:crypto';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChangeSet, ReloadReason } from '../../../src/plan/change-set.ts';
import { diff } from '../../../src/plan/diff.ts';
import type { Server } from '../../../src/plan/plan.ts';
import { isReloadFree, RELOAD_FREE, type ReloadFreeId } from '../../../src/plan/reload-free.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import type { CrtListEntry } from '../../../src/protocol/protocol.ts';
import { Authority } from '../../support/authority.ts';
import { executeOperations } from '../../support/execute-operations.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { planOf, type World, type WorldBackend } from '../../support/plan-world.ts';
import { capabilitiesOn } from '../../support/tls-plans.ts';
import { WorkerClient } from '../../support/worker-client.ts';
import { startWorld, writeWorld } from '../../support/world-process.ts';

const CORE = [
  'frontend entry',
  '    bind unix@./web.sock',
  '    use_backend %[req.hdr(x-route),map_str(maps/routes.map)] if { req.hdr(x-route),map_str(maps/routes.map) -m found }',
  '    http-request return status 404 unless { req.hdr(x-route),map_str(maps/routes.map) -m found }',
  'frontend secure',
  '    bind unix@./tls.sock ssl crt-list certs/all.list ca-file certs/ca.pem crl-file certs/ca.crl verify optional crt-ignore-err all',
  '    http-request return status 200 content-type text/plain lf-string %[ssl_c_err]',
];
const PROFILE = [
  ...['mode http', 'balance roundrobin'],
  ...['timeout client 5s', 'timeout server 5s', 'timeout connect 1s'],
];

let root: Authority;
let other: Authority;
let client: TestKeyPair;
let stranger: TestKeyPair;
/** Its signature is another one each time it is made. */
let nobodyRevoked: string;
const pairs: TestKeyPair[] = [];
const pemOf = ({ certificate, key }: TestKeyPair): string => `${certificate}\n${key}\n`;
const mark = (pair: TestKeyPair): string => new X509Certificate(pair.certificate).fingerprint256;

/** Answers with the address that was asked; `/hold` answers when it is told to. */
let echo: HttpServer;
const held: (() => void)[] = [];
const letGo = (): void => held.splice(0).forEach((answer) => answer());

beforeAll(async () => {
  [root, other] = [await Authority.root('root'), await Authority.root('other')];
  for (const name of ['default', 'a', 'b']) {
    pairs.push(await root.issue({ names: [`${name}.example`] }));
  }
  client = await root.issue({ names: ['client'] });
  stranger = await other.issue({ names: ['stranger'] });
  nobodyRevoked = root.revocations([]);
  echo = createServer(({ url, socket }, response) => {
    const answer = (): unknown => response.end(socket.localAddress);
    if (url === '/hold') held.push(answer);
    else answer();
  });
  await new Promise<void>((resolve) => echo.listen(0, '0.0.0.0', resolve));
});

afterAll(() => {
  echo.close().closeAllConnections();
});

const server = (name: string, change: Partial<Server> = {}): Server => ({
  ...{ name, address: '127.0.1.1', port: (echo.address() as AddressInfo).port },
  ...{ weight: 100, state: 'ready', keywords: [], ...change },
});
const second = (change: Partial<Server> = {}): Server =>
  server('b', { address: '127.0.1.2', ...change });
const backend = (servers: readonly Server[], change: Partial<WorldBackend> = {}): WorldBackend => ({
  ...{ name: 'shop', profile: 'web', balance: 'roundrobin', dynamic: true, body: [], comment: '' },
  servers,
  ...change,
});
const line = (certificate: string, ...filters: readonly string[]): CrtListEntry => ({
  ...{ certificate, options: [], filters },
});

interface Change extends Partial<Omit<World, 'files'>> {
  /** Content of files by path, over the usual ones. */
  readonly files?: Readonly<Record<string, string>>;
  readonly lines?: readonly CrtListEntry[];
}

const LINES = [line('certs/default.pem'), line('certs/a.pem', 'a.example')];
const kindOf = (path: string): 'ca' | 'cert' | 'crl' | 'general' => {
  if (path === 'certs/ca.pem') return 'ca';
  if (path.endsWith('.pem')) return 'cert';
  return path.endsWith('.crl') ? 'crl' : 'general';
};

const world = ({ files = {}, lines = LINES, ...change }: Change = {}): World => ({
  core: CORE,
  profiles: { web: PROFILE },
  backends: [backend([server('a')])],
  maps: [{ path: 'maps/routes.map', ordered: false, entries: [['shop', 'shop']] }],
  lists: [{ path: 'certs/all.list', lines }],
  files: Object.entries({
    'certs/default.pem': pemOf(pairs[0]!),
    'certs/a.pem': pemOf(pairs[1]!),
    'certs/ca.pem': `${root.certificate}\n`,
    'certs/ca.crl': nobodyRevoked,
    'general/note.txt': 'a note',
    ...files,
  }).map(([path, text]) => ({
    path,
    text,
    reloadOnChange: path !== 'general/note.txt',
    kind: kindOf(path),
  })),
  ...change,
});

interface Scenario {
  readonly before?: Change;
  readonly after: Change;
  /** What a client sees; the same must not hold before. Absent: nothing, for files that nobody reads now. */
  readonly effect?: (client: WorkerClient) => Promise<void>;
  /** Why it needs a reload where no command does it. */
  readonly cause?: ReloadReason['cause'];
}

const answersAre =
  (...answers: readonly string[]) =>
  async (one: WorkerClient): Promise<void> => {
    expect(await one.answers()).toEqual(answers);
  };
const both = (change: Partial<Server> = {}): readonly WorldBackend[] => [
  backend([server('a'), second(change)]),
];
const limited = (limit: string): readonly WorldBackend[] => [
  backend([server('a', { keywords: ['maxconn', limit] })]),
];
const routes = (...names: readonly string[]): World['maps'] => [
  {
    ...{ path: 'maps/routes.map', ordered: false },
    entries: names.map((name) => [name, name === 'alias' ? 'shop' : name] as const),
  },
];
const late = (): WorldBackend => backend([second()], { name: 'late' });

/** One for each row: a row without a scenario does not compile. */
const SCENARIOS: Readonly<Record<ReloadFreeId, () => Scenario>> = {
  'server-address': () => ({
    after: { backends: [backend([server('a', { address: '127.0.1.9' })])] },
    effect: answersAre('127.0.1.9'),
  }),
  'server-weight': () => ({
    before: { backends: both() },
    after: { backends: both({ weight: 0 }) },
    effect: answersAre('127.0.1.1'),
  }),
  'server-state': () => ({
    before: { backends: both() },
    after: { backends: both({ state: 'maint' }) },
    effect: answersAre('127.0.1.1'),
  }),
  'server-maxconn': () => ({
    before: { backends: limited('1') },
    after: { backends: limited('2') },
    effect: async (one) => {
      const waiting = [one.ask('shop', '/hold'), one.ask('shop', '/hold')];
      try {
        await waitFor(() => held.length === 2, { timeoutMs: 1_000, what: 'both at the server' });
      } finally {
        letGo();
        const rest = setInterval(letGo, 20);
        await Promise.all(waiting);
        clearInterval(rest);
      }
    },
  }),
  'server-keywords': () => ({
    after: { backends: [backend([server('a', { keywords: ['backup'] })])] },
    cause: 'server-keywords',
  }),
  'server-add': () => ({
    after: { backends: both() },
    effect: answersAre('127.0.1.1', '127.0.1.2'),
  }),
  'server-remove': () => ({
    before: { backends: both() },
    after: {},
    effect: answersAre('127.0.1.1'),
  }),
  'backend-add': () => ({
    after: { backends: [late(), backend([server('a')])], maps: routes('shop', 'late') },
    effect: async (one) => expect(await one.ask('late')).toBe('127.0.1.2'),
    cause: 'backend-added',
  }),
  'backend-remove': () => ({
    before: { backends: [late(), backend([server('a')])], maps: routes('shop', 'late') },
    after: {},
    effect: async (one) => expect(await one.ask('late')).toBe('404'),
    cause: 'backend-removed',
  }),
  'backend-structure': () => ({
    after: { backends: [backend([server('a')], { body: ['option httpclose'] })] },
    cause: 'backend-structure',
  }),
  'map-entries': () => ({
    after: { maps: routes('alias', 'shop') },
    effect: async (one) => expect(await one.ask('alias')).toBe('127.0.1.1'),
  }),
  'map-file': () => ({
    after: { maps: [...routes('shop'), { ...routes('x')[0]!, path: 'maps/new.map' }] },
  }),
  certificate: () => ({
    after: { files: { 'certs/a.pem': pemOf(pairs[2]!) } },
    effect: async (one) => expect(await one.served('a.example')).toBe(mark(pairs[2]!)),
  }),
  'ca-file': () => ({
    after: {
      files: { 'certs/ca.pem': `${other.certificate}\n`, 'certs/ca.crl': other.revocations([]) },
    },
    effect: async (one) => expect((await one.shake('a.example', stranger)).error).toBe('0'),
  }),
  'crl-file': () => ({
    after: { files: { 'certs/ca.crl': root.revocations([client]) } },
    effect: async (one) => expect((await one.shake('a.example', client)).error).not.toBe('0'),
  }),
  'crt-list-lines': () => ({
    after: {
      files: { 'certs/b.pem': pemOf(pairs[2]!) },
      lines: [...LINES, line('certs/b.pem', 'b.example')],
    },
    effect: async (one) => expect(await one.served('b.example')).toBe(mark(pairs[2]!)),
  }),
  'crt-list-file': () => ({
    after: { lists: [...(world().lists ?? []), { path: 'certs/more.list', lines: LINES }] },
    cause: 'file-changed',
  }),
  'plain-file': () => ({ after: { files: { 'general/note.txt': 'another note' } } }),
  profile: () => ({
    after: { profiles: { web: [...PROFILE, 'retries 2'] } },
    cause: 'profile-changed',
  }),
  core: () => ({
    after: { core: [...CORE, '    maxconn 10'] },
    cause: 'core-changed',
  }),
};

const changes = ([before, after]: readonly [World, World], haproxy: string): ChangeSet => {
  const plan = planOf(before);
  const roles = { applied: plan, running: plan, worker: runtimeState(plan) };
  return diff({ ...roles, workerOperations: 0 }, planOf(after), capabilitiesOn(haproxy));
};

const ids = Object.keys(RELOAD_FREE) as ReloadFreeId[];

describe.each(haproxyVersions())(
  'what changes without a reload on HAProxy $version',
  ({ binary, version }) => {
    test.each(ids.filter((id) => isReloadFree(id, version)))(
      'P2: %s is taken at run time, and clients see it',
      async (id) => {
        const { before = {}, after, effect } = SCENARIOS[id]();
        const [old, now] = [world(before), world(after)];
        const { verdict, operations, reasons } = changes([old, now], version);
        expect(reasons).toEqual([]);
        expect(verdict).toBe(effect === undefined ? 'files' : 'runtime');
        const worker = await startWorld(binary, old);
        const one = new WorkerClient(worker.dir);
        if (effect !== undefined) await expect(effect(one)).rejects.toThrow();
        writeWorld(worker.dir, now);
        await executeOperations(worker, operations);
        await effect?.(one);
        expect(await one.ask()).not.toBe('503');
        await worker.stop();
      },
    );

    test.each(ids.filter((id) => !isReloadFree(id, version)))(
      'P4: %s needs a reload, and the difference says why',
      (id) => {
        const { before = {}, after, cause } = SCENARIOS[id]();
        const { verdict, reasons } = changes([world(before), world(after)], version);
        expect(verdict).toBe('reload');
        expect(reasons.map((reason) => reason.cause)).toContain(cause);
      },
    );
  },
);
