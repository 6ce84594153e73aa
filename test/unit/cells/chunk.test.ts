import { fc, test as property } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import {
  EMPTY_CHUNK,
  chunkText,
  chunkTexts,
  concat,
  findLine,
  leaf,
  type Chunk,
} from '../../../src/cells/chunk.ts';
import { OrderedChunks } from '../../../src/cells/ordered-chunks.ts';

const text = fc.string({ unit: fc.constantFrom('a', '\n', 'é', '日', '😀') });
const { tree } = fc.letrec<{ tree: Chunk; node: Chunk; leaf: Chunk }>((tie) => ({
  tree: fc.oneof({ depthSize: 'small' }, tie('leaf'), tie('node')),
  node: fc.array(tie('tree'), { maxLength: 4 }).map(concat),
  leaf: text.map((one) => leaf(one)),
}));

describe('a chunk', () => {
  property.prop([tree])('knows its bytes and line feeds, and yields its text in order', (chunk) => {
    const whole = chunkText(chunk);
    expect([...chunkTexts(chunk)].join('')).toBe(whole);
    expect(chunk.size).toBe(Buffer.byteLength(whole));
    expect(chunk.lines).toBe(whole.split('\n').length - 1);
  });

  property.prop([tree, fc.nat({ max: 20 })])(
    'finds the leaf in which a line starts',
    (chunk, line) => {
      const lines = chunkText(chunk).split('\n');
      if (lines.at(-1) === '') lines.pop();
      const start = findLine(chunk, line);
      if (line < 1 || line > lines.length) expect(start).toBeUndefined();
      else {
        const rest = start?.leaf.text?.split('\n')[start.offset] ?? 'nothing';
        expect(lines[line - 1]?.startsWith(rest)).toBe(true);
      }
    },
  );

  test('without text is one and the same', () => {
    expect(concat([])).toBe(EMPTY_CHUNK);
    expect(leaf('')).toBe(EMPTY_CHUNK);
  });
});

describe('ordered chunks', () => {
  const changes = fc.array(fc.tuple(fc.string({ maxLength: 2 }), fc.option(text)), {
    maxLength: 300,
  });

  property.prop([fc.array(changes, { maxLength: 5 })])(
    'equal the sorted texts after any changes',
    (batches) => {
      const model = new Map<string, string>();
      let sequence = OrderedChunks.EMPTY;
      for (const batch of batches) {
        const entries = new Map(
          batch.map(([key, one]) => [key, one === null ? undefined : leaf(one)]),
        );
        sequence = sequence.with(entries);
        for (const [key, chunk] of entries) {
          if (chunk === undefined) model.delete(key);
          else model.set(key, chunkText(chunk));
        }
      }
      const sorted = [...model].sort(([left], [right]) => (left < right ? -1 : 1));
      expect(chunkText(sequence.chunk)).toBe(sorted.map(([, one]) => one).join(''));
    },
  );

  test('share what did not change with their predecessor', () => {
    const key = (index: number): string => String(index).padStart(5, '0');
    const all = Array.from(
      { length: 10_000 },
      (_, index) => [key(index), leaf(`${index}\n`)] as const,
    );
    const before = OrderedChunks.EMPTY.with(new Map(all));
    const after = before.with(new Map([[key(5000), leaf('x\n')]]));
    const shared = after.chunk.children.filter((child) => before.chunk.children.includes(child));
    expect(shared.length).toBe(before.chunk.children.length - 1);
  });
});
