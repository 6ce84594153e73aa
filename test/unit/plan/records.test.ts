import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyOperations } from '../../../src/plan/apply-operations.ts';
import { OperationError } from '../../../src/plan/operation-error.ts';
import {
  backendRecord,
  buildPlan,
  mapEntries,
  mapEntry,
  orderedKey,
  planFile,
  planMap,
  PlanError,
  profileRecord,
  type BackendInput,
  type PlanParts,
} from '../../../src/plan/build.ts';
import { merkleMap } from '../../../src/plan/merkle-map.ts';
import type { Server } from '../../../src/plan/plan.ts';
import { runtimeDigest, runtimeState } from '../../../src/plan/runtime-state.ts';
import { parsePlan, PlanFormatError, serialisePlan } from '../../../src/plan/serialise.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { planOf, sha256, type World } from '../../support/plan-world.ts';
import { RUNS, world as anyWorld } from '../../support/plans.ts';

const server: Server = {
  name: 'a',
  address: '10.0.0.1',
  port: 80,
  weight: 100,
  state: 'ready',
  keywords: ['check'],
};
const backend: BackendInput = {
  name: 'shop',
  mode: 'http',
  profile: 'web',
  balance: 'roundrobin',
  structure: sha256('structure'),
  text: sha256('text'),
  dynamic: true,
  bare: true,
  servers: [server],
};
const record = (change: Partial<BackendInput> = {}): ReturnType<typeof backendRecord> =>
  backendRecord({ ...backend, ...change }, sha256);

const world: World = {
  core: ['frontend entry'],
  profiles: { web: ['mode http'] },
  backends: [
    {
      name: 'shop',
      profile: 'web',
      balance: 'roundrobin',
      dynamic: true,
      body: [],
      comment: '',
      servers: [server],
    },
    {
      name: 'fixed',
      profile: 'web',
      balance: 'roundrobin',
      dynamic: false,
      body: [],
      comment: '',
      servers: [server],
    },
  ],
  maps: [
    { path: 'maps/a.map', ordered: false, entries: [['k', 'v']] },
    { path: 'maps/r.map', ordered: true, entries: [['^k', 'v']] },
  ],
  files: [],
};

describe('records', () => {
  test.each<readonly [string, Partial<BackendInput>]>([
    ['name', { name: 'other' }],
    ['mode', { mode: 'tcp' }],
    ['profile', { profile: 'other' }],
    ['balance', { balance: 'leastconn' }],
    ['hash type', { hashType: 'consistent' }],
    ['structure', { structure: 'other' }],
    ['text', { text: 'other' }],
    ['dynamic', { dynamic: false }],
    ['reason', { structuralReason: 'because' }],
    ['servers', { servers: [] }],
    ['server name', { servers: [{ ...server, name: 'b' }] }],
    ['address', { servers: [{ ...server, address: '10.0.0.2' }] }],
    ['port', { servers: [{ ...server, port: 81 }] }],
    ['weight', { servers: [{ ...server, weight: 99 }] }],
    ['state', { servers: [{ ...server, state: 'maint' }] }],
    ['keywords', { servers: [{ ...server, keywords: ['che', 'ck'] }] }],
  ])('of backends with another %s have another digest', (_, change) => {
    expect(record(change).digest).not.toBe(record().digest);
  });

  test('of backends do not depend on the order of servers or members', () => {
    const servers = [server, { ...server, name: 'b' }];
    const turned = Object.fromEntries(Object.entries({ ...backend, servers }).reverse());
    expect(backendRecord(turned as unknown as BackendInput, sha256).digest).toBe(
      record({ servers: servers.toReversed() }).digest,
    );
    expect(record({ servers: servers.toReversed() }).servers.map(({ name }) => name)).toEqual([
      'a',
      'b',
    ]);
  });

  test('of entries are injective for any strings', () => {
    fc.assert(
      fc.property(
        fc.tuple(fc.string({ unit: 'binary' }), fc.string(), fc.nat(5)),
        ([key, value, cut]) => {
          const text = key + value;
          const [left, right] = [text.slice(0, cut), text.slice(cut)];
          const equal = left === key && right === value;
          expect(mapEntry(left, right, sha256).digest === mapEntry(key, value, sha256).digest).toBe(
            equal,
          );
        },
      ),
      { numRuns: RUNS },
    );
    expect(mapEntry('\ud800', '', sha256).digest).not.toBe(mapEntry('\ufffd', '', sha256).digest);
    expect(mapEntry('a","b', 'c', sha256).digest).not.toBe(mapEntry('a', 'b","c', sha256).digest);
  });

  test('of different kinds never share a digest', () => {
    const entries = merkleMap<ReturnType<typeof mapEntry>>(sha256);
    const digests = [
      mapEntry('x', 'y', sha256),
      profileRecord({ name: 'x', text: 'y' }, sha256),
      planMap({ path: 'x', ordered: false, entries, text: 'y', size: 0 }, sha256),
      planMap({ path: 'x', ordered: true, entries, text: 'y', size: 0 }, sha256),
      planFile({ path: 'x', kind: 'cert', text: 'y', size: 0, reloadOnChange: true }, sha256),
      planFile({ path: 'x', kind: 'cert', text: 'y', size: 0, reloadOnChange: false }, sha256),
      planFile({ path: 'x', kind: 'general', text: 'y', size: 0, reloadOnChange: true }, sha256),
    ].map(({ digest }) => digest);
    expect(new Set(digests).size).toBe(digests.length);
  });

  test('of servers that drain have no weight', () => {
    const draining = record({ servers: [{ ...server, state: 'drain' }] });
    expect(draining.servers[0]?.weight).toBe(0);
  });

  test.each<readonly [string, Partial<Server>]>([
    ['name', { name: '' }],
    ['name', { name: 'a b' }],
    ['name', { name: 'x'.repeat(128) }],
    ['address', { address: '' }],
    ['port', { port: 0 }],
    ['port', { port: 65_536 }],
    ['weight', { weight: 257 }],
    ['weight', { weight: 1.5 }],
  ])('are refused for a server with a bad %s: %o', (what, change) => {
    const build = (): unknown => record({ servers: [{ ...server, ...change }] });
    expect(build).toThrow(PlanError);
    expect(build).toThrow(`backend "shop": server ${JSON.stringify(change.name ?? 'a')}: ${what}`);
  });

  test('are refused for two servers of one name and for a key that comes twice', () => {
    expect(() => record({ servers: [server, server] })).toThrow('two servers are named a');
    const pairs = [
      ['k', '1'],
      ['k', '2'],
    ] as const;
    expect(() => mapEntries(pairs, { ordered: false, digest: sha256 })).toThrow('"k" comes twice');
    expect(mapEntries(pairs, { ordered: true, digest: sha256 }).size).toBe(2);
  });

  test('of ordered maps have keys that sort as positions do', () => {
    const keys = [0, 1, 9, 10, 99, 100, 123_456].map(orderedKey);
    expect(keys.toSorted()).toEqual(keys);
  });

  test('of a plan need exactly one place for backends', () => {
    const plan = planOf(world);
    const parts = (sections: PlanParts['sections']): PlanParts => ({ ...plan, sections });
    expect(() => buildPlan(parts([]), sha256)).toThrow('not 0');
    expect(() => buildPlan(parts([...plan.sections, ...plan.sections]), sha256)).toThrow('not 2');
    expect(buildPlan(parts(plan.sections), sha256).id).toBe(plan.id);
  });
});

describe('applyOperations', () => {
  const state = runtimeState(planOf(world));
  const place = { backend: 'shop', server: 'a' };
  const missing = { backend: 'shop', server: 'x' };
  const map = 'maps/a.map';
  test.each<Operation>([
    { kind: 'server_remove', backend: 'nowhere', server: 'a' },
    { kind: 'server_remove', ...missing },
    { kind: 'server_remove', backend: 'fixed', server: 'a' },
    { kind: 'server_address', ...missing, address: '::1', port: 1 },
    { kind: 'server_weight', ...missing, weight: 1 },
    { kind: 'server_state', ...missing, state: 'ready' },
    { kind: 'server_add', ...server, ...place },
    { kind: 'server_add', ...server, backend: 'fixed', server: 'x' },
    { kind: 'map_add', map, key: 'k', value: 'v' },
    { kind: 'map_set', map, key: '__proto__', value: 'v' },
    { kind: 'map_delete', map, key: 'constructor' },
    { kind: 'map_add', map: 'maps/r.map', key: 'x', value: 'v' },
    { kind: 'map_replace', map: 'maps/none.map', entries: [] },
    { kind: 'backend_publish', backend: 'nowhere' },
    { kind: 'backend_remove', backend: 'fixed' },
    { kind: 'backend_add', backend: 'fixed', profile: 'web', mode: 'http', structure: '' },
    { kind: 'backend_add', backend: 'new', profile: 'none', mode: 'http', structure: '' },
    { kind: 'server_maxconn', ...place, maxconn: 7 },
    { kind: 'crtlist_add', list: 'no.list', entry: { certificate: 'a', options: [], filters: [] } },
  ])('refuses what a worker would refuse: %o', (operation) => {
    expect(() => applyOperations(state, [operation], sha256)).toThrow(OperationError);
  });

  test('shares what it does not touch', () => {
    const next = applyOperations(state, [{ kind: 'server_weight', ...place, weight: 7 }], sha256);
    expect(next.maps).toBe(state.maps);
    expect(next.backends.get('fixed')).toBe(state.backends.get('fixed'));
    expect(next.backends.get('shop')?.servers[0]?.weight).toBe(7);
    expect(state.backends.get('shop')?.servers[0]?.weight).toBe(100);
  });

  test('lets a server and a key come back after they went', () => {
    const operations: readonly Operation[] = [
      { kind: 'server_remove', ...place },
      { kind: 'server_add', ...server, ...place },
      { kind: 'map_delete', map, key: 'k' },
      { kind: 'map_add', map, key: 'k', value: 'v' },
    ];
    const next = applyOperations(state, operations, sha256);
    expect(runtimeDigest(next, sha256)).toBe(runtimeDigest(state, sha256));
  });
});

describe('a serialised plan', () => {
  const text = serialisePlan(planOf(world));
  const edit = (change: (plan: Record<string, unknown>) => void): string => {
    const plan = JSON.parse(text) as Record<string, unknown>;
    change(plan);
    return JSON.stringify(plan);
  };
  const codeOf = (bad: string): unknown => {
    try {
      return parsePlan(bad, sha256).id;
    } catch (error: unknown) {
      return error instanceof PlanFormatError ? error.code : error;
    }
  };

  test.each([
    ['nothing', ''],
    ['half of it', text.slice(0, text.length / 2)],
    ['null', 'null'],
    ['a list', '[]'],
    ['another version', edit((plan) => (plan['schemaVersion'] = 2))],
    ['an unknown member', edit((plan) => (plan['more'] = 1))],
    ['a missing member', edit((plan) => delete plan['files'])],
    ['a member of another type', edit((plan) => (plan['backends'] = {}))],
    ['an invalid server', text.replace('"port":80', '"port":0')],
    ['a backend that comes twice', text.replaceAll('"name":"fixed"', '"name":"shop"')],
    [
      'a member named __proto__',
      text.replace('"schemaVersion":1', '"schemaVersion":1,"__proto__":{}'),
    ],
  ])('is refused when it is %s', (_, bad) => {
    expect(codeOf(bad)).toBe('plan-format');
  });

  test('is refused when it was written before plans said which backends are bare', () => {
    const recorded = new URL('recorded/plan-of-old-records.json', import.meta.url);
    const old = readFileSync(recorded, 'utf8');
    expect(() => parsePlan(old, sha256)).toThrow('plan.backends[0].bare is not');
    expect(codeOf(old)).toBe('plan-format');
  });

  test('is refused when it is of another plan than its id says', () => {
    expect(codeOf(text.replace('"port":80', '"port":81'))).toBe('plan-id');
    expect(codeOf(edit((plan) => (plan['id'] = '')))).toBe('plan-id');
  });

  test('is refused with nothing but a typed error whatever is cut out of it', () => {
    fc.assert(
      fc.property(fc.nat(text.length), fc.nat(40), (from, length) => {
        const code = codeOf(text.slice(0, from) + text.slice(from + length));
        expect([planOf(world).id, 'plan-format', 'plan-id']).toContain(code);
      }),
      { numRuns: RUNS },
    );
  });

  test('gives a plan whose runtime part is the same', () => {
    fc.assert(
      fc.property(anyWorld, (some) => {
        const plan = planOf(some);
        const read = parsePlan(serialisePlan(plan), sha256);
        expect(runtimeDigest(runtimeState(read), sha256)).toBe(
          runtimeDigest(runtimeState(plan), sha256),
        );
      }),
      { numRuns: RUNS / 10 },
    );
  });
});
