import { createHash, type Hash } from 'node:crypto';
import type { TextHasher } from './render/text-digests.ts';

/** SHA-256 of text in pieces, by Node; passed into the render, which also runs without Node. */
export const sha256Hasher = (hash: Hash = createHash('sha256')): TextHasher => ({
  update: (text) => {
    hash.update(text, 'utf8');
  },
  copy: () => sha256Hasher(hash.copy()),
  digest: () => hash.digest('hex'),
});
