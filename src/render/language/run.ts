import type { Read, Reads } from '../../cells/cells.ts';
import type { Effects } from './effects.ts';
import { TemplateFailure, type Place } from './failure.ts';
import type { DigestFunction } from '../../plan/plan.ts';
import type { ObjectRef } from '../../snapshot/objects.ts';
import type { Writer } from './writer.ts';

/** Variables of one piece of a template. Assignments look upwards, but not beyond an isolated scope. */
export class Scope {
  /** Made when the first name is bound: most scopes, those of includes, bind none. */
  #variables: Map<string, unknown> | undefined;
  readonly #parent: Scope | undefined;
  readonly #isolated: boolean;

  constructor(parent?: Scope, isolated = false) {
    this.#parent = parent;
    this.#isolated = isolated;
  }

  /** Binds a name in this scope. */
  bind(name: string, value: unknown): void {
    this.#variables ??= new Map();
    this.#variables.set(name, value);
  }

  /** Assigns to the nearest scope that has the name, else binds it here. */
  assign(name: string, value: unknown): void {
    if (this.#variables?.has(name) === true || !this.#reassign(name, value)) this.bind(name, value);
  }

  has(name: string): boolean {
    return this.#variables?.has(name) === true || (this.#parent?.has(name) ?? false);
  }

  get(name: string): unknown {
    const value = this.#variables?.get(name);
    if (value !== undefined || this.#variables?.has(name) === true) return value;
    return this.#parent?.get(name);
  }

  /** Names that are bound here, without those above. */
  own(): ReadonlyMap<string, unknown> {
    return this.#variables ?? new Map();
  }

  names(): string[] {
    return [...this.own().keys(), ...(this.#parent?.names() ?? [])];
  }

  #reassign(name: string, value: unknown): boolean {
    if (this.#isolated) return false;
    const parent = this.#parent;
    if (parent === undefined) return false;
    if (parent.#variables?.has(name) === true) {
      parent.bind(name, value);
      return true;
    }
    return parent.#reassign(name, value);
  }
}

/** What a cell can look at from outside itself. */
export interface World {
  /** A collection of `routes`, or with a key one of its elements. */
  routeRead(collection: string, key?: string): Read;
  /** A look-up in a store: `get`, `fetch` or `list` with its keys. */
  storeRead(resource: string, look: StoreLook): Read;
}

export interface StoreLook {
  readonly type: 'get' | 'fetch' | 'list';
  readonly keys: readonly string[];
}

/** The evaluation of one cell: what it reads and what it does besides printing. */
export interface CellRun {
  readonly world: World;
  readonly reads: Reads;
  readonly effects: Effects;
  /** SHA-256, passed in. */
  readonly digest: DigestFunction;
  /** True while a cell of a slot is evaluated, false for a whole template. */
  readonly inSlot: boolean;
  /** Object the cell is made for, as far as it is known. */
  readonly object: ObjectRef | undefined;
  /** Map that `map_entry(key, value)` without a map means. */
  readonly map: string | undefined;
  /** Scope that holds the globals only. */
  readonly globals: Scope;
  /** What tells the problems of the effects apart; undefined as long as there is none. */
  told: Set<string> | undefined;
  /** Where the function that runs was called. */
  callPlace: Place;
  /** Nesting of includes and macro calls. */
  depth: number;
}

/** Where one piece of a template runs: with these variables, printing there. */
export interface Run {
  readonly cell: CellRun;
  readonly scope: Scope;
  readonly out: Writer;
}

const MAX_DEPTH = 100;

/** Runs something that nests, such as an include or a macro, and refuses endless nesting. */
export const nested = <T>(run: Run, place: Place | undefined, inside: () => T): T => {
  run.cell.depth += 1;
  try {
    if (run.cell.depth > MAX_DEPTH) {
      throw new TemplateFailure(`includes and macros nest deeper than ${MAX_DEPTH} levels`, {
        ...(place === undefined ? {} : { place }),
        nextStep: 'End the recursion.',
      });
    }
    return inside();
  } finally {
    run.cell.depth -= 1;
  }
};
