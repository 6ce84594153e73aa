import { createHash } from 'node:crypto';
import { constants, type PathLike } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import type { Digest } from '../../src/protocol/protocol.ts';

/** Digest and size in bytes of a file's content. */
export interface Content {
  readonly digest: Digest;
  readonly size: number;
}

const CHUNK_BYTES = 256 * 1024;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Hashes a regular file without following a link and without holding it in memory.
 *
 * @returns `undefined` when it is missing, unreadable or not a regular file
 */
export async function hashFile(path: PathLike): Promise<Content | undefined> {
  try {
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of readRange(path, { from: 0, to: Infinity })) {
      hash.update(chunk);
      size += chunk.length;
    }
    return { digest: hash.digest('hex'), size };
  } catch {
    return undefined;
  }
}

/**
 * Gives a regular file these permission bits when it has others, without following a link.
 *
 * @returns `refused`: it belongs to somebody else; `absent`: there is none that can be opened
 */
export async function mendMode(
  path: PathLike,
  mode: number,
): Promise<'kept' | 'mended' | 'refused' | 'absent'> {
  const handle = await open(path, READ).catch(() => undefined);
  if (handle === undefined) return 'absent';
  try {
    const stat = await regular(handle);
    if ((stat.mode & 0o7777) === mode) return 'kept';
    await handle.chmod(mode);
    return 'mended';
  } catch {
    return 'refused';
  } finally {
    await handle.close();
  }
}

/**
 * Writes a new file from a stream and hashes it on the way. The chunks may be reused by their source afterwards.
 *
 * @throws what opening, writing or the stream throws, for example ENOSPC
 */
export async function writeContent(
  path: PathLike,
  chunks: AsyncIterable<Uint8Array>,
  mode: number,
): Promise<Content> {
  const handle = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    mode,
  );
  try {
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of chunks) {
      hash.update(chunk);
      await writeAll(handle, chunk);
      size += chunk.length;
    }
    await handle.chmod(mode); // whatever the umask says
    return { digest: hash.digest('hex'), size };
  } finally {
    await handle.close();
  }
}

/** What a patch does to the bytes of a file: [offset, offset + replaced) become `bytes`. */
export interface Patch {
  readonly offset: number;
  readonly replaced: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The bytes of a file with one range replaced. */
export async function* spliced(path: PathLike, patch: Patch): AsyncGenerator<Uint8Array> {
  yield* readRange(path, { from: 0, to: patch.offset });
  yield* patch.bytes;
  yield* readRange(path, { from: patch.offset + patch.replaced, to: Infinity });
}

/** The bytes [from, to) of a regular file; one buffer is used again and again. */
async function* readRange(
  path: PathLike,
  range: { readonly from: number; readonly to: number },
): AsyncGenerator<Uint8Array> {
  if (range.to <= range.from) return;
  const handle = await open(path, READ);
  try {
    const { size } = await regular(handle);
    const end = Math.min(range.to, size);
    const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, end - range.from)));
    let position = range.from;
    while (position < end) {
      const length = Math.min(buffer.length, end - position);
      const { bytesRead } = await handle.read(buffer, 0, length, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

async function regular(handle: FileHandle): Promise<{ size: number; mode: number }> {
  const stat = await handle.stat();
  if (!stat.isFile()) throw new Error('not a regular file');
  return stat;
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  let done = 0;
  while (done < chunk.length) {
    const { bytesWritten } = await handle.write(chunk, done, chunk.length - done);
    done += bytesWritten;
  }
}
