import { chunkText, type Chunk } from '../cells/chunk.ts';
import type { DigestFunction } from '../plan/plan.ts';
import type { Digest } from '../protocol/protocol.ts';

/** A SHA-256 of UTF-8 text that comes in pieces. */
export interface TextHasher {
  update(text: string): void;
  /** A hasher of its own that goes on from here. */
  copy(): TextHasher;
  /** Lower-case hex; ends this hasher, not its copies. */
  digest(): Digest;
}

/** For where there is no such hasher: puts the whole text together. */
export const joiningHasher = (hash: DigestFunction, parts: readonly string[] = []): TextHasher => {
  const own = [...parts];
  return {
    update: (text) => {
      own.push(text);
    },
    copy: () => joiningHasher(hash, own),
    digest: () => hash(own.join('')),
  };
};

/** Sub-trees of leaves up to this many bytes are kept as one string, so that a digest does not walk to every leaf again. */
const KEPT_BYTES = 256 * 1024;
/** Sub-trees up to this many bytes are one string whatever they are made of. */
const SMALL_BYTES = 4 * 1024;
/** Bytes between two states that are kept to go on from. */
const CHECKPOINT_BYTES = 64 * 1024;

interface Checkpoint {
  /** Blocks before it. */
  readonly blocks: number;
  readonly state: TextHasher;
}

interface Run {
  readonly blocks: readonly Chunk[];
  readonly checkpoints: readonly Checkpoint[];
}

/**
 * Digests of texts, kept for as long as the text is. Of a long text that changes over time, everything before the first
 * change is not hashed again.
 */
export class TextDigests {
  readonly #hasher: () => TextHasher;
  readonly #known = new WeakMap<Chunk, Digest>();
  readonly #texts = new WeakMap<Chunk, string>();
  readonly #runs = new Map<string, Run>();

  constructor(hasher: () => TextHasher) {
    this.#hasher = hasher;
  }

  /** @param path names the file (or a part of one) over time; without it the text is taken to be short */
  of(chunk: Chunk, path?: string): Digest {
    const known = this.#known.get(chunk);
    if (known !== undefined) return known;
    const long = path !== undefined && chunk.size > CHECKPOINT_BYTES;
    const digest = long ? this.#continued(chunk, path) : this.#whole(chunk);
    this.#known.set(chunk, digest);
    return digest;
  }

  /** There is no such file any more. */
  forget(path: string): void {
    this.#runs.delete(path);
  }

  #whole(chunk: Chunk): Digest {
    const hasher = this.#hasher();
    for (const block of blocksOf(chunk)) hasher.update(this.#textOf(block));
    return hasher.digest();
  }

  #continued(chunk: Chunk, path: string): Digest {
    const blocks = [...blocksOf(chunk)];
    const kept = this.#usable(path, blocks);
    const start = kept.at(-1) ?? { blocks: 0, state: this.#hasher() };
    const hasher = start.state.copy();
    const checkpoints = [...kept];
    let since = 0;
    for (const [offset, block] of blocks.slice(start.blocks).entries()) {
      if (since >= CHECKPOINT_BYTES) {
        checkpoints.push({ blocks: start.blocks + offset, state: hasher.copy() });
        since = 0;
      }
      hasher.update(this.#textOf(block));
      since += block.size;
    }
    this.#runs.set(path, { blocks, checkpoints });
    return hasher.digest();
  }

  /** States that were reached by blocks which are still the same. */
  #usable(path: string, blocks: readonly Chunk[]): readonly Checkpoint[] {
    const before = this.#runs.get(path);
    if (before === undefined) return [];
    const same = commonPrefix(before.blocks, blocks);
    return before.checkpoints.filter((checkpoint) => checkpoint.blocks <= same);
  }

  #textOf(chunk: Chunk): string {
    if (chunk.text !== undefined) return chunk.text;
    const known = this.#texts.get(chunk);
    if (known !== undefined) return known;
    const text = chunkText(chunk);
    this.#texts.set(chunk, text);
    return text;
  }
}

/** Small sub-trees, and larger ones that have nothing but leaves: what stays one string while its neighbours change. */
function* blocksOf(chunk: Chunk): Generator<Chunk> {
  if (chunk.size === 0) return;
  if (chunk.text !== undefined || isBlock(chunk)) yield chunk;
  else for (const child of chunk.children) yield* blocksOf(child);
}

const isBlock = ({ size, depth }: Chunk): boolean =>
  size <= SMALL_BYTES || (size <= KEPT_BYTES && depth === 1);

const commonPrefix = (left: readonly Chunk[], right: readonly Chunk[]): number => {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length += 1;
  return length;
};
