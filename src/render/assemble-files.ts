/** Maps, certificate lists and other files of a render, from what changed since the last one. */
import { leaf, type Chunk } from '../cells/chunk.ts';
import { mapEntry, orderedKey, planFile, planMap } from '../plan/build.ts';
import type { MapEntry, PlanFile } from '../plan/plan.ts';
import type { DigestFunction } from '../plan/plan.ts';
import { claimUpdates, mentioned, updatedLines, type CellUpdate } from './cell-updates.ts';
import { NO_LINES, emptyMap, type Committed, type CommittedMap } from './committed.ts';
import type { DeclaredFile, Effects } from './language/effects.ts';
import type { RenderedFile } from './render.ts';
import { filePath } from './language/render-paths.ts';
import { claimSlices, eachSliced, withSlices } from './slices.ts';
import type { TemplateConfig } from './config/template-config.ts';
import type { TextDigests } from './text-digests.ts';

export interface FileContext {
  readonly config: TemplateConfig;
  readonly digest: DigestFunction;
  readonly digests: TextDigests;
}

type Updates = readonly CellUpdate[];

const entriesFor =
  (map: string) =>
  ({ mapEntries }: Effects): readonly (readonly [string, string])[] =>
    mapEntries.filter((entry) => entry.map === map).map(({ key, value }) => [key, value] as const);

/** The maps after some updates; a map that no update mentions stays the object it was. */
export function* assembleMaps(
  before: Committed,
  updates: Updates,
  { config, digest, digests }: FileContext,
): Generator<void, ReadonlyMap<string, CommittedMap>> {
  const touched = mentioned(updates, ({ mapEntries }) => mapEntries.map(({ map }) => map));
  const maps = new Map(before.maps);
  for (const [name, { ordered }] of config.maps) {
    const old = before.maps.get(name);
    if (old !== undefined && !touched.has(name)) continue;
    const map = ordered
      ? orderedMap(old ?? emptyMap(digest), { updates, name, digest })
      : yield* unorderedMap(old ?? emptyMap(digest), { updates, name, digest });
    const path = filePath(config.dataplane, 'map', name);
    const text = map.chunks.chunk;
    const { entries } = map;
    yield* entries.digesting();
    const record = planMap(
      { path, ordered, entries, text: digests.of(text, path), size: text.size },
      digest,
    );
    yield;
    maps.set(name, { ...map, record, file: { path, kind: 'map', text } });
  }
  return maps;
}

interface MapUpdate {
  readonly updates: Updates;
  readonly name: string;
  readonly digest: DigestFunction;
}

function* unorderedMap(
  old: CommittedMap,
  { updates, name, digest }: MapUpdate,
): Generator<void, CommittedMap> {
  const changes = claimUpdates(updates, entriesFor(name));
  yield;
  const { ledger, touched } = yield* claimSlices(old.ledger, changes);
  const entries = new Map<string, MapEntry | undefined>();
  const chunks = new Map<string, Chunk | undefined>();
  yield* eachSliced(touched, ([key, value]) => {
    const known = old.entries.get(key);
    if (known !== undefined && known.value === value) return;
    entries.set(key, value === undefined ? undefined : mapEntry(key, value, digest));
    chunks.set(key, value === undefined ? undefined : leaf(`${key} ${value}\n`));
  });
  return {
    ...old,
    ledger,
    entries: yield* withSlices(old.entries, entries),
    chunks: yield* withSlices(old.chunks, chunks),
  };
}

/** Positions shift, so all entries are looked at; equal ones keep their records. */
const orderedMap = (old: CommittedMap, { updates, name, digest }: MapUpdate): CommittedMap => {
  const lines = updatedLines(old.lines, updates, entriesFor(name));
  const entries = new Map<string, MapEntry | undefined>();
  let position = 0;
  for (const pairs of lines.byOwner.values()) {
    for (const [key, value] of pairs) {
      const known = old.entries.get(orderedKey(position));
      if (known?.key !== key || known.value !== value) {
        entries.set(orderedKey(position), mapEntry(key, value, digest));
      }
      position += 1;
    }
  }
  for (let gone = position; gone < old.entries.size; gone += 1)
    entries.set(orderedKey(gone), undefined);
  return { ...old, lines, entries: old.entries.with(entries), chunks: lines.chunks };
};

const linesFor =
  (path: string) =>
  ({ certificateLines }: Effects): readonly (readonly [string, string])[] =>
    certificateLines.filter(({ list }) => list === path).map(({ line }) => [line, ''] as const);

/** Certificate lists by path after some updates. */
export const assembleLists = (before: Committed, updates: Updates): Committed['lists'] => {
  const touched = mentioned(updates, ({ certificateLines }) =>
    certificateLines.map(({ list }) => list),
  );
  if (touched.size === 0) return before.lists;
  const lists = new Map(before.lists);
  for (const path of touched) {
    const lines = updatedLines(lists.get(path) ?? NO_LINES, updates, linesFor(path));
    if (lines.byOwner.size === 0) lists.delete(path);
    else lists.set(path, lines);
  }
  return lists;
};

/** Files declared by cells, after some updates; also what is under each path that they touch. */
export const assembleDeclared = (
  before: Committed,
  updates: Updates,
): { claims: Committed['fileClaims']; touched: ReadonlyMap<string, DeclaredFile | undefined> } => {
  const { ledger, touched } = before.fileClaims.with(
    claimUpdates(updates, ({ files }) => files.map((file) => [file.path, file] as const)),
  );
  return { claims: ledger, touched };
};

/** The record of a file and the file itself. */
export const fileRecord = (
  { path, kind, content, reloadOnChange }: DeclaredFile,
  { digest, digests }: FileContext,
): { readonly record: PlanFile; readonly file: RenderedFile } => ({
  record: planFile(
    { path, kind, text: digests.of(content), size: content.size, reloadOnChange },
    digest,
  ),
  file: { path, kind, text: content },
});
