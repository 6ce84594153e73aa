import { constants } from 'node:fs';
import { chmod, link, mkdir, readdir, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileKind } from '../../src/protocol/protocol.ts';
import type { Content } from './content.ts';
import { codeOf } from '../failures.ts';

/** A file that the agent wrote and answers for. */
export interface Held extends Content {
  readonly kind: FileKind;
}

/** What stood at a path before: a held file, or a `foreign` one that the agent never wrote. */
export interface Kept extends Held {
  readonly foreign?: true;
  /** Somebody else had changed it: it is not what the agent wrote there. */
  readonly drifted?: true;
}

const PRIVATE_KINDS: ReadonlySet<FileKind> = new Set(['cert', 'ca', 'crl', 'crt-list']);

/** Permission bits of a file: TLS material is for its owner only. */
export const modeOf = (kind: FileKind): number => (PRIVATE_KINDS.has(kind) ? 0o600 : 0o644);

const nameOf = (file: Kept): string => `${file.digest}.${PRIVATE_KINDS.has(file.kind) ? 'p' : 'g'}`;

/**
 * Old contents as hard links, named by digest, so that going back needs no copy. A content leaves the tree by a rename
 * over its name and is never written again, so a link keeps it as it was.
 */
export class Objects {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await chmod(this.#folder, constants.S_IRWXU);
  }

  /** @returns false when there is nothing at `path` */
  async keep(path: string, file: Kept): Promise<boolean> {
    try {
      await link(path, join(this.#folder, nameOf(file)));
      return true;
    } catch (error: unknown) {
      if (codeOf(error) === 'EEXIST') return true;
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    }
  }

  /** Puts a kept content under a new name on the same file system. */
  async take(file: Kept, path: string): Promise<void> {
    await link(join(this.#folder, nameOf(file)), path);
  }

  /** Forgets every content but those of `files`. */
  async retain(files: Iterable<Kept | null>): Promise<void> {
    const names = new Set<string>();
    for (const file of files) if (file !== null) names.add(nameOf(file));
    for (const name of await readdir(this.#folder)) {
      if (!names.has(name)) await unlink(join(this.#folder, name)).catch(() => undefined);
    }
  }

  async clear(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await this.open();
  }
}
