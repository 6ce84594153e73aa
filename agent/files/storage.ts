import { dirname, join } from 'node:path';
import { mkdir } from 'node:fs/promises';
import type { Digest } from '../../src/protocol/protocol.ts';
import { readJson, replaceFile } from './disk.ts';
import type { Holding, LastReload, PendingReload } from '../apply/holding.ts';
import type { Held, Kept } from './objects.ts';
import type { Tree } from './tree.ts';
import type { WorkerIdentity } from '../haproxy/worker-identity.ts';

const FORMAT = 1;

interface StateRecord {
  readonly format: number;
  readonly generation: number;
  readonly running: Digest | null;
  readonly workerOperations: number;
  readonly worker: WorkerIdentity | null;
  readonly highestEpoch: number;
  /** Absent in records of older agents. */
  readonly leader?: string;
  readonly pending: PendingReload | null;
  readonly reloadOwed: boolean;
  readonly pendingDeletes: readonly string[];
  readonly lastReload: LastReload | null;
  readonly lastReloadMs: number;
}

interface TreeRecord {
  readonly format: number;
  readonly generation: number;
  readonly applied: Digest | null;
  readonly lkg: Digest | null;
  readonly changedMs: number;
  readonly confirmed: boolean;
  /** Also here, so that no stale leader gets in when the other file is lost. */
  readonly highestEpoch: number;
  readonly files: readonly (readonly [string, Held])[];
  readonly drifted: readonly string[];
  readonly lkgDelta: readonly (readonly [string, Kept | null])[];
}

/** What was found at the start; the holding and the tree are filled already. */
export interface Loaded {
  readonly pendingDeletes: readonly string[];
  /** False: there is no usable record of the tree. */
  readonly known: boolean;
  /** The record of the worker belongs to that of the tree. */
  readonly matched: boolean;
}

/**
 * What survives a restart, in two files: the tree (written when files change) and the rest (written often, small). Both
 * are replaced as a whole; the generation in them says whether they belong together.
 */
export class Storage {
  readonly #stateFile: string;
  readonly #treeFile: string;
  #treeGeneration = -1;

  constructor(stateFile: string, folder: string) {
    this.#stateFile = stateFile;
    this.#treeFile = join(folder, 'tree.json');
  }

  async load(holding: Holding, tree: Tree): Promise<Loaded> {
    await mkdir(dirname(this.#treeFile), { recursive: true, mode: 0o700 });
    // Only this program writes these files, and replaces them as a whole.
    const files = (await readJson(this.#treeFile)) as TreeRecord | undefined;
    const state = (await readJson(this.#stateFile)) as StateRecord | undefined;
    if (state?.format === FORMAT) {
      holding.highestEpoch = state.highestEpoch;
      holding.leader = state.leader ?? '';
      holding.lastReload = state.lastReload;
      holding.lastReloadMs = Math.min(state.lastReloadMs, Date.now());
    }
    if (files?.format !== FORMAT) return { pendingDeletes: [], known: false, matched: false };
    takeTree(files, holding, tree);
    this.#treeGeneration = files.generation;
    if (state?.format !== FORMAT || state.generation !== files.generation) {
      return { pendingDeletes: [], known: true, matched: false };
    }
    holding.running = state.running;
    holding.workerOperations = state.workerOperations;
    holding.worker = state.worker;
    holding.pending = state.pending;
    holding.reloadOwed = state.reloadOwed;
    return { pendingDeletes: state.pendingDeletes, known: true, matched: true };
  }

  /** Writes the tree record (when it has changed) and then the rest. */
  async save(holding: Holding, tree: Tree, pendingDeletes: readonly string[]): Promise<void> {
    if (this.#treeGeneration !== holding.generation) {
      await replaceFile(this.#treeFile, JSON.stringify(treeRecord(holding, tree)));
      this.#treeGeneration = holding.generation;
    }
    await this.saveState(holding, pendingDeletes);
  }

  /** Writes the small record alone. `durable`: it must not be lost even when the machine fails. */
  async saveState(
    holding: Holding,
    pendingDeletes: readonly string[],
    options: { readonly durable?: boolean } = {},
  ): Promise<void> {
    await replaceFile(
      this.#stateFile,
      JSON.stringify(stateRecord(holding, pendingDeletes)),
      options,
    );
  }
}

function takeTree(files: TreeRecord, holding: Holding, tree: Tree): void {
  holding.generation = files.generation;
  holding.applied = files.applied;
  holding.lkg = files.lkg;
  holding.changedMs = files.changedMs;
  holding.confirmed = files.confirmed;
  holding.highestEpoch = Math.max(holding.highestEpoch, files.highestEpoch);
  for (const [path, held] of files.files) tree.held.set(path, held);
  for (const path of files.drifted) tree.drifted.add(path);
  for (const [path, kept] of files.lkgDelta) holding.lkgDelta.set(path, kept);
}

const treeRecord = (holding: Holding, tree: Tree): TreeRecord => ({
  format: FORMAT,
  generation: holding.generation,
  applied: holding.applied,
  lkg: holding.lkg,
  changedMs: holding.changedMs,
  confirmed: holding.confirmed,
  highestEpoch: holding.highestEpoch,
  files: [...tree.held],
  drifted: [...tree.drifted],
  lkgDelta: [...holding.lkgDelta],
});

const stateRecord = (holding: Holding, pendingDeletes: readonly string[]): StateRecord => ({
  format: FORMAT,
  generation: holding.generation,
  running: holding.running,
  workerOperations: holding.workerOperations,
  worker: holding.worker,
  highestEpoch: holding.highestEpoch,
  leader: holding.leader,
  pending: holding.pending,
  reloadOwed: holding.reloadOwed,
  pendingDeletes,
  lastReload: holding.lastReload,
  lastReloadMs: holding.lastReloadMs,
});
