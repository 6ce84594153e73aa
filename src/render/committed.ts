/** What the last complete render was made of; the next one starts from it and replaces what changed. */
import { OrderedChunks } from '../cells/ordered-chunks.ts';
import { PersistentMap } from '../cells/persistent-map.ts';
import { merkleMap, type MerkleMap } from '../plan/merkle-map.ts';
import type {
  Backend,
  DigestFunction,
  MapEntry,
  PlanFile,
  PlanMap,
  Profile,
} from '../plan/plan.ts';
import { chunkText } from '../cells/chunk.ts';
import type { DeclaredBackend, DeclaredFile } from './language/effects.ts';
import type { CellResult, RootResult } from './evaluate.ts';
import { Ledger } from './ledger.ts';
import type { RenderedFile } from './render.ts';
import type { SlotRequest } from './language/slots.ts';

/** A slot of one render: where its tag stood, and what goes into it. */
export interface SlotPlan {
  /** Unique and stable; sorts by template, position and repetition. */
  readonly id: string;
  readonly tag: SlotRequest['tag'];
  readonly collection: PersistentMap<unknown>;
  readonly map: string | undefined;
  readonly declaresBackends: boolean;
}

export interface CommittedSlot {
  readonly collection: PersistentMap<unknown>;
  readonly results: PersistentMap<CellResult>;
  /** Text of the cells by key; empty for cells that declare backends. */
  readonly chunks: OrderedChunks;
}

/** Lines by owner, for files whose order is that of the cells. */
export interface Lines {
  readonly byOwner: PersistentMap<readonly (readonly [string, string])[]>;
  readonly chunks: OrderedChunks;
}

export const NO_LINES: Lines = { byOwner: PersistentMap.EMPTY, chunks: OrderedChunks.EMPTY };

/** One map: its claims or lines, and what they come to. */
export interface CommittedMap {
  readonly ledger: Ledger<string>;
  readonly lines: Lines;
  readonly entries: MerkleMap<MapEntry>;
  readonly chunks: OrderedChunks;
  readonly record: PlanMap | undefined;
  readonly file: RenderedFile | undefined;
}

export interface Committed {
  readonly roots: ReadonlyMap<string, RootResult>;
  readonly slots: ReadonlyMap<string, CommittedSlot>;
  /** Results by owner that hold a problem, or ask for statuses. */
  readonly notable: PersistentMap<CellResult>;
  readonly backendClaims: Ledger<DeclaredBackend>;
  readonly backends: MerkleMap<Backend>;
  readonly backendChunks: OrderedChunks;
  readonly profiles: MerkleMap<Profile>;
  readonly fileClaims: Ledger<DeclaredFile>;
  readonly lists: ReadonlyMap<string, Lines>;
  readonly maps: ReadonlyMap<string, CommittedMap>;
  readonly planMaps: MerkleMap<PlanMap>;
  readonly planFiles: MerkleMap<PlanFile>;
  /** All files but the configuration. */
  readonly files: ReadonlyMap<string, RenderedFile>;
}

export const emptyMap = (digest: DigestFunction): CommittedMap => ({
  ledger: Ledger.empty<string>((left, right) => left === right),
  lines: NO_LINES,
  entries: merkleMap(digest),
  chunks: OrderedChunks.EMPTY,
  record: undefined,
  file: undefined,
});

/** Before the first render. */
export const nothingCommitted = (digest: DigestFunction): Committed => ({
  roots: new Map(),
  slots: new Map(),
  notable: PersistentMap.EMPTY,
  backendClaims: Ledger.empty<DeclaredBackend>(() => false),
  backends: merkleMap(digest),
  backendChunks: OrderedChunks.EMPTY,
  profiles: merkleMap(digest),
  fileClaims: Ledger.empty<DeclaredFile>(sameFile),
  lists: new Map(),
  maps: new Map(),
  planMaps: merkleMap(digest),
  planFiles: merkleMap(digest),
  files: new Map(),
});

const sameFile = (left: DeclaredFile, right: DeclaredFile): boolean =>
  left.kind === right.kind &&
  left.reloadOnChange === right.reloadOnChange &&
  left.content.size === right.content.size &&
  chunkText(left.content) === chunkText(right.content);
