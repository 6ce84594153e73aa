import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS, type Digest } from '../../src/protocol/protocol.ts';

/**
 * Lines of an owned file, as a payload carries them: without empty ones, which would end it.
 *
 * @throws when the file cannot be read, or is not the one of this digest
 */
export type ReadContent = (path: string, digest: Digest) => Promise<readonly string[]>;

/** More than any command carries, in bytes. */
const MOST = LIMITS.tlsFileBytes;

/** Reads files below a directory, without following a link at their end. Errors name no content. */
export const contentsBelow =
  (base: string): ReadContent =>
  async (path, digest) => {
    const handle = await open(join(base, path), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      if ((await handle.stat()).size > MOST) throw new Error('the file is too large for a command');
      const bytes = await handle.readFile();
      if (createHash('sha256').update(bytes).digest('hex') !== digest) {
        throw new Error('the file is not the one that was sent');
      }
      return bytes
        .toString('latin1')
        .split(/\r?\n/)
        .filter((line) => line.trim() !== '');
    } finally {
      await handle.close();
    }
  };
