/** What the last complete render was made of; the next one starts from it and replaces what changed. */
import { OrderedChunks } from '../cells/ordered-chunks.ts';
import { PersistentMap } from '../cells/persistent-map.ts';
import { merkleMap, type MerkleMap } from '../plan/merkle-map.ts';
import type {
  Backend,
  CrtList,
  DigestFunction,
  MapEntry,
  PlanFile,
  PlanMap,
  Profile,
} from '../plan/plan.ts';
import { chunkText, type Chunk } from '../cells/chunk.ts';
import type { DeclaredBackend, DeclaredFile } from './language/effects.ts';
import type { CellResult, RootResult } from './evaluate.ts';
import { FileMap } from './file-map.ts';
import { Ledger } from './ledger.ts';
import { NO_LINES, type Lines } from './lines.ts';
import { Notables } from './notables.ts';
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

/** One map: its claims or lines, and what they come to. */
export interface CommittedMap {
  readonly ledger: Ledger<string>;
  readonly lines: Lines;
  readonly entries: MerkleMap<MapEntry>;
  /** Text of the entries by key, of a map that is not ordered. */
  readonly chunks: OrderedChunks;
  readonly record: PlanMap | undefined;
  readonly file: RenderedFile | undefined;
}

export interface Committed {
  readonly roots: ReadonlyMap<string, RootResult>;
  readonly slots: ReadonlyMap<string, CommittedSlot>;
  readonly notables: Notables;
  readonly backendClaims: Ledger<DeclaredBackend>;
  readonly backends: MerkleMap<Backend>;
  readonly backendChunks: OrderedChunks;
  readonly profiles: MerkleMap<Profile>;
  /** Texts of the sections and profiles of the configuration by kind and name. */
  readonly sections: ReadonlyMap<string, Chunk>;
  /** Files that are whole templates, by id of the template. */
  readonly templateFiles: ReadonlyMap<string, DeclaredFile>;
  readonly fileClaims: Ledger<DeclaredFile>;
  readonly lists: ReadonlyMap<string, Lines>;
  readonly maps: ReadonlyMap<string, CommittedMap>;
  readonly planMaps: MerkleMap<PlanMap>;
  readonly planFiles: MerkleMap<PlanFile>;
  readonly crtLists: MerkleMap<CrtList>;
  /** All files but the configuration. */
  readonly files: FileMap;
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
  notables: Notables.EMPTY,
  backendClaims: Ledger.empty<DeclaredBackend>(() => false),
  backends: merkleMap(digest),
  backendChunks: OrderedChunks.EMPTY,
  profiles: merkleMap(digest),
  sections: new Map(),
  templateFiles: new Map(),
  fileClaims: Ledger.empty<DeclaredFile>(sameFile),
  lists: new Map(),
  maps: new Map(),
  planMaps: merkleMap(digest),
  planFiles: merkleMap(digest),
  crtLists: merkleMap(digest),
  files: FileMap.EMPTY,
});

const sameFile = (left: DeclaredFile, right: DeclaredFile): boolean =>
  left.kind === right.kind &&
  left.reloadOnChange === right.reloadOnChange &&
  left.content.size === right.content.size &&
  chunkText(left.content) === chunkText(right.content);
