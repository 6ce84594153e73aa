import { join } from 'node:path';
import type { Digest } from '../../src/protocol/protocol.ts';
import { emptyFolder, readJson, removeFile, replaceFile } from './disk.ts';
import { Objects, type Kept } from './objects.ts';
import type { Change, Tree } from './tree.ts';

/** What the journal holds while a tree changes: enough to tell old from new, and to go back. */
export interface JournalRecord {
  readonly generation: number;
  readonly from: Digest | null;
  readonly to: Digest | null;
  /** Runtime operations belong to it: after a crash nobody knows which of them the worker has executed. */
  readonly operations: boolean;
  readonly changes: readonly JournalChange[];
}

export interface JournalChange extends Change {
  readonly previous: Kept | null;
}

/** Where journal, staged files and old contents are, all on the file system of the tree. */
export class Workshop {
  readonly stage: string;
  readonly objects: Objects;
  readonly #journal: string;

  constructor(folder: string) {
    this.stage = join(folder, 'stage');
    this.objects = new Objects(join(folder, 'objects'));
    this.#journal = join(folder, 'journal.json');
  }

  async open(): Promise<void> {
    await emptyFolder(this.stage);
    await this.objects.open();
  }

  async journal(): Promise<JournalRecord | undefined> {
    // Only this program writes the folder, and replaces the file as a whole.
    return (await readJson(this.#journal)) as JournalRecord | undefined;
  }

  write(record: JournalRecord): Promise<void> {
    return replaceFile(this.#journal, JSON.stringify(record));
  }

  remove(): Promise<void> {
    return removeFile(this.#journal);
  }
}

/** One change of the tree from one plan to another: all of it, or none. */
export class Transition {
  readonly record: JournalRecord;
  readonly #tree: Tree;
  readonly #workshop: Workshop;
  readonly #staged = new Map<string, string>();
  #installing = false;

  private constructor(tree: Tree, workshop: Workshop, record: JournalRecord) {
    this.#tree = tree;
    this.#workshop = workshop;
    this.record = record;
  }

  /**
   * Keeps what stands at the paths now and writes the journal. It stays until the
   * holding is persisted, whatever becomes of the change: operations may have run with it.
   *
   * @throws when a path may not be replaced; nothing has changed then
   */
  static async begin(
    tree: Tree,
    workshop: Workshop,
    plan: Omit<JournalRecord, 'changes'> & { readonly changes: readonly Change[] },
  ): Promise<Transition> {
    await emptyFolder(workshop.stage);
    const changes: JournalChange[] = [];
    for (const change of plan.changes) {
      const found = await tree.previous(change.path);
      const kept = found !== null && (await workshop.objects.keep(tree.at(change.path), found));
      changes.push({ ...change, previous: kept ? found : null });
    }
    const record = { ...plan, changes };
    await workshop.write(record);
    return new Transition(tree, workshop, record);
  }

  /** A transition that a former process left behind. */
  static resume(tree: Tree, workshop: Workshop, record: JournalRecord): Transition {
    return new Transition(tree, workshop, record);
  }

  /** A free name for the new content of a path. */
  stagePath(path: string): string {
    const staged = join(this.#workshop.stage, String(this.#staged.size));
    this.#staged.set(path, staged);
    return staged;
  }

  /** Prepares every new content from the kept old ones. */
  async stageKept(): Promise<void> {
    for (const { path, next } of this.record.changes) {
      if (next !== null) await this.#workshop.objects.take(next, this.stagePath(path));
    }
  }

  /** Puts the prepared files into place. */
  async install(): Promise<void> {
    this.#installing = true;
    await this.#tree.install(this.record.changes, ({ path }) => this.#staged.get(path) ?? '');
  }

  /**
   * Puts back what was there before.
   *
   * @returns whether the tree is, byte for byte, as it was; if not, nobody knows which plan it is
   */
  async rollback(): Promise<boolean> {
    const back = this.record.changes.map(({ path, previous }) => ({ path, next: previous }));
    return this.#installing ? this.#putBack(back) : true;
  }

  /** After a crash: the same as {@link rollback}, whatever had been done. */
  async undo(): Promise<boolean> {
    this.#installing = true;
    return this.rollback();
  }

  async #putBack(back: readonly Change[]): Promise<boolean> {
    try {
      await emptyFolder(this.#workshop.stage);
      const staged = new Map<string, string>();
      for (const { path, next } of back) {
        if (next === null) continue;
        const name = join(this.#workshop.stage, String(staged.size));
        await this.#workshop.objects.take(next, name);
        staged.set(path, name);
      }
      await this.#tree.install(back, ({ path }) => staged.get(path) ?? '');
      return await this.#tree.matches(back);
    } catch {
      return false;
    }
  }
}
