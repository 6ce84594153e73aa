import { describe, expect, test } from 'vitest';
import { BASE_CAPABILITIES, classify } from '../../../src/plan/classify.ts';
import type { Baseline, Capabilities, ChangeSet } from '../../../src/plan/change-set.ts';
import { diff, diffRuntime } from '../../../src/plan/diff.ts';
import { graftServers } from '../../../src/plan/graft.ts';
import type { Plan, Server } from '../../../src/plan/plan.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import { planOf, type World, type WorldBackend } from '../../support/plan-world.ts';

const server = (name: string, change: Partial<Server> = {}): Server => ({
  name,
  address: '10.0.0.1',
  port: 80,
  weight: 100,
  state: 'ready',
  keywords: [],
  ...change,
});
const backend = (name: string, servers: readonly Server[], change: Partial<WorldBackend> = {}) => ({
  name,
  profile: 'web',
  balance: 'roundrobin',
  dynamic: true,
  body: [],
  comment: '',
  servers,
  ...change,
});
const route = (...entries: readonly (readonly [string, string])[]): World['maps'] => [
  { path: 'maps/a.map', ordered: false, entries },
];
const world = (change: Partial<World> = {}): World => ({
  core: ['frontend entry'],
  profiles: { web: ['mode http'] },
  backends: [backend('shop', [server('a'), server('b')])],
  maps: route(['shop.example', 'shop']),
  files: [{ path: 'general/500.http', text: '500', reloadOnChange: true }],
  ...change,
});

const started = (plan: Plan): Baseline => ({
  applied: plan,
  running: plan,
  worker: runtimeState(plan),
  workerOperations: 0,
});
const change = (
  before: World,
  after: World,
  capabilities: Capabilities = BASE_CAPABILITIES,
): ChangeSet => diff(started(planOf(before)), planOf(after), capabilities);
/** Kind and target of each operation. */
const words = (operations: ChangeSet['operations']): readonly string[] =>
  operations.map((one) => {
    if ('server' in one) return `${one.kind} ${one.backend}/${one.server}`;
    if ('backend' in one) return `${one.kind} ${one.backend}`;
    if ('list' in one) return `${one.kind} ${one.list} ${one.entry.filters.join(' ')}`;
    if ('file' in one) return `${one.kind} ${one.file}`;
    return `${one.kind} ${one.map} ${'key' in one ? one.key : `of ${one.entries.length}`}`;
  });
const causes = ({ reasons }: ChangeSet): readonly string[] => reasons.map(({ cause }) => cause);

const shop = (servers: readonly Server[], more: Partial<WorldBackend> = {}): World =>
  world({ backends: [backend('shop', servers, more)] });

describe('diff of servers', () => {
  test('adds what is new before it removes what is gone', () => {
    const { verdict, operations } = change(world(), shop([server('b'), server('c')]));
    expect(verdict).toBe('runtime');
    expect(operations).toEqual([
      {
        kind: 'server_add',
        backend: 'shop',
        server: 'c',
        address: '10.0.0.1',
        port: 80,
        weight: 100,
        state: 'ready',
        keywords: [],
      },
      { kind: 'server_remove', backend: 'shop', server: 'a' },
    ]);
  });

  test('brings servers into service before it takes others out', () => {
    const before = shop([server('a'), server('b', { state: 'maint' })]);
    const after = shop([server('a', { state: 'maint' }), server('b')]);
    expect(words(change(before, after).operations)).toEqual([
      'server_state shop/b',
      'server_state shop/a',
    ]);
  });

  test('takes servers out of service only after the maps lead elsewhere', () => {
    const backends = (inShop: readonly Server[]): readonly WorldBackend[] => [
      backend('shop', inShop),
      backend('cart', [server('z')]),
    ];
    const before = world({ backends: backends([server('a')]) });
    const after = world({ backends: backends([]), maps: route(['shop.example', 'cart']) });
    expect(words(change(before, after).operations)).toEqual([
      'map_set maps/a.map shop.example',
      'server_remove shop/a',
    ]);
  });

  test.each([
    [
      'address before state, into service',
      { state: 'maint' },
      { address: '10.0.0.2' },
      ['server_address', 'server_state'],
    ],
    [
      'state before address, out of service',
      {},
      { address: '10.0.0.2', state: 'maint' },
      ['server_state', 'server_address'],
    ],
    [
      'no weight before the state that ends draining',
      { state: 'drain' },
      { weight: 7 },
      ['server_state', 'server_weight'],
    ],
    ['no weight while it drains', {}, { state: 'drain' }, ['server_state', 'server_weight']],
    [
      'state before weight, from draining to maintenance',
      { state: 'drain' },
      { state: 'maint' },
      ['server_state', 'server_weight'],
    ],
    ['weight alone', { weight: 1 }, { weight: 256 }, ['server_weight']],
    ['port alone', { port: 80 }, { port: 81 }, ['server_address']],
  ] as const)('changes one server in an order that is safe: %s', (...row) => {
    const [, from, to, expected] = row;
    const { operations } = change(shop([server('a', from)]), shop([server('a', to)]));
    expect(operations.map(({ kind }) => kind)).toEqual(expected);
  });

  test.each([
    ['static-rr', {}],
    ['source', { hashType: 'map-based' as const }],
    ['source', {}],
    ['roundrobin', { dynamic: false }],
    ['uri', { hashType: 'consistent' as const }],
  ])('needs a reload to add a server with balance %s and %o', (balance, more) => {
    const change_ = change(
      shop([], { balance, ...more }),
      shop([server('a')], { balance, ...more }),
    );
    expect(change_).toMatchObject({ verdict: 'reload', operations: [] });
    expect(causes(change_)).toEqual(['backend-structure']);
  });

  test('still changes addresses at once where servers cannot come and go', () => {
    const fixed = { balance: 'static-rr' };
    const after = shop([server('a', { address: '10.0.0.9' })], fixed);
    expect(words(change(shop([server('a')], fixed), after).operations)).toEqual([
      'server_address shop/a',
    ]);
  });

  test('sets no weight but 0 with a static balance', () => {
    const fixed = { balance: 'static-rr' };
    const at = (weight: number): World => shop([server('a', { weight })], fixed);
    expect(change(at(100), at(0)).verdict).toBe('runtime');
    expect(change(at(0), at(100)).verdict).toBe('reload');
    expect(change(at(100), at(50)).reasons[0]?.message).toContain('has another weight');
  });

  test('needs a reload for other keywords, and leaves the server alone until then', () => {
    const after = shop([server('a', { keywords: ['check'], address: '10.0.0.2' }), server('c')]);
    const set = change(world(), after);
    expect(causes(set)).toEqual(['server-keywords']);
    expect(words(set.inPlaceOperations)).toEqual(['server_add shop/c']);
  });

  test.each([
    ['init-addr', 'none'],
    ['track', 'x/y'],
    ['id', '7'],
    ['ca-file', 'ca.pem'],
    ['maxconn'],
    ['sni', 'str(a b)'],
  ])('needs a reload to add a server with "%s"', (...keywords) => {
    const set = change(world(), shop([server('a'), server('b'), server('c', { keywords })]));
    expect(causes(set)).toEqual(['server-keywords']);
  });

  test('adds a server with a CA file that a server of the backend uses already', () => {
    const keywords = ['ssl', 'verify', 'required', 'ca-file', 'ca.pem'];
    const before = shop([server('a', { keywords })]);
    const after = shop([server('a', { keywords }), server('c', { keywords })]);
    expect(change(before, after).verdict).toBe('runtime');
  });

  test.each([
    'host.example',
    '10.0.0.256',
    '1.2.3',
    '::1%eth0',
    '[::1]',
    'unix@/s',
    '1:2:3',
    '1::2::3',
  ])('needs a reload for an address that is no literal: %s', (address) => {
    const set = change(world(), shop([server('a', { address }), server('b')]));
    expect(causes(set)).toEqual(['unsupported-operation']);
  });

  test.each(['::', '::1', '2001:db8::1', '1:2:3:4:5:6:7:8', '::ffff:10.0.0.1', '255.255.255.255'])(
    'changes to the literal %s at once',
    (address) => {
      expect(change(world(), shop([server('a', { address }), server('b')])).verdict).toBe(
        'runtime',
      );
    },
  );
});

describe('diff of maps', () => {
  const at = (...entries: readonly (readonly [string, string])[]): World =>
    world({ maps: route(...entries) });

  test('adds, then sets, then deletes', () => {
    const set = change(at(['a', '1'], ['b', '2']), at(['b', '3'], ['c', '4']));
    expect(set.operations).toEqual([
      { kind: 'map_add', map: 'maps/a.map', key: 'c', value: '4' },
      { kind: 'map_set', map: 'maps/a.map', key: 'b', value: '3' },
      { kind: 'map_delete', map: 'maps/a.map', key: 'a' },
    ]);
  });

  test('adds to every map before it sets in any', () => {
    const maps = (group: string, path: string): World['maps'] => [
      { path: 'maps/hosts.map', ordered: false, entries: [['shop.example', group]] },
      { path: 'maps/paths.map', ordered: false, entries: [[path, 'shop']] },
    ];
    const set = change(world({ maps: maps('1', '1/') }), world({ maps: maps('2', '2/') }));
    expect(words(set.operations)).toEqual([
      'map_add maps/paths.map 2/',
      'map_set maps/hosts.map shop.example',
      'map_delete maps/paths.map 1/',
    ]);
  });

  const bulk = (count: number, from = 0): readonly (readonly [string, string])[] =>
    Array.from(
      { length: count },
      (_, n) => [`k${String(from + n).padStart(5, '0')}`, 'v'] as const,
    );

  test('replaces a map of which most changes, when that is many entries', () => {
    expect(words(change(at(), at(...bulk(101))).operations)).toEqual([
      'map_replace maps/a.map of 101',
    ]);
    expect(change(at(), at(...bulk(100))).operations).toHaveLength(100);
    expect(change(at(...bulk(400)), at(...bulk(550))).operations).toHaveLength(150);
  });

  test('replaces an ordered map, with keys that come twice in their order', () => {
    const ordered = (...entries: readonly (readonly [string, string])[]): World =>
      world({ maps: [{ path: 'maps/a.map', ordered: true, entries }] });
    const set = change(ordered(['x', '1'], ['x', '2']), ordered(['x', '2'], ['x', '1']));
    expect(set.operations).toEqual([
      {
        kind: 'map_replace',
        map: 'maps/a.map',
        entries: [
          ['x', '2'],
          ['x', '1'],
        ],
      },
    ]);
  });

  test('keeps keys that move between two maps in one of them all the time', () => {
    const maps = (one: World['maps'][0]['entries'], two: World['maps'][0]['entries']): World =>
      world({
        maps: [
          { path: 'maps/a.map', ordered: true, entries: one },
          { path: 'maps/b.map', ordered: true, entries: two },
        ],
      });
    const set = change(maps([['x', '1']], [['y', '1']]), maps([['y', '1']], [['x', '1']]));
    expect(words(set.operations)).toEqual([
      'map_replace maps/a.map of 2',
      'map_replace maps/b.map of 2',
      'map_replace maps/a.map of 2',
      'map_replace maps/b.map of 2',
      'map_replace maps/a.map of 1',
      'map_replace maps/b.map of 1',
    ]);
  });

  test.each([
    ['two words', 'v'],
    ['#comment', 'v'],
    ['', 'v'],
    ['k', ''],
    ['k', ' v'],
    ['k', 'v '],
    ['k', 'a\nb'],
    ['k', 'a\u0000b'],
    ['k\r', 'v'],
    ['k', '\ud800'],
    ['k', 'x'.repeat(5_000)],
  ])('needs a reload for the entry %j %j', (key, value) => {
    const set = change(at(['a', '1']), at([key, value]));
    expect(causes(set)).toEqual(['unsupported-operation']);
    expect(set.reasons[0]?.message).toContain('maps/a.map');
    expect(set.inPlaceOperations).toEqual([]);
  });

  test.each([
    ['k', 'a b; c "d" \\e \'f\' <<g #h'],
    ['ü', '日本'],
    ['__proto__', 'constructor'],
  ])('carries the entry %j %j', (key, value) => {
    expect(change(at(), at([key, value])).operations).toEqual([
      { kind: 'map_add', map: 'maps/a.map', key, value },
    ]);
  });

  test('needs a reload: map-ordered', () => {
    const ordered = world({ maps: [{ path: 'maps/a.map', ordered: true, entries: [] }] });
    expect(causes(change(world(), ordered))).toEqual(['map-ordered']);
  });

  test.each([
    [
      'new',
      world({
        maps: [
          ...route(['shop.example', 'shop']),
          { path: 'maps/n.map', ordered: false, entries: [['k', 'v']] },
        ],
      }),
    ],
    ['gone', world({ maps: [] })],
  ])('is a file alone while a map is %s and nothing else changes', (_, after) => {
    expect(change(world(), after)).toMatchObject({ verdict: 'files', operations: [], reasons: [] });
  });
});

describe('a map that came after the worker was started', () => {
  test('gets no command: what the worker has loaded cannot name it', () => {
    const more = (value: string): World =>
      world({
        maps: [...world().maps, { path: 'maps/n.map', ordered: false, entries: [['k', value]] }],
      });
    const [running, before, after] = [world(), more('1'), more('2')].map((some) =>
      planOf(some),
    ) as [Plan, Plan, Plan];
    const baseline = { ...started(running), applied: before, worker: runtimeState(before) };
    const set = diff(baseline, after, BASE_CAPABILITIES);
    expect(set).toMatchObject({ verdict: 'files', operations: [] });
    expect([...set.changedFiles]).toEqual(['maps/n.map']);
  });
});

describe('diff of everything else', () => {
  test.each<readonly [string, World, string]>([
    ['core-changed', world({ core: ['frontend other'] }), 'section core'],
    ['profile-changed', world({ profiles: { web: ['mode http', 'retries 1'] } }), 'web'],
    [
      'backend-added',
      world({ backends: [...world().backends, backend('new', [])] }),
      'backend new',
    ],
    ['backend-removed', world({ backends: [] }), 'backend shop'],
    ['backend-structure', shop([server('a'), server('b')], { body: ['option x'] }), 'backend shop'],
    ['backend-structure', shop([server('a'), server('b')], { balance: 'leastconn' }), 'leastconn'],
    [
      'file-changed',
      world({ files: [{ path: 'general/500.http', text: 'x', reloadOnChange: true }] }),
      'general/500.http: changed',
    ],
    ['file-changed', world({ files: [] }), 'general/500.http: removed'],
  ])('needs a reload for %s and says what it is', (cause, after, message) => {
    const set = change(world(), after);
    expect(set.verdict).toBe('reload');
    expect(causes(set)).toContain(cause);
    expect(set.reasons.map((reason) => reason.message).join('; ')).toContain(message);
  });

  test('needs a reload when the configuration differs and no section does', () => {
    const plan = planOf(world());
    const other = { ...plan, id: 'other', config: { ...plan.config, digest: 'other' } };
    expect(causes(diff(started(plan), other, BASE_CAPABILITIES))).toEqual(['core-changed']);
  });

  test('takes a backend whose text is the same for no explanation', () => {
    const [before, after] = [true, false].map((dynamic) =>
      planOf(shop([server('a')], { dynamic })),
    ) as [Plan, Plan];
    const other = { ...after, config: { ...after.config, digest: 'other' } };
    expect(causes(diff(started(before), after, BASE_CAPABILITIES))).toEqual([]);
    expect(causes(diff(started(before), other, BASE_CAPABILITIES))).toEqual(['core-changed']);
  });

  test('needs none for comments in a backend, nor for files that nothing loads', () => {
    const set = change(world(), shop([server('a'), server('b')], { comment: 'hello' }));
    expect(set).toMatchObject({ verdict: 'files', operations: [], reasons: [] });
    expect([...set.changedFiles]).toEqual(['haproxy.cfg']);
    const note = (text: string): World =>
      world({ files: [{ path: 'general/note', text, reloadOnChange: false }] });
    expect(change(note('1'), note('2'))).toMatchObject({ verdict: 'files' });
  });

  test('compares what needs a reload with the running plan, not with the files on disk', () => {
    const [running, plan] = [planOf(world()), planOf(world({ core: ['frontend other'] }))];
    const pending = { ...started(running), applied: plan };
    const set = diff(pending, plan, BASE_CAPABILITIES);
    expect(set.verdict).toBe('reload');
    expect(set.changedFiles.size).toBe(0);
  });

  test.each(['running', 'worker'] as const)('reloads when it is not known what is %s', (role) => {
    const plan = planOf(world());
    const set = diff({ ...started(plan), [role]: undefined }, plan, BASE_CAPABILITIES);
    expect(causes(set)).toEqual(['unknown-baseline']);
    expect(set.inPlaceOperations).toEqual([]);
  });

  test('counts every file as changed when it is not known what is applied', () => {
    const plan = planOf(world());
    const set = diff({ ...started(plan), applied: undefined }, plan, BASE_CAPABILITIES);
    expect([...set.changedFiles].sort()).toEqual(['general/500.http', 'haproxy.cfg', 'maps/a.map']);
  });

  test('reloads when there are more operations than go at once, and sends the first ones', () => {
    const after = shop([server('a'), server('b'), server('c'), server('d')]);
    const set = change(world(), after, { ...BASE_CAPABILITIES, maxOperations: 1 });
    expect(causes(set)).toEqual(['too-many-operations']);
    expect(words(set.inPlaceOperations)).toEqual(['server_add shop/c']);
  });

  test('reloads when the agent lacks an operation', () => {
    const operationKinds = new Set(['map_add']);
    const set = change(world(), shop([]), { ...BASE_CAPABILITIES, operationKinds });
    expect(set.reasons).toEqual([
      { cause: 'unsupported-operation', message: 'the agent does not know server_remove' },
    ]);
    expect(set.inPlaceOperations).toEqual([]);
  });

  test('gives at most 32 reasons and says how many more there are', () => {
    const backends = Array.from({ length: 50 }, (_, n) => backend(`new-${n}`, []));
    const { reasons } = change(world(), world({ backends: [...world().backends, ...backends] }));
    expect(reasons).toHaveLength(32);
    expect(reasons[31]?.message).toContain('and 18 more');
  });
});

describe('ahead of a reload', () => {
  const more = [backend('new', [server('n')])];

  test('servers flow and maps wait together', () => {
    const after = world({
      backends: [backend('shop', [server('b'), server('c')]), ...more],
      maps: route(['shop.example', 'shop'], ['new.example', 'new'], ['other.example', 'shop']),
    });
    expect(words(change(world(), after).inPlaceOperations)).toEqual([
      'server_add shop/c',
      'server_remove shop/a',
    ]);
  });

  test('a backend that ends without servers keeps them while maps wait', () => {
    const after = world({
      backends: [backend('shop', []), ...more],
      maps: route(['shop.example', 'new']),
    });
    expect(change(world(), after).inPlaceOperations).toEqual([]);
    const mapsStay = world({ backends: [backend('shop', []), ...more] });
    expect(change(world(), mapsStay).inPlaceOperations).toHaveLength(2);
  });

  test('maps need not wait for a backend to go', () => {
    const before = world({
      backends: [...world().backends, ...more],
      maps: route(['shop.example', 'new']),
    });
    expect(words(change(before, world()).inPlaceOperations)).toEqual([
      'map_set maps/a.map shop.example',
    ]);
  });
});

describe('classify', () => {
  test.each<readonly [string, World | undefined, World]>([
    ['later', undefined, world()],
    ['none', world(), world()],
    ['now', world(), shop([server('a')])],
    ['now', world(), shop([server('a'), server('b')], { comment: 'hello' })],
    ['later', world(), world({ core: [] })],
    ['both', world(), { ...shop([server('a')]), core: [] }],
  ])('says %s', (pace, last, next) => {
    expect(classify(last && planOf(last), planOf(next))).toBe(pace);
  });
});

describe('while the gate holds', () => {
  test('servers of a backend whose structure is refused stay as they were accepted', () => {
    const accepted = planOf(
      world({ backends: [backend('shop', [server('a')]), backend('cart', [server('a')])] }),
    );
    const newest = planOf(
      world({
        core: ['refused'],
        maps: route(['shop.example', 'new']),
        backends: [
          backend('shop', [server('b')]),
          backend('cart', [server('b')], { body: ['refused'] }),
          backend('new', [server('b')]),
        ],
      }),
    );
    const target = graftServers(accepted, newest);
    expect(words(diffRuntime(runtimeState(accepted), target, BASE_CAPABILITIES))).toEqual([
      'server_add shop/b',
      'server_remove shop/a',
    ]);
  });
});
