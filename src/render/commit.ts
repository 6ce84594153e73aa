/** Puts a render together: the records of the last one, and what changed since. */
import { chunkTexts, concatLike, type Chunk } from '../cells/chunk.ts';
import { byCodeUnits, type PersistentMap } from '../cells/persistent-map.ts';
import { buildPlan, profileRecord } from '../plan/build.ts';
import type { MerkleMap } from '../plan/merkle-map.ts';
import type { Backend, Plan, PlanFile, Profile } from '../plan/plan.ts';
import { assembleConfig, contentsOf, type AssembledConfig } from './assemble-config.ts';
import {
  assembleListRecords,
  assembleLists,
  assembleMaps,
  declaredClaims,
  fileRecord,
  listClaims,
  type FileContext,
} from './assemble-files.ts';
import { claimUpdates, type CellUpdate } from './cell-updates.ts';
import type { Committed } from './committed.ts';
import type { DeclaredFile } from './language/effects.ts';
import { isBlank } from './evaluate.ts';
import { TemplateFailure, nameOf } from './language/failure.ts';
import type { Claim, ClaimUpdate } from './ledger.ts';
import { filePath } from './language/render-paths.ts';
import type { RenderedFile } from './render.ts';
import { claimSlices, eachSliced, withSlices } from './slices.ts';
import type { PlacedRoot } from './slot-plans.ts';

export interface CommitInput {
  readonly before: Committed;
  readonly placed: readonly PlacedRoot[];
  readonly slots: Committed['slots'];
  readonly updates: readonly CellUpdate[];
}

export interface CommitOutput {
  readonly committed: Committed;
  readonly config: Chunk;
  readonly plan: Plan;
  readonly files: ReadonlyMap<string, RenderedFile>;
}

/**
 * The state after the updates, with its plan and files.
 *
 * @throws TemplateFailure for names declared twice with different content, and for what is printed in the wrong place
 */
export function* commit(
  { before, placed, slots, updates }: CommitInput,
  context: FileContext,
): Generator<void, CommitOutput> {
  const notables = before.notables.with(updates);
  yield;
  const { claims: backendClaims, backends, chunks } = yield* commitBackends(before, updates);
  const maps = yield* assembleMaps(before, updates, context);
  yield;
  const lists = assembleLists(before, updates);
  const templateFiles = wholeTemplates({ before, placed, slots }, context);
  const claims = [
    ...declaredClaims(updates),
    ...listClaims(before.lists, lists),
    ...templateClaims(before.templateFiles, templateFiles),
  ];
  const { ledger: fileClaims, touched } = yield* claimSlices(before.fileClaims, claims);
  refuseConflicts({ backendClaims, fileClaims, maps });
  yield;
  const roots = new Map(placed.map(({ root, result }) => [root.id, result]));
  const partial = {
    ...before,
    roots,
    slots,
    notables,
    backendClaims,
    backends,
    backendChunks: chunks,
  };
  const main = placed.find(({ root }) => root.kind === 'config');
  const assembled = assembleConfig(main?.items ?? [], partial, context.digests);
  yield;
  const other = yield* commitFiles(before, touched, context);
  for (const path of before.lists.keys()) if (!lists.has(path)) context.digests.forget(path);
  const committed: Committed = {
    ...{ ...partial, fileClaims, lists, maps, templateFiles },
    profiles: commitProfiles(before.profiles, assembled, context),
    sections: assembled.texts,
    planMaps: before.planMaps.with(
      new Map([...maps].map(([, { record }]) => [record?.path ?? '', record])),
    ),
    planFiles: other.records,
    crtLists: assembleListRecords(before, lists, context),
    files: other.files.with(changedMapFiles(before.maps, maps)),
  };
  yield;
  return finish(committed, assembled, context);
}

function* commitBackends(
  before: Committed,
  updates: readonly CellUpdate[],
): Generator<
  void,
  {
    claims: Committed['backendClaims'];
    backends: MerkleMap<Backend>;
    chunks: Committed['backendChunks'];
  }
> {
  const changes = claimUpdates(updates, ({ backends }) =>
    backends.map((one) => [one.name, one] as const),
  );
  yield;
  const { ledger, touched } = yield* claimSlices(before.backendClaims, changes);
  const sorted = [...touched].sort(([left], [right]) => byCodeUnits(left, right));
  const records = new Map(sorted.map(([name, one]) => [name, one?.backend]));
  const texts = new Map(sorted.map(([name, one]) => [name, one?.text]));
  yield;
  const backends = yield* withSlices(before.backends, records);
  yield* backends.digesting();
  const chunks = yield* withSlices(before.backendChunks, texts);
  return { claims: ledger, backends, chunks };
}

const refuseConflicts = ({
  backendClaims,
  fileClaims,
  maps,
}: Pick<Committed, 'backendClaims' | 'fileClaims' | 'maps'>): void => {
  const declared: readonly (readonly [string, { readonly conflicts: Conflicts }])[] = [
    ['the backend', backendClaims],
    ['the file', fileClaims],
    ...[...maps].map(([name, { ledger }]) => [`in ${name} the key`, ledger] as const),
  ];
  for (const [kind, { conflicts }] of declared) {
    const [name] = conflicts.keys();
    if (name !== undefined) throw conflict(kind, name, conflicts);
  }
};

type Conflicts = PersistentMap<readonly Claim<unknown>[]>;

const conflict = (kind: string, name: string, conflicts: Conflicts): TemplateFailure => {
  const owners = (conflicts.get(name) ?? []).map(({ object, owner }) =>
    object === undefined ? placeOfOwner(owner) : nameOf(object),
  );
  const shown = JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
  return new TemplateFailure(
    `${kind} ${shown} is declared differently by ${owners.join(' and ')}`,
    {
      nextStep: 'Let only one of them declare it.',
      reason: 'DeclaredTwice',
    },
  );
};

/** Where a cell without an object stands: its owner holds template and line. */
const placeOfOwner = (owner: string): string => {
  const [, source, line] = /^\d+\|(.*):(\d+):\d+#/.exec(owner) ?? [];
  return source === undefined ? 'a template' : `the cells at ${source}:${Number(line)}`;
};

const commitProfiles = (
  before: MerkleMap<Profile>,
  { profiles }: AssembledConfig,
  { digest }: FileContext,
): MerkleMap<Profile> => {
  const changes = new Map<string, Profile | undefined>(
    before.keys().map((name) => [name, undefined]),
  );
  for (const profile of profiles) changes.set(profile.name, profileRecord(profile, digest));
  return before.with(changes);
};

/** Everything but maps and the configuration, after the claims on some paths changed. */
function* commitFiles(
  before: Committed,
  touched: ReadonlyMap<string, DeclaredFile | undefined>,
  context: FileContext,
): Generator<void, Pick<Committed, 'files'> & { readonly records: MerkleMap<PlanFile> }> {
  const files = new Map<string, RenderedFile | undefined>();
  const records = new Map<string, PlanFile | undefined>();
  yield* eachSliced(touched, ([path, file]) => {
    // A certificate list has a record of its own.
    const isPlain = file !== undefined && file.kind !== 'crt-list';
    records.set(path, isPlain ? fileRecord(file, context) : undefined);
    files.set(path, file && { path, kind: file.kind, text: file.content });
  });
  return {
    records: yield* withSlices(before.planFiles, records),
    files: yield* withSlices(before.files, files),
  };
}

/** Files and certificates that are whole templates, by id of the template; also refuses maps that print. */
const wholeTemplates = (
  { before, placed, slots }: Pick<CommitInput, 'before' | 'placed' | 'slots'>,
  { config }: FileContext,
): Committed['templateFiles'] => {
  const files = new Map<string, DeclaredFile>();
  for (const { root, items } of placed) {
    if (root.kind === 'config') continue;
    const old = before.templateFiles.get(root.id);
    const content = concatLike(old?.content, contentsOf(items, { slots }));
    if (root.kind === 'map') refusePrinted(root.source, content);
    else if (old?.content === content) files.set(root.id, old);
    else files.set(root.id, templateFile(root, content, config));
  }
  return files;
};

/** A template claims the path of its file. */
const templateClaims = (
  before: Committed['templateFiles'],
  now: Committed['templateFiles'],
): readonly ClaimUpdate<DeclaredFile>[] =>
  [...now].flatMap(([id, file]) => {
    const old = before.get(id);
    if (old === file) return [];
    const claims = { before: old === undefined ? [] : [[old.path, old] as const] };
    return [{ owner: `template ${id}`, object: undefined, ...claims, after: [[file.path, file]] }];
  });

const templateFile = (
  { kind, name }: PlacedRoot['root'],
  content: Chunk,
  config: FileContext['config'],
): DeclaredFile => {
  if (kind === 'certificate') {
    const path = filePath(config.dataplane, 'cert', name);
    return { path, kind: 'cert', content, reloadOnChange: true };
  }
  const reloadOnChange = config.files.get(name)?.reloadOnPush ?? false;
  return {
    path: filePath(config.dataplane, 'file', name),
    kind: 'general',
    content,
    reloadOnChange,
  };
};

const refusePrinted = (source: string, content: Chunk): void => {
  if ([...chunkTexts(content)].every(isBlank)) return;
  throw new TemplateFailure('the template of a map prints text', {
    place: { source, line: 1, column: 1 },
    nextStep: 'Declare entries with map_entry(key, value); the file is made of them.',
  });
};

const changedMapFiles = (
  before: Committed['maps'],
  now: Committed['maps'],
): ReadonlyMap<string, RenderedFile> => {
  const files = new Map<string, RenderedFile>();
  for (const [name, { file }] of now) {
    if (file !== undefined && file !== before.get(name)?.file) files.set(file.path, file);
  }
  return files;
};

const finish = (
  committed: Committed,
  { chunk, sections }: AssembledConfig,
  { config, digest, digests }: FileContext,
): CommitOutput => {
  const { backends, profiles, planMaps, planFiles, crtLists } = committed;
  const path = config.dataplane.configFile;
  const plan = buildPlan(
    {
      ...{ sections, backends, profiles, maps: planMaps, files: planFiles, crtLists },
      config: {
        path,
        size: chunk.size,
        // Costs the length of the file behind its first change, so it waits until somebody needs it.
        get digest() {
          return digests.of(chunk, path);
        },
      },
    },
    digest,
  );
  const files = committed.files.with(new Map([[path, { path, kind: 'config', text: chunk }]]));
  return { committed, config: chunk, plan, files };
};
