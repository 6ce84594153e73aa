import type { Chunk } from '../cells/chunk.ts';

/** Bytes [offset, offset + replaced) of the old text become `bytes`. */
export interface Patch {
  readonly offset: number;
  readonly replaced: number;
  readonly bytes: Uint8Array;
}

/** The UTF-8 bytes of a text. */
export const chunkBytes = (chunk: Chunk): Buffer => rangeOf(chunk, 0, chunk.size);

/**
 * The one byte range in which two texts differ, found by descending only where their trees differ: its cost follows the
 * change and the width of the nodes above it, not the size of the text.
 */
export const patchBetween = (before: Chunk, after: Chunk): Patch => {
  const shortest = Math.min(before.size, after.size);
  const prefix = commonEnds(before, after, false);
  const suffix = Math.min(commonEnds(before, after, true), shortest - prefix);
  return {
    offset: prefix,
    replaced: before.size - prefix - suffix,
    bytes: rangeOf(after, prefix, after.size - suffix),
  };
};

/** Bytes that two trees share at their beginning (or end), counted in whole leaves. */
const commonEnds = (left: Chunk, right: Chunk, fromEnd: boolean): number => {
  if (left === right) return left.size;
  if (left.text !== undefined || right.text !== undefined) {
    return left.text === right.text ? left.size : 0;
  }
  const count = Math.min(left.children.length, right.children.length);
  let shared = 0;
  for (let index = 0; index < count; index += 1) {
    const [one, other] = [child(left, index, fromEnd), child(right, index, fromEnd)];
    if (one === undefined || other === undefined) break;
    const common = commonEnds(one, other, fromEnd);
    shared += common;
    if (common !== one.size || common !== other.size) break;
  }
  return shared;
};

const child = (chunk: Chunk, index: number, fromEnd: boolean): Chunk | undefined =>
  fromEnd ? chunk.children[chunk.children.length - 1 - index] : chunk.children[index];

const rangeOf = (chunk: Chunk, from: number, to: number): Buffer => {
  const parts: Buffer[] = [];
  const collect = (node: Chunk, start: number): void => {
    if (start >= to || start + node.size <= from) return;
    if (node.text !== undefined) {
      const bytes = Buffer.from(node.text, 'utf8');
      parts.push(bytes.subarray(Math.max(0, from - start), Math.min(bytes.length, to - start)));
      return;
    }
    let at = start;
    for (const inner of node.children) {
      collect(inner, at);
      at += inner.size;
    }
  };
  collect(chunk, 0);
  return Buffer.concat(parts);
};
