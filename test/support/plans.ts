/**
 * Arbitrary worlds and edits of them. An edit says which thing it means by a number that is taken modulo what there is, so
 * lists of edits shrink well.
 */
import fc from 'fast-check';
import type { Server } from '../../src/plan/plan.ts';
import type { ServerState } from '../../src/protocol/protocol.ts';
import type { World, WorldBackend, WorldMap } from './plan-world.ts';

/** Runs of each law: small in every check, long by `HAPTIC_LONG=1`. */
export const RUNS = process.env['HAPTIC_LONG'] === '1' ? 10_000 : 300;

export const HASH_KEY: readonly string[] = ['hash-key', 'addr-port'];

const LONG = 'ns_a-service-with-a-long-name_http_'.padEnd(124, 'x');
/** Names that HAProxy takes and JavaScript objects trip over, and as long as they may be. */
const serverName = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '0',
    'a-b',
    'a_b',
    'a.b:c',
  ),
  fc.nat(9).map((number) => `pod-${number}`),
  fc.nat(9).map((number) => `${LONG}-0${number}`),
);

const address = fc.oneof(
  fc.nat(3).map((number) => `127.0.1.${number + 1}`),
  fc.constantFrom('10.0.0.1', '2001:db8::1', '2001:db8::2', '::1'),
);
const port = fc.constantFrom(80, 8080, 65_535);
const weight = fc.constantFrom(0, 1, 100, 255, 256);
const state = fc.oneof(
  { weight: 4, arbitrary: fc.constant<ServerState>('ready') },
  { weight: 1, arbitrary: fc.constantFrom<ServerState>('drain', 'maint') },
);

export const server: fc.Arbitrary<Server> = fc.record({
  name: serverName,
  address,
  port,
  weight,
  state,
  keywords: fc.constant(HASH_KEY),
});

const servers = fc.uniqueArray(server, { selector: ({ name }) => name, maxLength: 5 });

const BALANCES: readonly Pick<WorldBackend, 'balance' | 'hashType' | 'dynamic'>[] = [
  { balance: 'roundrobin', dynamic: true },
  { balance: 'leastconn', dynamic: true },
  { balance: 'random', dynamic: true },
  { balance: 'first', dynamic: true },
  { balance: 'hash req.hdr(x-key)', hashType: 'consistent', dynamic: true },
];
const FIXED: typeof BALANCES = [
  { balance: 'static-rr', dynamic: true },
  { balance: 'source', hashType: 'map-based', dynamic: true },
  { balance: 'roundrobin', dynamic: false },
];

const backendNames = ['be_0', 'be_1', 'be_2', '__proto__', 'constructor', 'be_5'];
const backendNamed = (name: string): fc.Arbitrary<WorldBackend> =>
  fc
    .record({
      servers,
      kind: fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...BALANCES) },
        { weight: 1, arbitrary: fc.constantFrom(...FIXED) },
      ),
    })
    .map(({ servers: list, kind }) => ({
      name,
      profile: 'web',
      body: [],
      comment: '',
      servers: list,
      ...kind,
    }));

const mapKey = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'a.example/',
    'b.example/',
    '*.example',
    'ü',
    'x;y',
    "'",
  ),
  fc.nat(9).map((number) => `host-${number}.example`),
);
const mapValue = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...backendNames.slice(0, 4)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('max-age=1; x', 'a "b" \\c', "it's", '#', '__proto__', 'ü'),
  },
);
const pairs = fc.array(fc.tuple(mapKey, mapValue), { maxLength: 12 });
const uniquePairs = fc.uniqueArray(fc.tuple(mapKey, mapValue), {
  selector: ([key]) => key,
  maxLength: 12,
});

const MAPS = ['maps/exact.map', 'maps/prefix.map'];
const ORDERED = 'maps/regex.map';

/** A world with at most four backends, two maps of unique keys and an ordered one. */
export const world: fc.Arbitrary<World> = fc
  .record({
    backends: fc.tuple(...backendNames.slice(0, 4).map(backendNamed)),
    exact: uniquePairs,
    prefix: uniquePairs,
    regex: pairs,
  })
  .map(({ backends, exact, prefix, regex }) => ({
    core: ['frontend web', '    bind :80'],
    profiles: { web: ['mode http'] },
    backends,
    maps: [
      { path: 'maps/exact.map', ordered: false, entries: exact },
      { path: 'maps/prefix.map', ordered: false, entries: prefix },
      { path: ORDERED, ordered: true, entries: regex },
    ],
    files: [
      { path: 'general/500.http', text: 'five hundred', reloadOnChange: true },
      { path: 'general/note.txt', text: 'a note', reloadOnChange: false },
    ],
  }));

/** One change of a world. */
export type Edit = (world: World) => World;

const at = <T>(items: readonly T[], number: number): T | undefined => items[number % items.length];

const replaced = <T>(items: readonly T[], old: T | undefined, next: readonly T[]): readonly T[] =>
  items.flatMap((item) => (item === old ? next : [item]));

type BackendEdit = (backend: WorldBackend) => WorldBackend;
const inBackend =
  (number: number, edit: BackendEdit): Edit =>
  (before) => {
    const backend = at(before.backends, number);
    if (backend === undefined) return before;
    return { ...before, backends: replaced(before.backends, backend, [edit(backend)]) };
  };

const inServer = (
  [backend, number]: readonly [number, number],
  edit: (server: Server) => readonly Server[],
): Edit =>
  inBackend(backend, (before) => {
    const old = at(before.servers, number);
    const names = new Set(before.servers.filter((other) => other !== old).map(({ name }) => name));
    const next = old === undefined ? [] : edit(old).filter(({ name }) => !names.has(name));
    return { ...before, servers: replaced(before.servers, old, next) };
  });

const inMap =
  (path: string | undefined, edit: (map: WorldMap) => WorldMap): Edit =>
  (before) => {
    const map = before.maps.find((other) => other.path === path);
    return map === undefined
      ? before
      : { ...before, maps: replaced(before.maps, map, [edit(map)]) };
  };

const putPair =
  (pair: readonly [string, string]) =>
  (map: WorldMap): WorldMap => ({
    ...map,
    entries: [...map.entries.filter(([key]) => key !== pair[0]), pair],
  });

const index = fc.nat(7);
const place = fc.tuple(index, index);

const addServer = fc.tuple(index, server).map(([number, added]) =>
  inBackend(number, (backend) => ({
    ...backend,
    servers: [...backend.servers.filter(({ name }) => name !== added.name), added].map((one) =>
      // A server that is there already keeps its words: others would need a reload.
      one === added ? { ...added, keywords: keywordsOf(backend, added) } : one,
    ),
  })),
);
const keywordsOf = (
  { servers: list }: WorldBackend,
  { name, keywords }: Server,
): readonly string[] => list.find((other) => other.name === name)?.keywords ?? keywords;

const removeServer = place.map((where) => inServer(where, () => []));
const renameServer = fc
  .tuple(place, serverName)
  .map(([where, name]) => inServer(where, (old) => [{ ...old, name }]));
const changeServer = fc
  .tuple(place, fc.record({ address, port, weight, state }, { requiredKeys: [] }))
  .map(([where, change]) => inServer(where, (old) => [{ ...old, ...change }]));
/** Another value for a key that is there, which must be escaped on the command line. */
const setValue = fc
  .tuple(fc.constantFrom(...MAPS), index, fc.constantFrom('a; b', 'a "b" \\c', "it's #1 << 2"))
  .map(([path, number, value]) =>
    inMap(path, (map) => {
      const pair = at(map.entries, number);
      return pair === undefined ? map : putPair([pair[0], value])(map);
    }),
  );
const putEntry = fc
  .tuple(fc.constantFrom(...MAPS), fc.tuple(mapKey, mapValue))
  .map(([path, pair]) => inMap(path, putPair(pair)));
const dropEntry = fc.tuple(fc.constantFrom(...MAPS), index).map(([path, number]) =>
  inMap(path, (map) => ({
    ...map,
    entries: replaced(map.entries, at(map.entries, number), []),
  })),
);
/** A key goes from one map to the other. */
const moveEntry = fc.tuple(fc.boolean(), index).map(([forth, number]): Edit => (before) => {
  const [from, to] = forth ? MAPS : MAPS.toReversed();
  const pair = at(before.maps.find(({ path }) => path === from)?.entries ?? [], number);
  if (pair === undefined) return before;
  const without = inMap(from, (map) => ({ ...map, entries: replaced(map.entries, pair, []) }));
  return inMap(to, putPair(pair))(without(before));
});
/** More than a hundred new entries, so that the map is replaced. */
const bulk = fc.tuple(fc.constantFrom(...MAPS), fc.nat(2), fc.boolean()).map(([path, salt, keep]) =>
  inMap(path, (map) => ({
    ...map,
    entries: [
      ...(keep ? map.entries : []),
      ...Array.from({ length: 120 }, (_, n) => [`bulk-${salt}-${n}`, `be_${n % 3}`] as const),
    ].filter(([key], n, all) => all.findIndex(([other]) => other === key) === n),
  })),
);
const reorder = pairs.map((entries) => inMap(ORDERED, (map) => ({ ...map, entries })));
const moveBackend = fc.tuple(index, index).map(([from, to]): Edit => (before) => {
  const [old, now] = [at(before.backends, from)?.name, at(before.backends, to)?.name];
  const value = (target: string): string => (target === old ? (now ?? target) : target);
  const rerouted = before.maps.map((map) => ({
    ...map,
    entries: map.entries.map(([key, target]) => [key, value(target)] as const),
  }));
  const emptied = before.backends.map((backend) =>
    backend.name === old && old !== now ? { ...backend, servers: [] } : backend,
  );
  return { ...before, maps: rerouted, backends: emptied };
});

/** What needs no reload, in backends that are dynamic. */
export const runtimeEdit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 3, arbitrary: addServer },
  { weight: 2, arbitrary: removeServer },
  { weight: 3, arbitrary: renameServer },
  { weight: 4, arbitrary: changeServer },
  { weight: 3, arbitrary: putEntry },
  { weight: 2, arbitrary: setValue },
  { weight: 2, arbitrary: dropEntry },
  { weight: 1, arbitrary: moveEntry },
  { weight: 1, arbitrary: bulk },
  { weight: 1, arbitrary: reorder },
  { weight: 1, arbitrary: moveBackend },
);

/** What lies in files only. */
const quietEdits: readonly Edit[] = [
  inBackend(0, (backend) => ({ ...backend, comment: `${backend.comment}!` })),
  (before) => ({
    ...before,
    files: before.files.map((file) =>
      file.reloadOnChange ? file : { ...file, text: `${file.text}!` },
    ),
  }),
];

const structuralEdits: readonly Edit[] = [
  (before) => ({ ...before, core: [...before.core, '    maxconn 10'] }),
  (before) => ({ ...before, profiles: { ...before.profiles, web: ['mode http', 'retries 2'] } }),
  (before) => ({ ...before, profiles: { ...before.profiles, more: ['mode http'] } }),
  (before) => ({ ...before, backends: before.backends.slice(1) }),
  (before) => ({
    ...before,
    backends: before.backends.some(({ name }) => name === 'be_5')
      ? before.backends
      : [
          ...before.backends,
          {
            name: 'be_5',
            profile: 'web',
            balance: 'first',
            dynamic: true,
            body: [],
            comment: '',
            servers: [],
          },
        ],
  }),
  inBackend(1, (backend) => ({ ...backend, body: [...backend.body, 'option httpclose'] })),
  inBackend(2, (backend) => ({ ...backend, balance: `${backend.balance} ` })),
  inBackend(2, (backend) => ({ ...backend, profile: 'more' })),
  inServer([1, 0], (old) => [{ ...old, keywords: [...old.keywords, 'backup'] }]),
  (before) => ({ ...before, maps: before.maps.slice(1) }),
  (before) => ({
    ...before,
    maps: [...before.maps, { path: 'maps/new.map', ordered: false, entries: [] }].filter(
      (map, n, all) => all.findIndex(({ path }) => path === map.path) === n,
    ),
  }),
  inMap('maps/prefix.map', (map) => ({ ...map, ordered: true })),
  (before) => ({
    ...before,
    files: before.files.map((file) =>
      file.reloadOnChange ? { ...file, text: `${file.text}!` } : file,
    ),
  }),
  (before) => ({ ...before, files: before.files.filter(({ reloadOnChange }) => !reloadOnChange) }),
  inMap('maps/exact.map', putPair(['two words', 'be_0'])),
  inMap('maps/exact.map', putPair(['empty.example', ''])),
];

export const anyEdit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 8, arbitrary: runtimeEdit },
  { weight: 1, arbitrary: fc.constantFrom(...quietEdits) },
  { weight: 2, arbitrary: fc.constantFrom(...structuralEdits) },
);

export const edited = (before: World, edits: readonly Edit[]): World =>
  edits.reduce((current, edit) => edit(current), before);

/** A world and what became of it by edits of some kind. */
export const pairOf = (edit: fc.Arbitrary<Edit>): fc.Arbitrary<readonly [World, World]> =>
  fc
    .tuple(world, fc.array(edit, { minLength: 1, maxLength: 10 }))
    .map(([before, edits]) => [before, edited(before, edits)] as const);
