import { byCodeUnits } from '../cells/persistent-map.ts';
import { crtListLine } from '../protocol/crt-list.ts';
import type { CrtListEntry, Digest } from '../protocol/protocol.ts';
import { merkleMapOf, type MerkleMap } from './merkle-map.ts';
import type {
  Backend,
  CrtLine,
  CrtList,
  DigestFunction,
  MapEntry,
  Plan,
  PlanFile,
  PlanMap,
  Profile,
  Section,
  Server,
} from './plan.ts';

/** A record that cannot be: the message names it and what is wrong. */
export class PlanError extends Error {
  readonly code = 'plan-invalid';
  constructor(message: string) {
    super(message);
    this.name = 'PlanError';
  }
}

/**
 * Encoding under every digest: JSON of an array with a leading tag. Strings are quoted and lone surrogates escaped, so
 * different parts never encode alike, and a record of one kind never as one of another.
 */
const encode = (tag: string, parts: readonly unknown[]): string => JSON.stringify([tag, ...parts]);

const integerWithin = (value: number, low: number, high: number): boolean =>
  Number.isInteger(value) && value >= low && value <= high;

/**
 * A server in canonical form: weight 0 while it drains.
 *
 * @throws PlanError for a name that is empty, longer than 127 characters or no single word, an address that is empty,
 * a port outside 1–65535 or a weight outside 0–256
 */
export function serverRecord(input: Server): Server {
  const { name, address, port, weight, state, keywords } = input;
  const fail = (what: string): never => {
    throw new PlanError(`server ${JSON.stringify(name)}: ${what}`);
  };
  if (name.length > 127 || !/^[^\s\p{Cc}]+$/u.test(name))
    fail('name must be a word of 1 to 127 characters');
  if (address === '') fail('address is missing');
  if (!integerWithin(port, 1, 65_535)) fail(`port ${port} is not within 1 to 65535`);
  if (!integerWithin(weight, 0, 256)) fail(`weight ${weight} is not within 0 to 256`);
  return { name, address, port, weight: state === 'drain' ? 0 : weight, state, keywords };
}

/** Parts of a {@link Backend} that its digest does not follow from. */
export type BackendInput = Omit<Backend, 'digest'>;

/**
 * A backend with its servers in canonical form, sorted by name.
 *
 * @throws PlanError for an invalid server ({@link serverRecord}) or two of one name
 */
export function backendRecord(input: BackendInput, digest: DigestFunction): Backend {
  const servers = input.servers.map(inBackend(input.name)).sort((left, right) => {
    const order = byCodeUnits(left.name, right.name);
    if (order === 0) {
      throw new PlanError(
        `backend ${JSON.stringify(input.name)}: two servers are named ${left.name}`,
      );
    }
    return order;
  });
  return sealBackend({ ...input, servers }, digest);
}

const inBackend =
  (backend: string) =>
  (server: Server): Server => {
    try {
      return serverRecord(server);
    } catch (error: unknown) {
      if (!(error instanceof PlanError)) throw error;
      throw new PlanError(`backend ${JSON.stringify(backend)}: ${error.message}`);
    }
  };

/** A backend whose servers are canonical and sorted already, with its digest. */
export function sealBackend(input: BackendInput, digest: DigestFunction): Backend {
  return {
    ...input,
    digest: digest(
      encode('backend', [
        ...backendParts(input),
        input.text,
        input.bare,
        input.dynamic,
        input.structuralReason ?? null,
      ]),
    ),
  };
}

/** What a worker knows of a backend, in a fixed order: neither its text nor what was declared about it. */
export const backendParts = (backend: BackendInput): readonly unknown[] => [
  backend.name,
  backend.mode,
  backend.profile,
  backend.balance,
  backend.hashType ?? null,
  backend.structure,
  backend.servers.map((server) => [
    server.name,
    server.address,
    server.port,
    server.weight,
    server.state,
    server.keywords,
  ]),
];

/** A named `defaults` section; `text` is the digest of its text, the rest what that sets. */
export const profileRecord = (
  { text, ...declared }: Omit<Profile, 'digest'> & { readonly text: Digest },
  digest: DigestFunction,
): Profile => {
  const { name, mode = null, balance = null, hashType = null, defaultServer = false } = declared;
  const parts = [name, text, mode, balance, hashType, defaultServer];
  return { ...declared, digest: digest(encode('profile', parts)) };
};

/** One entry of a map, ordered or not. Any strings: what HAProxy cannot carry is found by the diff. */
export const mapEntry = (key: string, value: string, digest: DigestFunction): MapEntry => ({
  key,
  value,
  digest: digest(encode('entry', [key, value])),
});

/** Key of an ordered map's entry at a position counted from 0: digits that sort as the numbers do. */
export const orderedKey = (position: number): string => String(position).padStart(9, '0');

/**
 * Entries of a map from scratch; a change of an existing map is rather a `with` on its entries.
 *
 * @throws PlanError when a key comes twice and the map is not ordered
 */
export function mapEntries(
  pairs: Iterable<readonly [key: string, value: string]>,
  options: { readonly ordered: boolean; readonly digest: DigestFunction },
): MerkleMap<MapEntry> {
  const entries = new Map<string, MapEntry>();
  for (const [key, value] of pairs) {
    const name = options.ordered ? orderedKey(entries.size) : key;
    if (entries.has(name)) throw new PlanError(`map key ${JSON.stringify(key)} comes twice`);
    entries.set(name, mapEntry(key, value, options.digest));
  }
  return merkleMapOf(entries, options.digest);
}

/**
 * A map file; `text` and `size` are those of the file. The text is written from the entries alone, so the digest follows from
 * them, and `text` is looked at when somebody asks for it: it costs the length of the file.
 */
export const planMap = (input: Omit<PlanMap, 'digest'>, digest: DigestFunction): PlanMap => {
  const { path, ordered, entries, size } = input;
  return {
    ...{ path, ordered, entries, size },
    get text() {
      return input.text;
    },
    digest: digest(encode('map', [path, ordered, entries.digest, size])),
  };
};

/** Any other file; `text` and `size` are those of the file. */
export const planFile = (input: Omit<PlanFile, 'digest'>, digest: DigestFunction): PlanFile => ({
  ...input,
  digest: digest(
    encode('file', [input.path, input.kind, input.text, input.size, input.reloadOnChange]),
  ),
});

/**
 * A line of a certificate list. Its text: certificate, options in brackets when there are any, filters.
 *
 * @throws PlanError for a word that is empty or would end the word, the option or the line
 */
export const crtLine = (input: CrtListEntry, digest: DigestFunction): CrtLine => {
  const { certificate, options, filters } = input;
  for (const word of [certificate, ...options, ...filters]) {
    if (!/^[^\s\p{Cc}[\]#"'\\]+$/u.test(word)) {
      throw new PlanError(`${JSON.stringify(word)} cannot stand in a certificate list`);
    }
  }
  return {
    ...{ certificate, options, filters },
    digest: digest(encode('crt-line', [certificate, options, filters])),
  };
};

/** Key of a line that stands in its list for this time, counted from 1. */
export const crtLineKey = (text: string, time: number): string =>
  time === 1 ? text : `${text}#${time}`;

/** Lines of a certificate list from scratch, by key, in their order. */
export function crtLines(
  entries: Iterable<CrtListEntry>,
  digest: DigestFunction,
): ReadonlyMap<string, CrtLine> {
  const lines = new Map<string, CrtLine>();
  for (const entry of entries) {
    const text = crtListLine(entry);
    let time = 1;
    while (lines.has(crtLineKey(text, time))) time += 1;
    lines.set(crtLineKey(text, time), crtLine(entry, digest));
  }
  return lines;
}

/** A certificate list; `text` and `size` are those of the file. */
export const crtList = (input: Omit<CrtList, 'digest'>, digest: DigestFunction): CrtList => ({
  ...input,
  digest: digest(
    encode('crt-list', [input.path, input.lines.digest, input.first, input.text, input.size]),
  ),
});

/** Everything of a {@link Plan} but what follows from it. The `backends` section needs no digest of its own. */
export type PlanParts = Omit<Plan, 'schemaVersion' | 'id' | 'sections'> & {
  readonly sections: readonly (Omit<Section, 'digest'> & { readonly digest?: Digest })[];
};

/**
 * A plan with its id: a digest over the digests of the parts, so its cost is the number of sections and not of records.
 * The digest of the whole file is no part of it: sections and backends are all there is in the file, and their digests
 * cover their texts. So it can be computed when somebody asks for it.
 *
 * @throws PlanError unless exactly one section has kind `backends`
 */
export function buildPlan(parts: PlanParts, digest: DigestFunction): Plan {
  const { backends, profiles, maps, files, crtLists, config } = parts;
  const places = parts.sections.filter((section) => section.kind === 'backends').length;
  if (places !== 1)
    throw new PlanError(`the configuration needs one place for backends, not ${places}`);
  const sections = parts.sections.map(({ kind, name, digest: text = '' }) => ({
    kind,
    name,
    digest: kind === 'backends' ? backends.digest : text,
  }));
  const id = digest(
    encode('plan', [
      1,
      sections.map(({ kind, name, digest: text }) => [kind, name, text]),
      [backends, profiles, maps, files, crtLists].map((records) => records.digest),
      [config.path, config.size],
    ]),
  );
  return { schemaVersion: 1, id, sections, backends, profiles, maps, files, crtLists, config };
}
