import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { startHaproxy, type RunningHaproxy } from './haproxy.ts';
import { filesOf, type World } from './plan-world.ts';

/** A HAProxy that was started from the files of a world. */
export interface WorldProcess extends RunningHaproxy {
  /** Where its files are, and what paths in its configuration are relative to. */
  readonly dir: string;
}

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Puts the files of a world into a folder. */
export const writeWorld = (dir: string, world: World): void => {
  for (const [path, text] of filesOf(world)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
};

/** Starts HAProxy from a world, in a folder of its own that goes with the test file. */
export async function startWorld(binary: string, world: World): Promise<WorldProcess> {
  const dir = mkdtempSync(join(tmpdir(), 'world-'));
  folders.push(dir);
  writeWorld(dir, world);
  const configFile = join(dir, 'global.cfg');
  writeFileSync(configFile, `global\n    default-path origin ${dir}\n    maxconn 200\n`);
  const args = ['-f', join(dir, 'haproxy.cfg'), '-dr'];
  return { dir, ...(await startHaproxy({ binary, dir, configFile, args })) };
}
