import { type FSWatcher, watch } from 'node:fs';
import { basename, join } from 'node:path';
import { isAbsence } from './directory-problems.ts';

/** What file system events lead to. */
export interface FolderListener {
  /** Something may have happened to a path, relative to the root; empty = the root. */
  touched(path: string): void;
  /** The operating system refuses to tell of changes. */
  failed(error: unknown): void;
}

/**
 * Watches folders, one watch for each and none for files. Folders are told apart by inode, so one that was exchanged
 * for another of the same name is watched anew.
 */
export class FolderWatchers {
  readonly #root: string;
  readonly #listener: FolderListener;
  readonly #folders = new Map<string, { readonly watcher: FSWatcher; readonly inode: bigint }>();

  constructor(root: string, listener: FolderListener) {
    this.#root = root;
    this.#listener = listener;
  }

  /** Watches a folder, if it is not watched yet. */
  follow(path: string, inode: bigint): void {
    if (this.#folders.get(path)?.inode === inode) return;
    this.#close(path);
    const folder = join(this.#root, path);
    try {
      const watcher = watch(folder, (_, name) => {
        if (name !== null && !name.startsWith('.')) this.#listener.touched(join(path, name));
        if (name === null || concernsFolder(name, folder)) this.#listener.touched(path);
      });
      watcher.on('error', () => {
        this.#close(path);
        this.#listener.touched(path);
      });
      this.#folders.set(path, { watcher, inode });
    } catch (error: unknown) {
      if (!isAbsence(error)) this.#listener.failed(error);
    }
  }

  /** Ends the watch of a folder and of all below it. */
  closeUnder(folder: string): void {
    for (const path of this.#folders.keys()) {
      if (folder === '' || path === folder || path.startsWith(`${folder}/`)) this.#close(path);
    }
  }

  #close(path: string): void {
    this.#folders.get(path)?.watcher.close();
    this.#folders.delete(path);
  }
}

/**
 * Whether an event speaks of the folder itself: it was moved or deleted, or `..data` was exchanged, through which the
 * symbolic links of a mounted ConfigMap lead.
 */
const concernsFolder = (name: string, folder: string): boolean =>
  name === basename(folder) || name.startsWith('..');
