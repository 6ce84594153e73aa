import { fc, test } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import { type Chunk, chunkText, concat, leaf } from '../../../src/cells/chunk.ts';
import { chunkBytes, patchBetween, type Patch } from '../../../src/sinks/patch.ts';

const spliced = (before: Chunk, { offset, replaced, bytes }: Patch): string => {
  const old = Buffer.from(chunkText(before));
  return Buffer.concat([
    old.subarray(0, offset),
    bytes,
    old.subarray(offset + replaced),
  ]).toString();
};

/** Trees of texts, with characters of one to four bytes. */
const trees: fc.Arbitrary<Chunk> = fc.letrec<{ tree: Chunk }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.string({ unit: 'grapheme', maxLength: 5 }).map((text) => leaf(text)),
    fc.array(tie('tree'), { maxLength: 5 }).map((children) => concat(children)),
  ),
})).tree;

describe('patchBetween', () => {
  test.prop([trees, trees])(
    'turns the old bytes into the new ones, whatever the trees',
    (before, after) => {
      expect(spliced(before, patchBetween(before, after))).toBe(chunkText(after));
    },
  );

  it('sends only the leaf that changed among many', () => {
    const lines = Array.from({ length: 1_000 }, (_, index) => leaf(`line ${String(index)}\n`));
    const changed = lines.with(500, leaf('another line\n'));
    const patch = patchBetween(concat(lines), concat(changed));
    expect(Buffer.from(patch.bytes).toString()).toBe('another line\n');
  });

  it('sends only what was inserted among shared leaves', () => {
    const lines = Array.from({ length: 100 }, (_, index) => leaf(`line ${String(index)}\n`));
    const patch = patchBetween(concat(lines), concat(lines.toSpliced(50, 0, leaf('new\n'))));
    expect([patch.replaced, Buffer.from(patch.bytes).toString()]).toStrictEqual([0, 'new\n']);
  });

  it('sends nothing for equal trees', () => {
    const tree = concat([leaf('a'), leaf('b')]);
    expect(patchBetween(tree, tree)).toMatchObject({ replaced: 0, bytes: Buffer.alloc(0) });
  });

  it('gives the bytes of a tree', () => {
    expect(chunkBytes(concat([leaf('ä'), concat([leaf('b'), leaf('😀')])])).toString()).toBe(
      'äb😀',
    );
  });
});
