import type { Backend } from '../plan/plan.ts';
import type { FileKind } from '../protocol/protocol.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Chunk } from '../cells/chunk.ts';
import type { StatusPatch } from './render.ts';

/** What a cell declares while it prints. */
export interface Effects {
  readonly backends: DeclaredBackend[];
  readonly mapEntries: DeclaredEntry[];
  readonly files: DeclaredFile[];
  readonly certificateLines: DeclaredCertificateLine[];
  readonly statuses: StatusPatch[];
  readonly problems: Problem[];
}

export interface DeclaredBackend {
  readonly name: string;
  readonly backend: Backend;
  readonly text: Chunk;
}

export interface DeclaredEntry {
  /** File name of the map. */
  readonly map: string;
  readonly key: string;
  readonly value: string;
}

export interface DeclaredFile {
  readonly path: string;
  readonly kind: FileKind;
  readonly content: Chunk;
  readonly reloadOnChange: boolean;
}

/** One line of a certificate list. */
export interface DeclaredCertificateLine {
  /** Path of the list. */
  readonly list: string;
  readonly line: string;
}

export const noEffects = (): Effects => ({
  backends: [],
  mapEntries: [],
  files: [],
  certificateLines: [],
  statuses: [],
  problems: [],
});
