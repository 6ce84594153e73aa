import { closeSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, open, readFile, readdir, rename, rm, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from '../failures.ts';

/**
 * Replaces a file as a whole: after a crash there is the old one or the new one.
 *
 * @param durable also survives a power failure. Without, the start-up check of the tree notices that something is stale
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  { durable = false }: { readonly durable?: boolean } = {},
): Promise<void> {
  const temporary = `${path}.new`;
  if (!durable && content.length <= AT_ONCE) {
    replaceAtOnce(temporary, path, content);
    return;
  }
  const handle = await open(temporary, 'w', 0o600);
  try {
    await handle.writeFile(content);
    if (durable) await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, path);
  if (durable) await syncDirectory(dirname(path));
}

/** Longest content that is written without a turn of the event loop. */
const AT_ONCE = 64 * 1024;

/** Four calls of some microseconds each; through the thread pool each would take longer than all of them. */
function replaceAtOnce(temporary: string, path: string, content: string | Uint8Array): void {
  const file = openSync(temporary, 'w', 0o600);
  try {
    writeFileSync(file, content);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** @returns `undefined` when there is no such file or it is not JSON */
export async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error: unknown) {
    if (error instanceof SyntaxError || codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Removes a file; that it is not there is fine. */
export async function removeFile(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
}

/** Makes a private directory, or empties it. */
export async function emptyFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  for (const name of await readdir(path)) {
    await rm(join(path, name), { recursive: true, force: true });
  }
}
