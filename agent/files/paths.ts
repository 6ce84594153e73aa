import { lstat, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS } from '../../src/protocol/protocol.ts';
import { codeOf } from '../failures.ts';

/**
 * Whether a path may name a file of the pod: relative, canonical, no `..`, no component that starts with a dot, no
 * control character or backslash, at most {@link LIMITS}`.pathBytes` bytes.
 */
export function isCanonicalPath(path: string): boolean {
  if (path === '' || Buffer.byteLength(path) > LIMITS.pathBytes) return false;
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return false;
  return path.split('/').every((part) => part !== '' && !part.startsWith('.'));
}

/** Every directory on the way to a canonical path, outermost first: `a/b/c` gives `a`, `a/b`. */
export function parentsOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/**
 * Makes the directories that a path needs, and looks at each one first, so that no symbolic link leads out of the tree.
 *
 * @throws when one of them is something else than a directory
 */
export async function ensureParents(base: string, path: string): Promise<void> {
  for (const parent of parentsOf(path)) await ensureDirectory(base, parent);
}

/**
 * Throws when a parent of the path leads elsewhere. Missing ones are fine, and so is a plain file: it may be on its way
 * out.
 *
 * @throws naming the parent
 */
export async function checkParents(base: string, path: string): Promise<void> {
  for (const parent of parentsOf(path)) {
    const kind = await kindOf(join(base, parent));
    if (kind === 'none' || kind === 'file') return;
    if (kind !== 'directory') throw new Error(`${parent} is ${kind}, not a directory`);
  }
}

async function ensureDirectory(base: string, path: string): Promise<void> {
  const kind = await kindOf(join(base, path));
  if (kind === 'directory') return;
  if (kind !== 'none') throw new Error(`${path} is ${kind}, not a directory`);
  await mkdir(join(base, path), { mode: 0o755 });
}

/** What stands at a path, without following a link. */
export async function kindOf(
  path: string,
): Promise<'none' | 'file' | 'directory' | 'a symbolic link' | 'a special file'> {
  try {
    const stat = await lstat(path);
    if (stat.isFile()) return 'file';
    if (stat.isDirectory()) return 'directory';
    return stat.isSymbolicLink() ? 'a symbolic link' : 'a special file';
  } catch (error: unknown) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return 'none';
    throw error;
  }
}
