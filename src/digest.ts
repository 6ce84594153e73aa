import { createHash, hash, type Hash } from 'node:crypto';
import type { DigestFunction } from './plan/plan.ts';
import type { TextHasher } from './render/text-digests.ts';

/** Hex SHA-256 of UTF-8 text; passed into everything that must also run without Node. */
export const sha256: DigestFunction = (text) => hash('sha256', text, 'hex');

/** The same in pieces, for long texts of which only the end changes. */
export const sha256Hasher = (state: Hash = createHash('sha256')): TextHasher => ({
  update: (text) => {
    state.update(text, 'utf8');
  },
  copy: () => sha256Hasher(state.copy()),
  digest: () => state.digest('hex'),
});
