/** Maps, certificate lists and other files of a render, from what changed since the last one. */
import { concat, leaf, type Chunk } from '../cells/chunk.ts';
import {
  crtLine,
  crtLineKey,
  crtList,
  mapEntry,
  orderedKey,
  planFile,
  planMap,
} from '../plan/build.ts';
import { merkleMap } from '../plan/merkle-map.ts';
import type { CrtLine, CrtList, DigestFunction, MapEntry, PlanFile } from '../plan/plan.ts';
import type { CrtListEntry } from '../protocol/protocol.ts';
import {
  claimUpdates,
  listUpdates,
  mapUpdates,
  updatedLines,
  type CellUpdate,
} from './cell-updates.ts';
import { emptyMap, type Committed, type CommittedMap } from './committed.ts';
import type { DeclaredFile } from './language/effects.ts';
import type { ClaimUpdate } from './ledger.ts';
import { filePath } from './language/render-paths.ts';
import { NO_LINES, type LineBlock, type Lines } from './lines.ts';
import { claimSlices, eachSliced, withSlices } from './slices.ts';
import type { TemplateConfig } from './config/template-config.ts';
import type { TextDigests } from './text-digests.ts';

export interface FileContext {
  readonly config: TemplateConfig;
  readonly digest: DigestFunction;
  readonly digests: TextDigests;
}

type Updates = readonly CellUpdate[];

/** The maps after some updates; a map whose entries stay the same keeps its record and its file. */
export function* assembleMaps(
  before: Committed,
  updates: Updates,
  context: FileContext,
): Generator<void, ReadonlyMap<string, CommittedMap>> {
  const changes = mapUpdates(updates);
  yield;
  const maps = new Map(before.maps);
  for (const [name, { ordered }] of context.config.maps) {
    const old = before.maps.get(name);
    const changed = changes.get(name);
    if (old !== undefined && changed === undefined) continue;
    const start = old ?? emptyMap(context.digest);
    const work = { changes: changed ?? [], digest: context.digest };
    const map = ordered ? orderedMap(start, work) : yield* unorderedMap(start, work);
    yield* map.entries.digesting();
    maps.set(name, old !== undefined && sameText(old, map) ? map : withFile(map, name, context));
    yield;
  }
  return maps;
}

const sameText = (left: CommittedMap, right: CommittedMap): boolean =>
  left.entries === right.entries && left.lines === right.lines && left.chunks === right.chunks;

const withFile = (
  map: CommittedMap,
  name: string,
  { config, digest, digests }: FileContext,
): CommittedMap => {
  const { entries, lines, chunks } = map;
  const path = filePath(config.dataplane, 'map', name);
  const ordered = config.maps.get(name)?.ordered === true;
  const chunk = ordered ? textOfLines(lines) : chunks.chunk;
  const record = planMap(
    {
      ...{ path, ordered, entries, size: chunk.size },
      // Costs the length of the file behind its first change, so it waits until somebody needs it.
      get text() {
        return digests.of(chunk, path);
      },
    },
    digest,
  );
  return { ...map, record, file: { path, kind: 'map', text: chunk } };
};

const textOfLines = (lines: Lines): Chunk => concat(lines.summaries.map(({ chunk }) => chunk));

interface MapWork {
  readonly changes: readonly ClaimUpdate<string>[];
  readonly digest: DigestFunction;
}

function* unorderedMap(
  old: CommittedMap,
  { changes, digest }: MapWork,
): Generator<void, CommittedMap> {
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

/** Entries are numbered, so those behind one that comes or goes change too; what stays in its place is not looked at. */
const orderedMap = (old: CommittedMap, { changes, digest }: MapWork): CommittedMap => {
  const lines = updatedLines(old.lines, changes);
  if (lines === old.lines) return old;
  const starts = startsOf(old.lines.summaries);
  const entries = new Map<string, MapEntry | undefined>();
  let position = 0;
  for (const block of lines.summaries) {
    const moved = starts.get(block) === position ? [] : block.pairs;
    for (const [index, [key, value]] of moved.entries()) {
      const at = orderedKey(position + index);
      const before = old.entries.get(at);
      if (before?.key === key && before.value === value) continue;
      entries.set(at, mapEntry(key, value, digest));
    }
    position += block.pairs.length;
  }
  for (let gone = position; gone < old.entries.size; gone += 1)
    entries.set(orderedKey(gone), undefined);
  return { ...old, lines, entries: old.entries.with(entries) };
};

/** Position of the first line of each block. */
const startsOf = (blocks: readonly LineBlock[]): ReadonlyMap<LineBlock, number> => {
  const starts = new Map<LineBlock, number>();
  let position = 0;
  for (const block of blocks) {
    starts.set(block, position);
    position += block.pairs.length;
  }
  return starts;
};

/** Certificate lists by path after some updates. */
export const assembleLists = (before: Committed, updates: Updates): Committed['lists'] => {
  const changes = listUpdates(updates);
  if (changes.size === 0) return before.lists;
  const lists = new Map(before.lists);
  for (const [path, changed] of changes) {
    const lines = updatedLines(lists.get(path) ?? NO_LINES, changed);
    if (lines.isEmpty) lists.delete(path);
    else lists.set(path, lines);
  }
  return lists;
};

/** What the changed lists declare: each list claims its own path. */
export const listClaims = (
  before: Committed['lists'],
  now: Committed['lists'],
): readonly ClaimUpdate<DeclaredFile>[] => {
  if (before === now) return [];
  const claims: ClaimUpdate<DeclaredFile>[] = [];
  for (const path of new Set([...before.keys(), ...now.keys()])) {
    const [old, lines] = [before.get(path), now.get(path)];
    if (old === lines) continue;
    claims.push({
      ...{ owner: `list ${path}`, object: undefined },
      before: old === undefined ? [] : [[path, listFile(path, old)]],
      after: lines === undefined ? [] : [[path, listFile(path, lines)]],
    });
  }
  return claims;
};

/** Records of certificate lists, from the blocks of lines that are not those of before. */
export const assembleListRecords = (
  before: Committed,
  lists: Committed['lists'],
  context: FileContext,
): Committed['crtLists'] => {
  if (before.lists === lists) return before.crtLists;
  const records = new Map<string, CrtList | undefined>();
  for (const path of new Set([...before.lists.keys(), ...lists.keys()])) {
    const [old, lines] = [before.lists.get(path), lists.get(path)];
    if (old === lines) continue;
    const start = before.crtLists.get(path)?.lines ?? merkleMap(context.digest);
    records.set(path, lines && listRecord(path, [old ?? NO_LINES, lines], { start, context }));
  }
  return before.crtLists.with(records);
};

const listRecord = (
  path: string,
  [old, lines]: readonly [Lines, Lines],
  { start, context }: { readonly start: CrtList['lines']; readonly context: FileContext },
): CrtList => {
  const chunk = textOfLines(lines);
  return crtList(
    {
      path,
      lines: start.with(changedLines(start, netChanges(old, lines), context)),
      first: lines.summaries[0]?.pairs[0]?.[0] ?? '',
      text: context.digests.of(chunk, path),
      size: chunk.size,
    },
    context.digest,
  );
};

/** How many times more each line stands in the second than in the first; blocks that both have are not looked at. */
const netChanges = (old: Lines, lines: Lines): ReadonlyMap<string, number> => {
  const [gone, come] = [new Set(old.summaries), new Set(lines.summaries)];
  const net = new Map<string, number>();
  const count = (blocks: Iterable<LineBlock>, by: number): void => {
    for (const { pairs } of blocks) {
      for (const [line] of pairs) net.set(line, (net.get(line) ?? 0) + by);
    }
  };
  count(gone.difference(come), -1);
  count(come.difference(gone), 1);
  return net;
};

/** Lines that come again have a number behind them, so of equal lines the last goes first. */
const changedLines = (
  lines: CrtList['lines'],
  net: ReadonlyMap<string, number>,
  { digest }: FileContext,
): ReadonlyMap<string, CrtLine | undefined> => {
  const changes = new Map<string, CrtLine | undefined>();
  for (const [line, more] of net) {
    if (more === 0) continue;
    let has = 0;
    while (lines.get(crtLineKey(line, has + 1)) !== undefined) has += 1;
    for (let at = has; at > has + more; at -= 1) changes.set(crtLineKey(line, at), undefined);
    for (let at = has + 1; at <= has + more; at += 1) {
      changes.set(crtLineKey(line, at), crtLine(parseLine(line), digest));
    }
  }
  return changes;
};

/** A line that `crt_list()` has printed, whose words hold neither blanks nor brackets. */
const parseLine = (line: string): CrtListEntry => {
  const [, certificate = '', options, filters] =
    /^(\S+)(?: \[([^\]]*)\])?(?: (.*))?$/.exec(line) ?? [];
  const words = (text: string | undefined): readonly string[] => text?.split(' ') ?? [];
  return { certificate, options: words(options), filters: words(filters) };
};

const listFile = (path: string, lines: Lines): DeclaredFile => ({
  ...{ path, kind: 'crt-list', content: textOfLines(lines), reloadOnChange: true },
});

/** What cells declare as files. */
export const declaredClaims = (updates: Updates): readonly ClaimUpdate<DeclaredFile>[] =>
  claimUpdates(updates, ({ files }) => files.map((file) => [file.path, file] as const));

/** The record of a file. */
export const fileRecord = (
  { path, kind, content, reloadOnChange }: DeclaredFile,
  { digest, digests }: FileContext,
): PlanFile =>
  planFile({ path, kind, size: content.size, reloadOnChange, text: digests.of(content) }, digest);
