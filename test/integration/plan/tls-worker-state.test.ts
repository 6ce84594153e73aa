/** P2 over backends, certificates, their authorities and certificate lists; servers and maps have worker-state.test.ts. */
import fc from 'fast-check';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { diff } from '../../../src/plan/diff.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import { isUsable } from '../../../src/plan/server-changes.ts';
import { Authority } from '../../support/authority.ts';
import { executeOperations } from '../../support/execute-operations.ts';
import { haproxyVersions, runtimeCommand, waitFor } from '../../support/haproxy.ts';
import { planOf, type World } from '../../support/plan-world.ts';
import { capabilitiesOn, reloadFreePair } from '../../support/tls-plans.ts';
import { WorkerClient } from '../../support/worker-client.ts';
import { startWorld, writeWorld, type WorldProcess } from '../../support/world-process.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
const RUNS = LONG ? 300 : 12;
const SEED = LONG ? Date.now() : 20_261_130;
const HOSTS = ['a.example', 'b.example', 'c.example', 'x.example', 'nobody.test'];

const CORE = [
  'frontend entry',
  '    bind unix@./web.sock',
  '    http-request return status 404 unless { req.hdr(x-route),map_str(maps/hosts.map) -m found }',
  '    use_backend %[req.hdr(x-route),map_str(maps/hosts.map)]',
  'frontend secure',
  '    bind unix@./tls.sock ssl crt-list certs/https.crt-list',
  '    http-request return status 200',
];
const PROFILE = [
  ...['mode http', 'balance roundrobin', 'retries 0'],
  ...['timeout client 5s', 'timeout server 5s', 'timeout connect 1s'],
];

/** By the text that stands for it in a world. */
const pems = new Map<string, string>();
let echo: HttpServer;

beforeAll(async () => {
  const root = await Authority.root('root');
  for (const number of [0, 1, 2]) {
    pems.set(`authority ${number}`, `${(await Authority.root(`ca ${number}`)).certificate}\n`);
    for (const name of ['default', 'shop_0', 'shop_1', 'shop_2']) {
      const { certificate, key } = await root.issue({ names: [`${name}-${number}.test`] });
      pems.set(`certs/${name}.pem ${number}`, `${certificate}\n${key}\n`);
    }
  }
  echo = createServer(({ socket }, response) => response.end(socket.localAddress));
  await new Promise<void>((resolve) => echo.listen(0, '0.0.0.0', resolve));
});

afterAll(() => {
  echo.close().closeAllConnections();
});

const LOCAL = new Map([
  ['10.0.0.1', '127.0.2.1'],
  ['2001:db8::1', '127.0.2.2'],
  ['2001:db8::2', '127.0.2.3'],
  ['::1', '127.0.2.4'],
]);

/** Real certificates, and addresses that answer. */
const real = (world: World): World => ({
  ...world,
  core: CORE,
  profiles: { web: PROFILE },
  backends: world.backends.map((backend) => ({
    ...backend,
    servers: backend.servers.map((server) => ({
      ...server,
      address: LOCAL.get(server.address) ?? server.address,
      port: (echo.address() as AddressInfo).port,
    })),
  })),
  files: world.files.map((file) => ({ ...file, text: pems.get(file.text) ?? file.text })),
});

/** The second world with the backends and routes of the first, for versions that add none. */
const keeping = ([before, after]: readonly [World, World]): readonly [World, World] => {
  const isAuthority = ({ kind }: World['files'][number]): boolean => kind === 'ca';
  const files = [
    ...after.files.filter((file) => !isAuthority(file)),
    ...before.files.filter(isAuthority),
  ];
  return [before, { ...after, backends: before.backends, maps: before.maps, files }];
};

/** What a worker says it holds, in an order of its own. */
async function stateOf({ workerSocket }: WorldProcess, world: World): Promise<unknown> {
  const lines = async (command: string): Promise<readonly string[]> =>
    (await runtimeCommand(workerSocket, command))
      .split('\n')
      .map((line) => line.replace(/^0x[0-9a-f]+ /, '').replace(/:\d+(?= |$)/, ''))
      .filter((line) => line !== '' && !line.startsWith('#'))
      .sort();
  const servers = (await lines('show servers state'))
    .map((line) => line.split(' '))
    .filter((fields) => fields.length > 10)
    .map((f) => `${f[1]}/${f[3]} ${f[4]}:${f[18]} weight ${f[7]} admin ${Number(f[6]) & 3}`);
  const certificates: string[] = [];
  for (const name of await lines('show ssl cert')) {
    const text = await runtimeCommand(workerSocket, `show ssl cert ${name}`);
    certificates.push(`${name} ${/^SHA1 FingerPrint: (\w+)/m.exec(text)?.[1] ?? text}`);
  }
  return {
    servers: servers.sort(),
    backends: await lines('show backend'),
    routes: await lines('show map maps/hosts.map'),
    list: await lines(`show ssl crt-list -n ${world.lists?.[0]?.path ?? ''}`),
    certificates,
  };
}

/** What clients get: a server that takes traffic for each route, and this certificate for each name. */
async function seen({ dir }: WorldProcess, world: World): Promise<unknown> {
  const client = new WorkerClient(dir);
  for (const [route, name] of world.maps[0]?.entries ?? []) {
    const servers = world.backends.find((backend) => backend.name === name)?.servers ?? [];
    // Nobody here speaks TLS, so a backend that does is the same as one without servers.
    const usable = servers.filter((one) => isUsable(one) && !one.keywords.includes('ssl'));
    const allowed = usable.length === 0 ? ['503'] : usable.map(({ address }) => address);
    for (const answer of await client.answers(route)) expect(allowed).toContain(answer);
  }
  const served: string[] = [];
  for (const name of HOSTS) served.push(await client.served(name));
  return served;
}

describe.each(haproxyVersions())(
  'P2 of TLS and backends on HAProxy $version',
  ({ binary, version }) => {
    test(
      'operations leave a worker, and its clients, as a fresh process has them',
      async () => {
        const kinds = new Map<string, number>();
        await fc.assert(
          fc.asyncProperty(reloadFreePair, async (pair) => {
            const [before, after] = version === '3.4' ? pair : keeping(pair);
            const [old, now] = [real(before), real(after)];
            const plan = planOf(old);
            const { verdict, operations, reasons } = diff(
              { applied: plan, running: plan, worker: runtimeState(plan), workerOperations: 0 },
              planOf(now),
              capabilitiesOn(version),
            );
            expect(verdict, JSON.stringify(reasons)).not.toBe('reload');
            for (const { kind } of operations) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
            const [worker, fresh] = [await startWorld(binary, old), await startWorld(binary, now)];
            try {
              writeWorld(worker.dir, now);
              await executeOperations(worker, operations);
              const wanted = await stateOf(fresh, now);
              const agrees = async (): Promise<boolean> =>
                isDeepStrictEqual(await stateOf(worker, now), wanted);
              // HAProxy changes addresses a moment later.
              await waitFor(agrees, { timeoutMs: 3_000 }).catch(() => undefined);
              expect(await stateOf(worker, now)).toEqual(wanted);
              expect(await seen(worker, now)).toEqual(await seen(fresh, now));
            } finally {
              await Promise.all([worker.stop(), fresh.stop()]);
            }
          }),
          { numRuns: RUNS, seed: SEED, endOnFailure: !LONG },
        );
        const wanted = ['cert_set', 'cert_add', 'cert_remove', 'crtlist_add', 'crtlist_delete'];
        if (version === '3.4')
          wanted.push('backend_add', 'backend_remove', 'server_add', 'map_set');
        for (const kind of wanted) expect(kinds.get(kind), kind).toBeGreaterThan(2);
      },
      LONG ? 3_600_000 : 120_000,
    );
  },
);
