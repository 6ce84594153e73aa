import { concat, EMPTY_CHUNK, type Chunk } from './chunk.ts';
import { byCodeUnits } from './persistent-map.ts';

/** Entries of a block before it is split; a change copies one block and the list of blocks. */
const BLOCK = 128;

interface Block {
  readonly keys: readonly string[];
  readonly chunks: readonly Chunk[];
  readonly chunk: Chunk;
}

type Entry = readonly [string, Chunk | undefined];

/** Immutable sequence of chunks sorted by key (code units), which shares what did not change with its predecessor. */
export class OrderedChunks {
  static readonly EMPTY = new OrderedChunks([]);

  readonly #blocks: readonly Block[];
  /** The whole sequence as one chunk. */
  readonly chunk: Chunk;

  private constructor(blocks: readonly Block[]) {
    this.#blocks = blocks;
    this.chunk = blocks.length === 0 ? EMPTY_CHUNK : concat(blocks.map((block) => block.chunk));
  }

  /** A sequence with these keys set (chunk) or removed (undefined); itself when there is nothing to do. */
  with(changes: ReadonlyMap<string, Chunk | undefined>): OrderedChunks {
    if (changes.size === 0) return this;
    const sorted = [...changes].sort(([left], [right]) => byCodeUnits(left, right));
    const blocks: Block[] = [];
    let next = 0;
    for (const [index, block] of this.#blocks.entries()) {
      const limit = this.#blocks[index + 1]?.keys[0];
      const start = next;
      while (next < sorted.length && isBelow(sorted[next], limit)) next += 1;
      if (start === next) blocks.push(block);
      else blocks.push(...split(merge(block, sorted.slice(start, next))));
    }
    if (this.#blocks.length === 0) blocks.push(...split(merge(undefined, sorted)));
    return new OrderedChunks(blocks);
  }
}

const isBelow = (entry: Entry | undefined, limit: string | undefined): boolean =>
  entry !== undefined && (limit === undefined || entry[0] < limit);

const merge = (block: Block | undefined, changes: readonly Entry[]): [string, Chunk][] => {
  const merged: [string, Chunk][] = [];
  const keys = block?.keys ?? [];
  let at = 0;
  const copyBelow = (limit: string | undefined): void => {
    while (at < keys.length && (limit === undefined || (keys[at] as string) < limit)) {
      merged.push([keys[at] as string, block?.chunks[at] as Chunk]);
      at += 1;
    }
  };
  for (const [key, chunk] of changes) {
    copyBelow(key);
    if (keys[at] === key) at += 1;
    if (chunk !== undefined) merged.push([key, chunk]);
  }
  copyBelow(undefined);
  return merged;
};

const split = (entries: readonly (readonly [string, Chunk])[]): Block[] => {
  const blocks: Block[] = [];
  const size = entries.length <= BLOCK ? BLOCK : BLOCK / 2;
  for (let start = 0; start < entries.length; start += size) {
    const part = entries.slice(start, start + size);
    const chunks = part.map(([, chunk]) => chunk);
    blocks.push({ keys: part.map(([key]) => key), chunks, chunk: concat(chunks) });
  }
  return blocks;
};
