import { lstat, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentOptions } from '../options.ts';

/**
 * Puts the bootstrap file where HAProxy looks for its main configuration, unless something is there already, so that
 * HAProxy can start before anything was applied. What was applied survives a restart of HAProxy.
 *
 * @returns whether it was put there
 * @throws when the bootstrap file cannot be read or the directory not be written
 */
export async function placeBootstrap({
  baseDir,
  config,
  bootstrap,
}: Pick<AgentOptions, 'baseDir' | 'config' | 'bootstrap'>): Promise<boolean> {
  const target = join(baseDir, config);
  if (bootstrap === undefined || (await exists(target))) return false;
  const staged = join(baseDir, '.haptic-bootstrap');
  await writeFile(staged, await readFile(bootstrap), { mode: 0o600, flush: true });
  await rename(staged, target);
  return true;
}

/** A dangling link counts as there: links are never followed. */
const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
      throw error;
    },
  );
