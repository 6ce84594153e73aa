import { byCodeUnits } from './persistent-map.ts';

/** Entries of a block before it is split; a change copies one block and the list of blocks. */
const BLOCK = 128;

interface Block<Value> {
  readonly keys: readonly string[];
  readonly values: readonly Value[];
}

type Summarise<Value, Summary> = (values: readonly Value[]) => Summary;

/** All blocks, in parallel lists: a change looks into few of them, and copies the lists as they are. */
interface Blocks<Value, Summary> {
  /** First key of each block. */
  readonly starts: string[];
  readonly blocks: Block<Value>[];
  readonly summaries: Summary[];
}

/**
 * Immutable sequence sorted by key (code units), in blocks that are shared with its predecessor where nothing changed.
 * Each block has a summary of its values, so that what is made of the whole is made of the summaries.
 */
export class OrderedBlocks<Value, Summary> {
  readonly #summarise: Summarise<Value, Summary>;
  readonly #all: Readonly<Blocks<Value, Summary>>;

  private constructor(summarise: Summarise<Value, Summary>, all: Blocks<Value, Summary>) {
    this.#summarise = summarise;
    this.#all = all;
  }

  /** @param summarise pure; called once for each block that changes, with its values in order */
  static empty<Value, Summary>(
    summarise: Summarise<Value, Summary>,
  ): OrderedBlocks<Value, Summary> {
    return new OrderedBlocks(summarise, { starts: [], blocks: [], summaries: [] });
  }

  /** Of the blocks in order. Where a block ends depends on the history, so what is made of them must not. */
  get summaries(): readonly Summary[] {
    return this.#all.summaries;
  }

  get isEmpty(): boolean {
    return this.#all.blocks.length === 0;
  }

  /** A sequence with these keys set (value) or removed (undefined); itself when there is nothing to do. */
  with(changes: ReadonlyMap<string, Value | undefined>): OrderedBlocks<Value, Summary> {
    if (changes.size === 0) return this;
    const all = {
      starts: this.#all.starts.slice(),
      blocks: this.#all.blocks.slice(),
      summaries: this.#all.summaries.slice(),
    };
    const sorted = [...changes].sort(([left], [right]) => byCodeUnits(left, right));
    // From the end, so that the places of those before stay what they are.
    for (let end = sorted.length; end > 0;) {
      const at = blockOf(all.starts, (sorted[end - 1] as Entry<Value>)[0]);
      let start = end - 1;
      while (start > 0 && blockOf(all.starts, (sorted[start - 1] as Entry<Value>)[0]) === at)
        start -= 1;
      this.#replace(all, at, merge(all.blocks[at], sorted.slice(start, end)));
      end = start;
    }
    return new OrderedBlocks(this.#summarise, all);
  }

  /** Puts entries into the place of one block, as one or more. */
  #replace(all: Blocks<Value, Summary>, at: number, entries: readonly [string, Value][]): void {
    const blocks: Block<Value>[] = [];
    const size = entries.length <= BLOCK ? BLOCK : BLOCK / 2;
    for (let start = 0; start < entries.length; start += size) {
      const part = entries.slice(start, start + size);
      blocks.push({ keys: part.map(([key]) => key), values: part.map(([, value]) => value) });
    }
    all.starts.splice(at, 1, ...blocks.map(({ keys }) => keys[0] as string));
    all.summaries.splice(at, 1, ...blocks.map(({ values }) => this.#summarise(values)));
    all.blocks.splice(at, 1, ...blocks);
  }
}

type Entry<Value> = readonly [key: string, value: Value | undefined];

/** The last block that starts at or before a key; the first one for a key before all of them. */
const blockOf = (starts: readonly string[], key: string): number => {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] as string) <= key) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
};

const merge = <Value>(
  block: Block<Value> | undefined,
  changes: readonly Entry<Value>[],
): [string, Value][] => {
  const merged: [string, Value][] = [];
  const keys = block?.keys ?? [];
  let at = 0;
  const copyBelow = (limit: string | undefined): void => {
    while (at < keys.length && (limit === undefined || (keys[at] as string) < limit)) {
      merged.push([keys[at] as string, block?.values[at] as Value]);
      at += 1;
    }
  };
  for (const [key, value] of changes) {
    copyBelow(key);
    if (keys[at] === key) at += 1;
    if (value !== undefined) merged.push([key, value]);
  }
  copyBelow(undefined);
  return merged;
};
