/**
 * Small worlds that plans are made of, with the text that HAProxy would load for them: what a render declares and what it
 * prints come from one description, so a test can compare a plan with a process started from its files.
 */
import { createHash } from 'node:crypto';
import {
  backendRecord,
  buildPlan,
  crtLines,
  crtList,
  mapEntries,
  planFile,
  planMap,
  profileRecord,
  type PlanParts,
} from '../../src/plan/build.ts';
import { merkleMapOf, type MerkleMap } from '../../src/plan/merkle-map.ts';
import type {
  Backend,
  CrtList,
  DigestFunction,
  Plan,
  PlanMap,
  Profile,
  Server,
} from '../../src/plan/plan.ts';
import { crtListLine } from '../../src/protocol/crt-list.ts';
import type { CrtListEntry, FileKind } from '../../src/protocol/protocol.ts';

export const sha256: DigestFunction = (text) => createHash('sha256').update(text).digest('hex');

/** A backend as a template would declare and print it. */
export interface WorldBackend {
  readonly name: string;
  readonly profile: string;
  readonly balance: string;
  readonly hashType?: 'consistent' | 'map-based';
  readonly dynamic: boolean;
  /** Lines that only a reload changes. */
  readonly body: readonly string[];
  readonly comment: string;
  readonly servers: readonly Server[];
}

export interface WorldMap {
  readonly path: string;
  readonly ordered: boolean;
  readonly entries: readonly (readonly [key: string, value: string])[];
}

export interface WorldFile {
  readonly path: string;
  readonly text: string;
  readonly reloadOnChange: boolean;
  /** Default: `general`. */
  readonly kind?: FileKind;
}

/** A certificate list. */
export interface WorldList {
  readonly path: string;
  readonly lines: readonly CrtListEntry[];
}

export interface World {
  /** Lines of `global` and of frontends. */
  readonly core: readonly string[];
  /** Lines of named `defaults` sections. */
  readonly profiles: Readonly<Record<string, readonly string[]>>;
  readonly backends: readonly WorldBackend[];
  readonly maps: readonly WorldMap[];
  readonly files: readonly WorldFile[];
  /** Default: none. */
  readonly lists?: readonly WorldList[];
}

export const CONFIG_PATH = 'haproxy.cfg';

const indent = (lines: readonly string[]): string => lines.map((line) => `    ${line}\n`).join('');

const host = (address: string): string => (address.includes(':') ? `[${address}]` : address);

const serverLine = ({ name, address, port, weight, state, keywords }: Server): string =>
  [
    `server ${name} ${host(address)}:${port} weight ${state === 'drain' ? 0 : weight}`,
    ...(state === 'maint' ? ['disabled'] : []),
    ...keywords,
  ].join(' ');

const sorted = <T>(items: readonly T[], key: (item: T) => string): readonly T[] =>
  items.toSorted((left, right) => (key(left) < key(right) ? -1 : 1));

const structureText = (backend: WorldBackend): string =>
  `backend ${backend.name} from ${backend.profile}\n` +
  indent([
    `balance ${backend.balance}`,
    ...(backend.hashType === undefined ? [] : [`hash-type ${backend.hashType}`]),
    ...backend.body,
  ]);

const backendText = (backend: WorldBackend): string =>
  (backend.comment === '' ? '' : `# ${backend.comment}\n`) +
  structureText(backend) +
  indent(sorted(backend.servers, ({ name }) => name).map(serverLine));

const coreText = ({ core }: World): string => core.map((line) => `${line}\n`).join('');
const profileText = (name: string, lines: readonly string[]): string =>
  `defaults ${name}\n${indent(lines)}`;

/** Text of `haproxy.cfg`. */
export const configText = (world: World): string =>
  Object.entries(world.profiles)
    .map(([name, lines]) => profileText(name, lines))
    .join('') +
  coreText(world) +
  sorted(world.backends, ({ name }) => name)
    .map(backendText)
    .join('');

export const mapText = (map: WorldMap): string =>
  (map.ordered ? map.entries : sorted(map.entries, ([key]) => key))
    .map(([key, value]) => `${key} ${value}\n`)
    .join('');

const listText = ({ lines }: WorldList): string =>
  lines.map((line) => `${crtListLine(line)}\n`).join('');

/** Every file of a pod by path. */
export const filesOf = (world: World): ReadonlyMap<string, string> =>
  new Map([
    [CONFIG_PATH, configText(world)],
    ...world.maps.map((map) => [map.path, mapText(map)] as const),
    ...world.files.map(({ path, text }) => [path, text] as const),
    ...(world.lists ?? []).map((list) => [list.path, listText(list)] as const),
  ]);

const recordOf = (backend: WorldBackend): Omit<Backend, 'digest'> => {
  const { name, profile, balance, hashType, dynamic, servers } = backend;
  return {
    name,
    profile,
    balance,
    dynamic,
    servers,
    bare: backend.body.length === 0,
    ...(hashType === undefined ? {} : { hashType }),
    mode: 'http',
    structure: sha256(structureText(backend)),
    text: sha256(backendText(backend)),
    ...(dynamic ? {} : { structuralReason: 'declared so' }),
  };
};

/** What the lines of a profile set that backends take over. */
const declaredBy = (lines: readonly string[]): Omit<Profile, 'name' | 'digest'> => {
  const value = (word: string): string | undefined =>
    lines.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1);
  const [mode, balance, hashType] = ['mode', 'balance', 'hash-type'].map(value);
  return {
    ...(mode === 'http' || mode === 'tcp' ? { mode } : {}),
    ...(balance === undefined ? {} : { balance }),
    ...(hashType === undefined ? {} : { hashType }),
    ...(value('default-server') === undefined ? {} : { defaultServer: true as const }),
  };
};

const listRecord = (list: WorldList): CrtList => {
  const lines = crtLines(list.lines, sha256);
  const text = listText(list);
  return crtList(
    {
      path: list.path,
      lines: merkleMapOf(lines, sha256),
      first: lines.keys().next().value ?? '',
      text: sha256(text),
      size: Buffer.byteLength(text),
    },
    sha256,
  );
};

const mapRecord = ({ path, ordered, entries: pairs }: WorldMap, old?: PlanMap): PlanMap => {
  const scratch = mapEntries(pairs, { ordered, digest: sha256 });
  const entries = old === undefined ? scratch : become(old.entries, scratch);
  const text = mapText({ path, ordered, entries: pairs });
  return planMap(
    { path, ordered, entries, text: sha256(text), size: Buffer.byteLength(text) },
    sha256,
  );
};

/** The old map, changed into the new one. */
function become<V extends { readonly digest: string }>(
  old: MerkleMap<V>,
  next: MerkleMap<V>,
): MerkleMap<V> {
  const changes = new Map<string, V | undefined>(old.keys().map((key) => [key, undefined]));
  for (const key of next.keys()) changes.set(key, next.get(key));
  return old.with(changes);
}

/** The plan of a world; from scratch, or as a change of another plan, which must make no difference. */
export function planOf(world: World, old?: Plan): Plan {
  const text = configText(world);
  const profiles = Object.entries(world.profiles);
  const fresh: PlanParts = {
    sections: [
      ...profiles.map(([name, lines]) => ({
        kind: 'profile' as const,
        name,
        digest: sha256(profileText(name, lines)),
      })),
      { kind: 'core', name: 'core', digest: sha256(coreText(world)) },
      { kind: 'backends', name: 'backends' },
    ],
    profiles: merkleMapOf(
      profiles.map(([name, lines]) => [
        name,
        profileRecord(
          { name, text: sha256(profileText(name, lines)), ...declaredBy(lines) },
          sha256,
        ),
      ]),
      sha256,
    ),
    backends: merkleMapOf(
      world.backends.map((backend) => [backend.name, backendRecord(recordOf(backend), sha256)]),
      sha256,
    ),
    maps: merkleMapOf(
      world.maps.map((map) => [map.path, mapRecord(map, old?.maps.get(map.path))]),
      sha256,
    ),
    files: merkleMapOf(
      world.files.map(({ path, text: content, reloadOnChange, kind = 'general' }) => [
        path,
        planFile(
          {
            path,
            kind,
            reloadOnChange,
            text: sha256(content),
            size: Buffer.byteLength(content),
          },
          sha256,
        ),
      ]),
      sha256,
    ),
    crtLists: merkleMapOf(
      (world.lists ?? []).map((list) => [list.path, listRecord(list)]),
      sha256,
    ),
    config: { path: CONFIG_PATH, digest: sha256(text), size: Buffer.byteLength(text) },
  };
  if (old === undefined) return buildPlan(fresh, sha256);
  const changed = {
    profiles: become(old.profiles, fresh.profiles),
    backends: become(old.backends, fresh.backends),
    maps: become(old.maps, fresh.maps),
    files: become(old.files, fresh.files),
    crtLists: become(old.crtLists, fresh.crtLists),
  };
  return buildPlan({ ...fresh, ...changed }, sha256);
}
