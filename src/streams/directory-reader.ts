import type { BigIntStats } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Problem } from '../snapshot/problem.ts';
import {
  absentDirectory,
  exists,
  isAbsence,
  MAX_FILE_BYTES,
  oversizedFile,
  unreadableFile,
  unwatchedDirectory,
} from './directory-problems.ts';
import type { DirectoryTimings } from './directory-timings.ts';
import { FolderWatchers } from './folder-watchers.ts';
import { type ManifestFile, type ManifestRead, readManifests } from './manifest-file.ts';

/** What the reader tells; paths are relative to the directory. */
export interface DirectoryListener {
  /** A file has new content; undefined: it is gone. */
  file(path: string, content: ManifestFile | undefined): void;
  /** A round of reading is over; `complete` once the whole directory has been read. */
  settled(complete: boolean): void;
}

interface FileState {
  /** Last good content. */
  content: ManifestFile | undefined;
  /** Identifies the bytes that were looked at last; empty: look again. */
  stamp: string;
  problem: Problem | undefined;
  /** Something to be believed only when it stays as it is: a suspicious content or an absence. */
  doubt: { readonly stamp: string; readonly since: number } | undefined;
}

const PARALLEL_READS = 16;
/** Coarser than the clock of any file system we meet. */
const CLOCK_TICK_MS = 50;
const ROOT = '';

/**
 * Follows a directory of manifests: reads every `.yaml`, `.yml` and `.json` file in it and below it, dot-files left
 * out, and reads again what changes. Watches each folder (not each file), and looks at everything now and then, should
 * the file system have told nothing.
 *
 * A file that is broken, and everything when the whole directory is gone, keeps its last good content.
 */
export class DirectoryReader {
  readonly #directory: string;
  readonly #listener: DirectoryListener;
  readonly #timings: DirectoryTimings;
  readonly #files = new Map<string, FileState>();
  readonly #folders: FolderWatchers;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #dirty = new Set<string>();
  /** Known files by their folder, as they were when the round began. */
  #byFolder: ReadonlyMap<string, readonly string[]> | undefined;
  #reading = false;
  #stopped = false;
  /** The directory has been listed once, and everything in it was visited. */
  #scanned = false;
  /** The first round is over: from now on a content can be a change, and half of one. */
  #complete = false;
  #absent = false;
  /** Last visit of each file that is still on its way. */
  readonly #visits = new Map<string, symbol>();
  #returnedAt = -Infinity;
  #watchFailure: Problem | undefined;

  constructor(directory: string, listener: DirectoryListener, timings: DirectoryTimings) {
    this.#directory = directory;
    this.#listener = listener;
    this.#timings = timings;
    this.#folders = new FolderWatchers(directory, {
      touched: (path) => {
        this.#mark(path);
      },
      failed: (error) => {
        this.#watchFailure ??= unwatchedDirectory(directory, error);
        this.#poll();
      },
    });
  }

  start(): void {
    this.#mark(ROOT);
    this.#poll();
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#folders.closeUnder(ROOT);
  }

  /** Everything that cannot be read at the moment. */
  problems(): readonly Problem[] {
    const files = [...this.#files.values()].flatMap(({ problem, content }) => [
      ...(problem === undefined ? [] : [problem]),
      ...(content?.problems ?? []),
    ]);
    return [
      ...(this.#absent ? [absentDirectory(this.#directory)] : []),
      ...(this.#watchFailure === undefined ? [] : [this.#watchFailure]),
      ...files,
    ];
  }

  #mark(path: string): void {
    this.#dirty.add(path);
    if (!this.#reading && !this.#stopped) void this.#read();
  }

  #later(path: string, ms: number): void {
    clearTimeout(this.#timers.get(path));
    const due = (): void => {
      this.#timers.delete(path);
      this.#mark(path);
    };
    if (!this.#stopped) this.#timers.set(path, setTimeout(due, ms));
  }

  #poll(): void {
    const { pollMs, absentPollMs } = this.#timings;
    const due = (): void => {
      this.#mark(ROOT);
      this.#poll();
    };
    const watchedMs =
      this.#watchFailure === undefined ? pollMs : Math.min(pollMs, 4 * absentPollMs);
    // No path of a file is like this name.
    clearTimeout(this.#timers.get('/poll'));
    if (!this.#stopped) {
      this.#timers.set('/poll', setTimeout(due, this.#absent ? absentPollMs : watchedMs));
    }
  }

  async #read(): Promise<void> {
    this.#reading = true;
    while (this.#dirty.size > 0 && !this.#isStopped()) {
      const paths = [...this.#dirty];
      this.#dirty = new Set();
      this.#byFolder = undefined;
      await this.#visitAll(paths);
      if (this.#isStopped()) return;
      this.#complete ||= this.#scanned;
      this.#listener.settled(this.#complete);
    }
    this.#reading = false;
  }

  /** Asked after every wait, when it may have changed. */
  #isStopped(): boolean {
    return this.#stopped;
  }

  async #visitAll(paths: readonly string[]): Promise<void> {
    for (let at = 0; at < paths.length; at += PARALLEL_READS) {
      await Promise.all(paths.slice(at, at + PARALLEL_READS).map((path) => this.#visit(path)));
    }
  }

  async #visit(path: string): Promise<void> {
    try {
      const info = await this.#stat(path);
      if (this.#stopped) return;
      if (info.isDirectory()) await this.#visitFolder(path, info.ino);
      else if (path === ROOT) this.#lose();
      else if (info.isFile() && isManifest(path)) await this.#visitFile(path, info);
    } catch (error: unknown) {
      if (this.#isStopped()) return;
      if (isAbsence(error)) await this.#visitAbsent(path);
      else this.#refuse(path, '', unreadableFile(path === ROOT ? this.#directory : path, error));
    }
  }

  async #visitFolder(path: string, inode: bigint): Promise<void> {
    if (path === ROOT && this.#absent) this.#return();
    if (this.#files.delete(path)) this.#listener.file(path, undefined);
    this.#folders.follow(path, inode);
    const names = await readdir(join(this.#directory, path));
    const there = new Set(names.filter(isVisible).map((name) => join(path, name)));
    this.#byFolder ??= Map.groupBy(this.#files.keys(), dirname);
    const known = this.#byFolder.get(path === ROOT ? '.' : path) ?? [];
    const gone = known.filter((file) => !there.has(file));
    const changed: string[] = [];
    for (const entry of there) if (await this.#isNews(entry)) changed.push(entry);
    await this.#visitAll([...changed, ...gone]);
    if (path === ROOT) this.#scanned = true;
  }

  /** Whether a listed path needs a visit; what cannot be told apart by its stamp does not. */
  async #isNews(path: string): Promise<boolean> {
    const known = this.#files.get(path);
    if (known === undefined) return true;
    const stamp = await this.#stat(path).then(stampOf, () => '');
    return stamp !== known.stamp || known.doubt !== undefined;
  }

  async #visitFile(path: string, info: BigIntStats): Promise<void> {
    if (info.size > MAX_FILE_BYTES) {
      this.#refuse(path, '', oversizedFile(path));
      return;
    }
    // Taken before reading: what is written meanwhile gives another one, and is read again.
    const stamp = stampOf(info);
    // A recent one proves nothing: two writes may fall into one tick of the clock.
    const trusted = Number(info.ctimeMs) < Date.now() - CLOCK_TICK_MS ? stamp : '';
    const visit = Symbol(path);
    this.#visits.set(path, visit);
    const before = this.#files.get(path)?.content;
    const bytes = await readFile(join(this.#directory, path));
    const read = await readManifests(path, bytes, before);
    // A later visit has read what is newer.
    if (this.#stopped || this.#visits.get(path) !== visit) return;
    this.#visits.delete(path);
    const doubtMs = this.#complete ? this.#doubtMs(bytes, read, before) : 0;
    if (doubtMs > 0 && !this.#isConfirmed(path, stamp, doubtMs)) return;
    if (read.ok) this.#accept(path, trusted, read.file);
    else this.#refuse(path, trusted, read.problem);
  }

  #accept(path: string, stamp: string, content: ManifestFile): void {
    clearTimeout(this.#timers.get(path));
    this.#files.set(path, { content, stamp, problem: undefined, doubt: undefined });
    this.#listener.file(path, content);
  }

  /** How long a content must stand still to be believed: programs write in pieces, and people read no half files. */
  #doubtMs(bytes: Buffer, read: ManifestRead, before: ManifestFile | undefined): number {
    const { brokenMs, settleMs } = this.#timings;
    if (!read.ok) return brokenMs;
    const isWhole = bytes.at(-1) === 0x0a && bytes.length % 4096 !== 0;
    const loses = (before?.entries.length ?? 0) > read.file.entries.length;
    return isWhole && !loses ? 0 : settleMs;
  }

  #isConfirmed(path: string, stamp: string, ms: number): boolean {
    const state = this.#files.get(path);
    const now = performance.now();
    const doubt = state?.doubt?.stamp === stamp ? state.doubt : { stamp, since: now };
    const left = ms - (now - doubt.since);
    if (left <= 0) return true;
    const unread = { content: undefined, stamp: '', problem: undefined };
    this.#files.set(path, { ...(state ?? unread), doubt });
    this.#later(path, left);
    return false;
  }

  #refuse(path: string, stamp: string, problem: Problem): void {
    const content = this.#files.get(path)?.content;
    this.#files.set(path, { content, stamp, problem, doubt: undefined });
  }

  async #visitAbsent(path: string): Promise<void> {
    if (path === ROOT || !(await exists(this.#directory))) {
      this.#lose();
      return;
    }
    this.#folders.closeUnder(path);
    const inside = [...this.#files.keys()].filter((file) => file.startsWith(`${path}/`));
    for (const file of inside) this.#forget(file);
    if (this.#files.has(path)) this.#forget(path);
  }

  #forget(path: string): void {
    const { vanishMs, returnMs } = this.#timings;
    const returned = performance.now() - this.#returnedAt < 5 * returnMs;
    if (!this.#isConfirmed(path, 'absent', returned ? returnMs : vanishMs)) return;
    this.#files.delete(path);
    this.#listener.file(path, undefined);
  }

  #return(): void {
    this.#absent = false;
    this.#returnedAt = this.#complete ? performance.now() : -Infinity;
    this.#poll();
  }

  /** The directory itself is gone: nothing is deleted, for that is rarely meant. */
  #lose(): void {
    if (this.#absent) return;
    this.#absent = true;
    this.#folders.closeUnder(ROOT);
    this.#poll();
  }

  #stat(path: string): Promise<BigIntStats> {
    return stat(join(this.#directory, path), { bigint: true });
  }
}

/** Differs whenever a file may hold other bytes. */
const stampOf = ({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  `${ino} ${size} ${mtimeNs} ${ctimeNs}`;

const isManifest = (path: string): boolean => /\.(?:ya?ml|json)$/i.test(path);

const isVisible = (name: string): boolean => !name.startsWith('.');
