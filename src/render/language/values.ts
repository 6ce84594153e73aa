/** What templates can look into and call: own properties of data, and objects that answer by themselves. */
import { byCodeUnits, type PersistentMap } from '../../cells/persistent-map.ts';
import type { Run } from './run.ts';
import { Text, plain } from './text.ts';

/** Positional and named arguments of one call. */
export interface Arguments {
  readonly positional: readonly unknown[];
  readonly named: ReadonlyMap<string, unknown>;
}

/** The only thing a template can call. `call` may throw TemplateFailure. */
export class TemplateFunction {
  readonly name: string;
  readonly call: (args: Arguments, run: Run) => unknown;

  constructor(name: string, call: (args: Arguments, run: Run) => unknown) {
    this.name = name;
    this.call = call;
  }
}

/** Something with members that answers by itself, such as `resources`. */
export class Namespace {
  readonly label: string;
  readonly #members: ReadonlyMap<string, (run: Run) => unknown>;

  constructor(label: string, members: ReadonlyMap<string, (run: Run) => unknown>) {
    this.label = label;
    this.#members = members;
  }

  names(): readonly string[] {
    return [...this.#members.keys()];
  }

  get(name: string, run: Run): unknown {
    return this.#members.get(name)?.(run);
  }
}

/** The objects of a watched resource that is held whole: cells can go over them without a look at all of them. */
export class WatchedObjects extends Namespace {
  /** What `World.collection` knows them by. */
  get collection(): string {
    return this.label;
  }
}

/** One of the collections of `routes`: a mapping whose look-ups are recorded per key, and iteration as a whole. */
export class TrackedCollection {
  readonly name: string;
  readonly #run: Run;

  constructor(name: string, run: Run) {
    this.name = name;
    this.#run = run;
  }

  get(key: string): unknown {
    const { world, reads } = this.#run.cell;
    return reads.read(world.routeRead(this.name, key));
  }

  /** The whole map, recorded as such. */
  map(): PersistentMap<unknown> {
    const { world, reads } = this.#run.cell;
    return reads.read(world.routeRead(this.name)) as PersistentMap<unknown>;
  }
}

/** A plain object: what JSON and YAML make, and `{…}` in a template. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
};

/** Member of a value by own property, position or key; undefined when there is none. */
export const memberOf = (target: unknown, key: unknown, run: Run): unknown => {
  const name = plain(key);
  if (target instanceof Namespace) return target.get(String(name), run);
  if (target instanceof TrackedCollection) return target.get(String(name));
  if (Array.isArray(target)) return elementOf(target, name);
  if (isRecord(target) && (typeof name === 'string' || typeof name === 'number')) {
    return Object.hasOwn(target, name) ? target[name] : undefined;
  }
  return undefined;
};

const elementOf = (list: readonly unknown[], key: unknown): unknown => {
  if (key === 'length') return list.length;
  return typeof key === 'number' && Number.isInteger(key) ? list.at(key) : undefined;
};

/** Names of a value's members, for hints. */
export const memberNames = (target: unknown): readonly string[] => {
  if (target instanceof Namespace) return target.names();
  return isRecord(target) ? Object.keys(target) : [];
};

/** Pairs in order: positions of a list, keys of a mapping by code units; undefined for anything else. */
export const entriesOf = (value: unknown): readonly (readonly [unknown, unknown])[] | undefined => {
  if (Array.isArray(value)) return value.map((element, index) => [index, element] as const);
  if (value instanceof TrackedCollection) return [...value.map().entries()];
  if (!isRecord(value)) return undefined;
  return Object.keys(value)
    .sort(byCodeUnits)
    .map((key) => [key, value[key]] as const);
};

/** A list, or the values of a collection of `routes` by key; undefined for anything else. */
export const listOf = (value: unknown): readonly unknown[] | undefined => {
  if (Array.isArray(value)) return value as readonly unknown[];
  return value instanceof TrackedCollection ? [...value.map().values()] : undefined;
};

/** How many elements, members or characters; undefined for anything else. */
export const sizeOf = (value: unknown): number | undefined => {
  const bare = plain(value);
  if (typeof bare === 'string' || Array.isArray(bare)) return bare.length;
  if (bare instanceof TrackedCollection) return bare.map().size;
  return isRecord(bare) ? Object.keys(bare).length : undefined;
};

/** As in Jinja: false, 0, empty text, none and undefined are false, and so are empty lists and mappings. */
export const isTrue = (value: unknown): boolean => {
  const bare = plain(value);
  if (Array.isArray(bare) || isRecord(bare)) return (sizeOf(bare) ?? 0) > 0;
  if (bare instanceof TrackedCollection) return bare.map().size > 0;
  return Boolean(bare);
};

/** Without brands, all the way down; what holds no brands is returned as it is. */
export const deepPlain = (value: unknown): unknown => {
  if (value instanceof Text) return value.value;
  if (!hasBrands(value)) return value;
  if (Array.isArray(value)) return value.map(deepPlain);
  const copy = emptyRecord();
  for (const [key, member] of Object.entries(value as object)) copy[key] = deepPlain(member);
  return copy;
};

const hasBrands = (value: unknown): boolean => {
  if (value instanceof Text) return true;
  if (Array.isArray(value)) return value.some(hasBrands);
  if (!isRecord(value)) return false;
  for (const key in value) if (hasBrands(value[key])) return true;
  return false;
};

/** A mapping without prototype, so that every key is data: also `__proto__`, by plain assignment. */
export const emptyRecord = (): Record<string, unknown> =>
  Object.create(null) as Record<string, unknown>;

/** What a value is called in messages. */
export const kindOf = (value: unknown): string => {
  const bare = plain(value);
  if (bare === undefined) return 'undefined';
  if (bare === null) return 'none';
  if (typeof bare === 'string') return 'a string';
  if (typeof bare === 'number' || typeof bare === 'boolean') return `a ${typeof bare}`;
  if (Array.isArray(bare)) return 'a list';
  if (bare instanceof TemplateFunction) return 'a function';
  return bare instanceof Namespace ? bare.label : 'a mapping';
};
