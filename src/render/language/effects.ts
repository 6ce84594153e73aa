import type { Backend } from '../../plan/plan.ts';
import type { FileKind } from '../../protocol/protocol.ts';
import type { Problem } from '../../snapshot/problem.ts';
import type { Chunk } from '../../cells/chunk.ts';
import type { StatusPatch } from '../render.ts';
import type { Place } from './failure.ts';

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
  /** The call that declares it. */
  readonly place: Place;
}

export interface DeclaredFile {
  readonly path: string;
  readonly kind: FileKind;
  readonly content: Chunk;
  readonly reloadOnChange: boolean;
  /** The call that declares it; undefined for a template that is a file as a whole. */
  readonly place?: Place;
}

/** One line of a certificate list. */
export interface DeclaredCertificateLine {
  /** Path of the list. */
  readonly list: string;
  readonly line: string;
  /** The call that declares it. */
  readonly place: Place;
}

export const noEffects = (): Effects => ({
  backends: [],
  mapEntries: [],
  files: [],
  certificateLines: [],
  statuses: [],
  problems: [],
});

const NONE: readonly never[] = [];
/** Shared by all cells that declare nothing. */
export const NO_EFFECTS: Effects = {
  ...{ backends: [], mapEntries: [], files: [], certificateLines: [], statuses: [], problems: [] },
};

/** The same effects, with what is empty shared by all cells: most cells declare one thing. */
export const compactEffects = (effects: Effects): Effects => {
  const { backends, mapEntries, files, certificateLines, statuses, problems } = effects;
  const count = backends.length + mapEntries.length + files.length + certificateLines.length;
  if (count + statuses.length + problems.length === 0) return NO_EFFECTS;
  const shared = <T>(declared: T[]): T[] =>
    declared.length === 0 ? (NONE as unknown as T[]) : declared;
  return {
    backends: shared(backends),
    mapEntries: shared(mapEntries),
    files: shared(files),
    certificateLines: shared(certificateLines),
    statuses: shared(statuses),
    problems: shared(problems),
  };
};
