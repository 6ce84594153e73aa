import { concat, type Chunk } from './chunk.ts';
import { OrderedBlocks } from './ordered-blocks.ts';

/** Immutable sequence of chunks sorted by key (code units), which shares what did not change with its predecessor. */
export class OrderedChunks {
  static readonly EMPTY = new OrderedChunks(OrderedBlocks.empty(concat));

  readonly #blocks: OrderedBlocks<Chunk, Chunk>;
  /** The whole sequence as one chunk. */
  readonly chunk: Chunk;

  private constructor(blocks: OrderedBlocks<Chunk, Chunk>) {
    this.#blocks = blocks;
    this.chunk = concat(blocks.summaries);
  }

  /** A sequence with these keys set (chunk) or removed (undefined); itself when there is nothing to do. */
  with(changes: ReadonlyMap<string, Chunk | undefined>): OrderedChunks {
    return changes.size === 0 ? this : new OrderedChunks(this.#blocks.with(changes));
  }
}
