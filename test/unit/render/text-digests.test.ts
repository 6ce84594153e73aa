import { fc, test as property } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import { chunkText, leaf } from '../../../src/cells/chunk.ts';
import { OrderedChunks } from '../../../src/cells/ordered-chunks.ts';
import { sha256, sha256Hasher } from '../../../src/digest.ts';
import { TextDigests, joiningHasher, type TextHasher } from '../../../src/render/text-digests.ts';

const line = (index: number, text: string): string => `${index} ${text.repeat(400)}\n`;
const key = (index: number): string => String(index).padStart(6, '0');

const longText = OrderedChunks.EMPTY.with(
  new Map(
    Array.from({ length: 2000 }, (_, index) => [key(index), leaf(line(index, 'é'))] as const),
  ),
);

describe.each([
  ['in pieces', () => sha256Hasher()],
  ['put together', () => joiningHasher(sha256)],
])('the digest of a text hashed %s', (_name, hasher: () => TextHasher) => {
  property.prop(
    [
      fc.array(fc.tuple(fc.nat({ max: 2500 }), fc.option(fc.constantFrom('a', 'b'))), {
        maxLength: 6,
      }),
    ],
    {
      numRuns: 20,
    },
  )('is that of the whole text after any changes', (changes) => {
    const digests = new TextDigests(hasher);
    let text = longText;
    for (const [index, one] of changes) {
      text = text.with(new Map([[key(index), one === null ? undefined : leaf(line(index, one))]]));
      expect(digests.of(text.chunk, 'file')).toBe(sha256(chunkText(text.chunk)));
    }
  });
});

test('what stands before the first change is not hashed again', () => {
  let hashed = 0;
  const counting = (inner: TextHasher): TextHasher => ({
    update: (text) => {
      hashed += text.length;
      inner.update(text);
    },
    copy: () => counting(inner.copy()),
    digest: () => inner.digest(),
  });
  const digests = new TextDigests(() => counting(sha256Hasher()));
  digests.of(longText.chunk, 'file');
  const whole = hashed;
  hashed = 0;
  digests.of(longText.with(new Map([[key(1990), leaf('x')]])).chunk, 'file');
  expect(hashed).toBeLessThan(whole / 4);
  hashed = 0;
  digests.of(longText.chunk, 'file');
  expect(hashed).toBe(0);
});
