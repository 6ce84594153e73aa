import type { CrtListEntry, Digest } from '../protocol/protocol.ts';
import type { BackendInput, PlanParts } from './build.ts';
import type { CrtList, Plan, PlanFile, PlanMap, Profile } from './plan.ts';

type Pairs = readonly (readonly [key: string, value: string])[];
/** What travels of a plan: it without what follows from it, lists in the order of their keys. */
export interface PlanDocument {
  readonly schemaVersion: 1;
  readonly id: Digest;
  readonly config: Plan['config'];
  readonly sections: PlanParts['sections'];
  readonly profiles: readonly Profile[];
  readonly backends: readonly BackendInput[];
  readonly maps: readonly (Omit<PlanMap, 'digest' | 'entries'> & { readonly entries: Pairs })[];
  readonly files: readonly Omit<PlanFile, 'digest'>[];
  readonly crtLists: readonly (Omit<CrtList, 'digest' | 'lines'> & {
    readonly lines: readonly CrtListEntry[];
  })[];
}

type Shape = (value: unknown, place: string) => void;

const fail = (place: string, what: string): never => {
  throw new TypeError(`${place} is not ${what}`);
};
const string: Shape = (value, place) => {
  if (typeof value !== 'string') fail(place, 'a string');
};
const boolean: Shape = (value, place) => {
  if (typeof value !== 'boolean') fail(place, 'true or false');
};
const count: Shape = (value, place) => {
  if (!Number.isSafeInteger(value) || Number(value) < 0) fail(place, 'a count');
};
const oneOf =
  (...allowed: readonly unknown[]): Shape =>
  (value, place) => {
    if (!allowed.includes(value)) fail(place, `one of ${allowed.join(', ')}`);
  };
const optional =
  (shape: Shape): Shape =>
  (value, place) => {
    if (value !== undefined) shape(value, place);
  };
const list =
  (shape: Shape): Shape =>
  (value, place) => {
    if (!Array.isArray(value)) return fail(place, 'a list');
    value.forEach((item, at) => shape(item, `${place}[${at}]`));
  };
const pair: Shape = (value, place) => {
  if (!Array.isArray(value) || value.length !== 2) return fail(place, 'a pair');
  value.forEach((item, at) => string(item, `${place}[${at}]`));
};
/** Exactly these members. */
const record =
  (members: Readonly<Record<string, Shape>>): Shape =>
  (value, place) => {
    if (typeof value !== 'object' || value === null) return fail(place, 'a record');
    const known = new Map(Object.entries(members));
    const found = new Map<string, unknown>(Object.entries(value));
    for (const name of found.keys()) if (!known.has(name)) fail(`${place}.${name}`, 'known');
    for (const [name, shape] of known) shape(found.get(name), `${place}.${name}`);
  };

const DOCUMENT = record({
  schemaVersion: oneOf(1),
  id: string,
  config: record({ path: string, digest: string, size: count }),
  sections: list(
    record({ kind: oneOf('core', 'profile', 'backends'), name: string, digest: optional(string) }),
  ),
  profiles: list(
    record({
      name: string,
      digest: string,
      mode: optional(oneOf('http', 'tcp')),
      balance: optional(string),
      hashType: optional(string),
      defaultServer: optional(oneOf(true)),
    }),
  ),
  backends: list(
    record({
      name: string,
      mode: oneOf('http', 'tcp'),
      profile: string,
      balance: string,
      hashType: optional(string),
      structure: string,
      text: string,
      bare: boolean,
      dynamic: boolean,
      structuralReason: optional(string),
      servers: list(
        record({
          name: string,
          address: string,
          port: count,
          weight: count,
          state: oneOf('ready', 'drain', 'maint'),
          keywords: list(string),
        }),
      ),
    }),
  ),
  maps: list(
    record({ path: string, ordered: boolean, text: string, size: count, entries: list(pair) }),
  ),
  files: list(
    record({
      path: string,
      kind: oneOf('config', 'map', 'cert', 'ca', 'crl', 'crt-list', 'general'),
      text: string,
      size: count,
      reloadOnChange: boolean,
    }),
  ),
  crtLists: list(
    record({
      path: string,
      first: string,
      text: string,
      size: count,
      lines: list(record({ certificate: string, options: list(string), filters: list(string) })),
    }),
  ),
});

/**
 * Refuses what is not exactly a {@link PlanDocument}; whether its records make sense is not asked.
 *
 * @throws TypeError naming the place
 */
export function requireDocument(value: unknown): asserts value is PlanDocument {
  DOCUMENT(value, 'plan');
}
