import { rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ManifestFile } from '../../src/protocol/protocol.ts';
import { hashFile, mendMode, type Content } from './content.ts';
import { removeFile } from './disk.ts';
import { modeOf, type Held, type Kept } from './objects.ts';
import { checkParents, ensureParents, kindOf, parentsOf } from './paths.ts';

/** What shall stand at a path; `null`: nothing. */
export interface Change {
  readonly path: string;
  readonly next: Kept | null;
}

/** The files of the pod: which ones the agent wrote, and how they are replaced. */
export class Tree {
  readonly base: string;
  readonly #config: string;
  /** Owned files as the agent knows them, by path. */
  readonly held = new Map<string, Held>();
  /** Owned paths at which something else was found than the agent wrote; `held` tells what. */
  readonly drifted = new Set<string>();

  /** @param config path of the main file, which is replaced after all others */
  constructor(base: string, config: string) {
    this.base = base;
    this.#config = config;
  }

  /** Whether, as far as it is known, the tree is that of the applied plan. */
  get intact(): boolean {
    return this.drifted.size === 0;
  }

  at(path: string): string {
    return join(this.base, path);
  }

  /** What has to change so that exactly these files are held. */
  changesTo(files: readonly ManifestFile[]): Change[] {
    const wanted = new Set<string>();
    const changes: Change[] = [];
    for (const { path, digest, size, kind } of files) {
      wanted.add(path);
      const held = this.held.get(path);
      if (held?.digest === digest && held.kind === kind) continue;
      changes.push({ path, next: { digest, size, kind } });
    }
    for (const path of this.held.keys()) {
      if (!wanted.has(path)) changes.push({ path, next: null });
    }
    return changes;
  }

  /**
   * What stands at a path now.
   *
   * @throws when it is something that may not be replaced, such as a symbolic link
   */
  async previous(path: string): Promise<Kept | null> {
    await checkParents(this.base, path);
    const kind = await kindOf(this.at(path));
    if (kind === 'none' || kind === 'directory') return null;
    if (kind !== 'file') throw new Error(`${path} is ${kind}`);
    const held = this.held.get(path);
    if (held !== undefined) return this.drifted.has(path) ? { ...held, drifted: true } : held;
    const content = await hashFile(this.at(path));
    if (content === undefined) throw new Error(`${path} cannot be read`);
    return { ...content, kind: 'general', foreign: true };
  }

  /**
   * Moves prepared files to their places, the main file last, and deletes what shall go.
   *
   * @param staged where the content of a change lies
   * @throws in the middle of it when the file system refuses
   */
  async install(changes: readonly Change[], staged: (change: Change) => string): Promise<void> {
    const writes = changes.filter(({ next }) => next !== null);
    const deletions = changes.filter(({ next }) => next === null);
    const directories = new Set(writes.flatMap(({ path }) => parentsOf(path)));
    const files = new Set(writes.map(({ path }) => path));
    const inTheWay = ({ path }: Change): boolean =>
      directories.has(path) || parentsOf(path).some((parent) => files.has(parent));
    for (const change of deletions.filter(inTheWay)) await this.#delete(change.path, files);
    for (const change of [...writes].sort((a, b) => this.#rank(a) - this.#rank(b))) {
      await this.#place(change, staged(change));
    }
    for (const change of deletions.filter((one) => !inTheWay(one))) {
      await this.#delete(change.path, files);
    }
  }

  /** Whether these paths hold what the changes say. */
  async matches(changes: readonly Change[]): Promise<boolean> {
    for (const { path, next } of changes) {
      const content = await this.content(path);
      if (content?.digest !== next?.digest) return false;
    }
    return true;
  }

  /** Digest and size of what is on disk; `undefined` when there is no such regular file, or behind a link. */
  async content(path: string): Promise<Content | undefined> {
    try {
      await checkParents(this.base, path);
    } catch {
      return undefined;
    }
    return hashFile(this.at(path));
  }

  /**
   * Hashes every owned file anew and remembers what is really there, so that the next apply repairs it.
   *
   * @returns paths that differ from what was written, or found the last time
   */
  async verify(): Promise<string[]> {
    const differing: string[] = [];
    for (const [path, held] of this.held) {
      const content = await this.content(path);
      if ((content?.digest ?? '') === held.digest) continue; // '': it was missing the last time as well
      differing.push(path);
      this.noteDrift(path, content);
    }
    return differing;
  }

  /**
   * Gives every owned file its permission bits again. Where that is refused, because somebody else owns the file by now,
   * it counts as drifted, so that the next apply puts another in its place.
   *
   * @returns paths whose bits were set right
   */
  async mendModes(): Promise<string[]> {
    const mended: string[] = [];
    for (const [path, { kind }] of this.held) {
      const found = await mendMode(this.at(path), modeOf(kind));
      if (found === 'mended') mended.push(path);
      else if (found === 'refused') this.noteDrift(path, undefined);
    }
    return mended;
  }

  /** Remembers what really is at an owned path. */
  noteDrift(path: string, content: Content | undefined): void {
    const kind = this.held.get(path)?.kind ?? 'general';
    this.held.set(path, { kind, digest: content?.digest ?? '', size: content?.size ?? 0 });
    this.drifted.add(path);
  }

  #rank({ path, next }: Change): number {
    return next?.kind === 'config' || path === this.#config ? 1 : 0;
  }

  async #place({ path, next }: Change, staged: string): Promise<void> {
    if (next === null) return;
    await ensureParents(this.base, path);
    if ((await kindOf(this.at(path))) === 'directory') await rmdir(this.at(path));
    await rename(staged, this.at(path));
    if (next.foreign === true) this.held.delete(path);
    else this.held.set(path, { digest: next.digest, size: next.size, kind: next.kind });
    if (next.drifted === true) this.drifted.add(path);
    else this.drifted.delete(path);
  }

  async #delete(path: string, files: ReadonlySet<string>): Promise<void> {
    await checkParents(this.base, path);
    // A directory there is not the file that shall go: nothing was put in its place yet.
    if ((await kindOf(this.at(path))) !== 'directory') await removeFile(this.at(path));
    this.held.delete(path);
    this.drifted.delete(path);
    // A directory that stands where a file shall be goes when it is empty.
    for (const parent of parentsOf(path).reverse()) {
      if (!files.has(parent)) continue;
      await rmdir(this.at(parent)).catch(() => undefined);
    }
  }
}
