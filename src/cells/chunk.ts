/**
 * Text as a tree: a leaf is a string, a node a list of chunks. Unchanged sub-trees are shared between renders, so a
 * change copies its path only; the whole text exists only where bytes leave the process.
 */
export interface Chunk {
  /** Bytes in UTF-8. */
  readonly size: number;
  /** Line feeds inside. */
  readonly lines: number;
  readonly text: string | undefined;
  readonly children: readonly Chunk[];
  /** Levels of nodes: 0 is a leaf, 1 a node of leaves. */
  readonly depth: number;
  /** Of a leaf: where its text comes from; this folder does not look into it. */
  readonly origin?: object;
}

const NONE: readonly Chunk[] = [];

/** No text at all. */
export const EMPTY_CHUNK: Chunk = { size: 0, lines: 0, text: '', children: NONE, depth: 0 };

/** A leaf of the tree. `origin` is carried along for whoever explains lines. */
export const leaf = (text: string, origin?: object): Chunk => {
  if (text === '') return EMPTY_CHUNK;
  const base = { size: utf8Size(text), lines: countLines(text), text, children: NONE, depth: 0 };
  return origin === undefined ? base : { ...base, origin };
};

/** A node; a single child is returned as it is. */
export const concat = (children: readonly Chunk[]): Chunk => {
  const [first] = children;
  if (first === undefined) return EMPTY_CHUNK;
  if (children.length === 1) return first;
  let [size, lines, depth] = [0, 0, 0];
  for (const child of children) {
    size += child.size;
    lines += child.lines;
    depth = Math.max(depth, child.depth);
  }
  return { size, lines, text: undefined, children, depth: depth + 1 };
};

/** {@link concat}; the node `before` when it has these children, so that what is known of it stays known. */
export const concatLike = (before: Chunk | undefined, children: readonly Chunk[]): Chunk =>
  before !== undefined &&
  before.children.length === children.length &&
  children.length > 0 &&
  children.every((child, index) => child === before.children[index])
    ? before
    : concat(children);

/** The strings of all leaves in order; their concatenation is the text. */
export function* chunkTexts(chunk: Chunk): Generator<string> {
  if (chunk.text !== undefined) yield chunk.text;
  else for (const child of chunk.children) yield* chunkTexts(child);
}

/** The whole text. Costs the size of the text: not for the path of a change. */
export const chunkText = (chunk: Chunk): string => {
  if (chunk.text !== undefined) return chunk.text;
  const parts: string[] = [];
  collect(chunk, parts);
  return parts.join('');
};

/** Where a line starts: the leaf, and the number of line feeds in that leaf before it. */
export interface LineStart {
  readonly leaf: Chunk;
  readonly offset: number;
}

/** Finds the leaf in which a line starts, by walking down the tree. `line` counts from 1. */
export const findLine = (chunk: Chunk, line: number): LineStart | undefined =>
  line < 1 ? undefined : descend(chunk, line - 1);

const descend = (chunk: Chunk, before: number): LineStart | undefined => {
  if (chunk.lines < before || chunk.size === 0) return undefined;
  if (chunk.text !== undefined) {
    // A line that would start exactly at the end of this leaf starts in the next one.
    const startsBehind = before === chunk.lines && before > 0 && chunk.text.endsWith('\n');
    return startsBehind ? undefined : { leaf: chunk, offset: before };
  }
  let left = before;
  for (const child of chunk.children) {
    const found = descend(child, left);
    if (found !== undefined) return found;
    left -= child.lines;
  }
  return undefined;
};

const collect = (chunk: Chunk, parts: string[]): void => {
  if (chunk.text !== undefined) parts.push(chunk.text);
  else for (const child of chunk.children) collect(child, parts);
};

const countLines = (text: string): number => {
  let lines = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
};

const utf8Size = (text: string): number => {
  let size = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit > 0x7f) size += unit > 0x7ff && !isSurrogate(unit) ? 2 : 1;
  }
  return size;
};

/** The two halves of a pair count two bytes each; a lone half, three bytes in UTF-8, never gets into a text. */
const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;
