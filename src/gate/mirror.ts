import { mkdirSync, mkdtempSync, chownSync, readdirSync, rmSync, statSync } from 'node:fs';
import { chown, mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { type Chunk, chunkText } from '../cells/chunk.ts';
import type { RenderedFile } from '../render/render.ts';
import { type ConfigNeeds, needsOf, NO_NEEDS, withOrigin } from './config-needs.ts';
import type { Checkable } from './verdict.ts';

/** The files of the newest checked render on disk, private to the check. */
export interface Mirror {
  /** Directory that holds the files. */
  readonly tree: string;
  /** Empty directory beside it. */
  readonly root: string;
  /** User and group that shall own everything. Set before the first update; without the right to do so it changes nothing. */
  own(user: number): void;
  /**
   * Brings the tree to the files of a render; only files that differ are written. Updates follow one another.
   *
   * @throws when a file cannot be written, or when a path leaves the directory
   */
  update(render: Checkable, signal: AbortSignal): Promise<ConfigNeeds>;
  /** Removes it all, after an update that still runs. */
  close(): Promise<void>;
}

const PREFIX = 'haptic-check-';
/** Of this process: in a container each one has the number of the one before. */
const STARTED = String(Math.round(performance.timeOrigin));

/**
 * Makes an empty mirror, mode 0700, below `parent`. Mirrors that a killed process left there are removed: they hold keys.
 *
 * @throws when the directory cannot be written
 */
export const createMirror = (parent: string): Mirror => {
  removeStale(parent);
  const base = mkdtempSync(join(parent, `${PREFIX}${process.pid}-${STARTED}-`));
  const [tree, root] = [join(base, 'tree'), join(base, 'root')];
  for (const folder of [tree, root]) mkdirSync(folder, { mode: 0o700 });
  return new FileMirror(base, tree, root);
};

class FileMirror implements Mirror {
  readonly tree: string;
  readonly root: string;
  readonly #base: string;
  readonly #written = new Map<string, Chunk>();
  #owner: number | undefined;
  #needs: ConfigNeeds = NO_NEEDS;
  /** The update that runs last: a cancelled one still ends its file. */
  #running: Promise<unknown> = Promise.resolve();

  constructor(base: string, tree: string, root: string) {
    this.#base = base;
    this.tree = tree;
    this.root = root;
  }

  own(user: number): void {
    try {
      for (const folder of [this.#base, this.tree, this.root]) chownSync(folder, user, user);
      this.#owner = user;
    } catch {
      // a root user without that capability; whoever runs the check finds out whether it can
    }
  }

  update(render: Checkable, signal: AbortSignal): Promise<ConfigNeeds> {
    const update = this.#running.then(() => this.#update(render, signal));
    this.#running = update.catch(() => undefined);
    return update;
  }

  async close(): Promise<void> {
    await this.#running;
    await rm(this.#base, { recursive: true, force: true });
  }

  async #update(render: Checkable, signal: AbortSignal): Promise<ConfigNeeds> {
    const configPath = render.plan.config.path;
    for (const path of [...this.#written.keys()]) {
      if (!render.files.has(path)) await this.#remove(path);
    }
    for (const file of render.files.values()) {
      signal.throwIfAborted();
      const isConfig = file.path === configPath;
      if (this.#holds(file, isConfig)) continue;
      const text = chunkText(file.text);
      if (isConfig) this.#needs = needsOf(text);
      await this.#write(file, isConfig ? withOrigin(text, this.tree) : text);
    }
    return this.#needs;
  }

  /** Equal content may come in another chunk; that is not worth finding out for the configuration, the largest file. */
  #holds({ path, text }: RenderedFile, isConfig: boolean): boolean {
    const written = this.#written.get(path);
    if (written === undefined || written === text) return written !== undefined;
    return !isConfig && written.size === text.size && chunkText(written) === chunkText(text);
  }

  async #write({ path, text }: RenderedFile, content: string): Promise<void> {
    const target = this.#inside(path);
    await this.#makeFolder(dirname(path));
    this.#written.delete(path); // a write that is cut off is done again
    await writeFile(target, content, { mode: 0o600 });
    if (this.#owner !== undefined) await chown(target, this.#owner, this.#owner);
    this.#written.set(path, text);
  }

  async #remove(path: string): Promise<void> {
    await rm(this.#inside(path), { force: true });
    this.#written.delete(path);
    await this.#removeEmpty(dirname(path));
  }

  /** A folder may become a file of its name. */
  async #removeEmpty(folder: string): Promise<void> {
    if (folder === '.') return;
    try {
      await rmdir(this.#inside(folder));
    } catch {
      return; // it still holds something
    }
    await this.#removeEmpty(dirname(folder));
  }

  /** One level after the other, so that each gets mode and owner. */
  async #makeFolder(path: string): Promise<void> {
    if (path === '.') return;
    await this.#makeFolder(dirname(path));
    const folder = this.#inside(path);
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (made !== undefined && this.#owner !== undefined) {
      await chown(folder, this.#owner, this.#owner);
    }
  }

  #inside(path: string): string {
    const parts = path.split('/');
    if (isAbsolute(path) || path.includes('\0') || parts.includes('..') || parts.includes('')) {
      throw new RangeError(`the path ${JSON.stringify(path)} leaves the directory of the check`);
    }
    return join(this.tree, path);
  }
}

const removeStale = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    const [, pid, started] = new RegExp(`^${PREFIX}(\\d+)-(?:(\\d+)-)?`).exec(name) ?? [];
    if (pid === undefined) continue;
    const isOver = Number(pid) === process.pid ? started !== STARTED : !isAlive(Number(pid));
    if (isOver) removeOwn(join(parent, name));
  }
};

const removeOwn = (path: string): void => {
  try {
    const mine = process.getuid?.();
    if (mine === 0 || statSync(path).uid === mine) rmSync(path, { recursive: true, force: true });
  } catch {
    // somebody else's, or gone meanwhile: not ours to remove
  }
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error: unknown) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
};
