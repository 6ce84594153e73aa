/**
 * Memoised cells: what a cell made, for which argument, and what it read meanwhile. A reverse index leads from a read
 * to the cells that made it, so that a change costs the cells it concerns and no scan over all of them.
 */
import { PersistentMap } from './persistent-map.ts';

/** Names one thing that can be read, at the grain of an object or an index bucket. */
export interface Read {
  /** Unique over everything readable. */
  readonly key: string;
  /** What is there now; compared by identity, lists element by element. */
  readonly look: () => unknown;
}

/** One evaluated cell. It is valid while its argument and everything it read are the same objects. */
export interface Cell<Result> {
  readonly argument: unknown;
  readonly result: Result;
  readonly reads: readonly string[];
}

const NOTHING_SEEN: ReadonlyMap<string, unknown> = new Map();
const NO_READS: readonly string[] = [];

/** Collects the reads of the cell that is being evaluated. */
export class Reads {
  /** Made at the first read: most cells read nothing but their argument. */
  #seen: Map<string, unknown> | undefined;

  /** By key of the read. */
  get seen(): ReadonlyMap<string, unknown> {
    return this.#seen ?? NOTHING_SEEN;
  }

  /** Looks, records and returns what was seen; a second look at the same key sees the same. */
  read(read: Read): unknown {
    this.#seen ??= new Map();
    if (this.#seen.has(read.key)) return this.#seen.get(read.key);
    const value = read.look();
    this.#seen.set(read.key, value);
    return value;
  }
}

interface Watched {
  readonly seen: unknown;
  readonly cells: Set<CellHandle>;
}

interface CellHandle {
  readonly slot: Slot<unknown>;
  readonly key: string;
}

interface Kept<Result> extends Cell<Result> {
  readonly handle: CellHandle | undefined;
}

/** Cells of one collection by key, with the keys whose cells are not those of the last {@link Slot.settle}. */
export class Slot<Result> {
  readonly #index: CellIndex;
  readonly #cells = new Map<string, Kept<Result>>();
  #collection: PersistentMap<unknown> = PersistentMap.EMPTY;
  readonly #unsettled = new Set<string>();

  constructor(index: CellIndex) {
    this.#index = index;
  }

  get size(): number {
    return this.#cells.size;
  }

  /** Keys whose results of the last settle no longer hold: what they read has changed, or another cell took their place. */
  get unsettled(): ReadonlySet<string> {
    return this.#unsettled;
  }

  /** The result for this argument if it is still valid. */
  valid(key: string, argument: unknown): Cell<Result> | undefined {
    const cell = this.#cells.get(key);
    return cell !== undefined && cell.argument === argument ? cell : undefined;
  }

  keep(key: string, made: { argument: unknown; result: Result; reads: Reads }): Cell<Result> {
    this.drop(key);
    this.#unsettled.add(key);
    const { argument, result } = made;
    const { seen } = made.reads;
    if (seen.size === 0) {
      const cell = { argument, result, reads: NO_READS, handle: undefined };
      this.#cells.set(key, cell);
      return cell;
    }
    const handle: CellHandle = { slot: this, key };
    for (const [read, value] of seen) this.#index.watch(read, value, handle);
    const cell = { argument, result, reads: [...seen.keys()], handle };
    this.#cells.set(key, cell);
    return cell;
  }

  /** All of them, in no stated order. */
  cells(): Iterable<Cell<Result>> {
    return this.#cells.values();
  }

  drop(key: string): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) return;
    this.#cells.delete(key);
    if (cell.handle === undefined) return;
    for (const read of cell.reads) this.#index.unwatch(read, cell.handle);
  }

  /**
   * Drops the cells of what has left the collection, also when no render of it was ever finished. Costs the differences
   * from the collection of the last call.
   *
   * @param settled collection at the last {@link Slot.settle}: the result of a key in it no longer holds
   */
  follow(collection: PersistentMap<unknown>, settled: PersistentMap<unknown>): void {
    for (const { key, after } of collection.differences(this.#collection)) {
      if (after !== undefined) continue;
      this.drop(key);
      // Should the same element come back, what it read may have changed meanwhile.
      if (settled.has(key)) this.#unsettled.add(key);
      else this.#unsettled.delete(key);
    }
    this.#collection = collection;
  }

  invalidate(key: string): void {
    this.drop(key);
    this.#unsettled.add(key);
  }

  /** Everything unsettled has been taken into a finished render. */
  settle(): void {
    this.#unsettled.clear();
  }

  clear(): void {
    for (const key of [...this.#cells.keys()]) this.drop(key);
    this.#unsettled.clear();
  }
}

/** From a read to the cells that made it. */
export class CellIndex {
  readonly #watched = new Map<string, Watched>();
  readonly #follows: ((read: string) => boolean) | undefined;
  #moved = new Set<string>();

  /** @param follows reads of which {@link takeMoved} tells; default none */
  constructor(follows?: (read: string) => boolean) {
    this.#follows = follows;
  }

  /** Distinct things that living cells have read. */
  get size(): number {
    return this.#watched.size;
  }

  has(read: string): boolean {
    return this.#watched.has(read);
  }

  /** The followed reads that got their first cell or lost their last one since this was asked before. */
  takeMoved(): Set<string> {
    const moved = this.#moved;
    if (moved.size > 0) this.#moved = new Set();
    return moved;
  }

  watch(read: string, seen: unknown, handle: CellHandle): void {
    const watched = this.#watched.get(read);
    if (watched !== undefined) {
      watched.cells.add(handle);
      return;
    }
    this.#watched.set(read, { seen, cells: new Set([handle]) });
    if (this.#follows?.(read) === true) this.#moved.add(read);
  }

  unwatch(read: string, handle: CellHandle): void {
    const watched = this.#watched.get(read);
    watched?.cells.delete(handle);
    if (watched?.cells.size !== 0) return;
    this.#watched.delete(read);
    if (this.#follows?.(read) === true) this.#moved.add(read);
  }

  /** Looks again and drops the cells that saw something else. */
  refresh(read: string, look: () => unknown): void {
    const watched = this.#watched.get(read);
    if (watched === undefined || isSame(watched.seen, look())) return;
    for (const { slot, key } of [...watched.cells]) slot.invalidate(key);
  }
}

/** Identity; of two lists, of their elements. */
export const isSame = (left: unknown, right: unknown): boolean =>
  Object.is(left, right) ||
  (Array.isArray(left) &&
    Array.isArray(right) &&
    left.length === right.length &&
    left.every((element, index) => Object.is(element, right[index])));
