/** Lines of files whose order is that of the cells: ordered maps and certificate lists. */
import { leaf, type Chunk } from '../cells/chunk.ts';
import { OrderedBlocks } from '../cells/ordered-blocks.ts';

/** Key and value; a line is both with a space between, or the key alone where the value is empty. */
export type Pair = readonly [key: string, value: string];

/** Some lines that follow each other. */
export interface LineBlock {
  readonly pairs: readonly Pair[];
  readonly chunk: Chunk;
}

/** Lines by owner, for files whose order is that of the cells. */
export type Lines = OrderedBlocks<readonly Pair[], LineBlock>;

const lineBlock = (owned: readonly (readonly Pair[])[]): LineBlock => {
  const pairs = owned.flat();
  const texts = pairs.map(([key, value]) => (value === '' ? `${key}\n` : `${key} ${value}\n`));
  return { pairs, chunk: leaf(texts.join('')) };
};

/** A file without lines. */
export const NO_LINES: Lines = OrderedBlocks.empty(lineBlock);
