import {
  LIMITS,
  type CrtListOperation,
  type Operation,
  type TlsFileOperation,
} from '../protocol/protocol.ts';
import type { RuntimeState } from './change-set.ts';
import { isPlainWord } from './command-line.ts';
import { sortedDifferences, type Difference } from './merkle-map.ts';
import type { CrtLine, CrtList, PlanFile } from './plan.ts';
import type { ReloadReasons } from './reload-reasons.ts';
import { isTlsFile } from './runtime-state.ts';

/**
 * Operations on TLS material in the groups that keep every server name with a certificate: files first, then new lines, then
 * lines that go, and last what no line names any more.
 */
export interface TlsChanges {
  readonly files: TlsFileOperation[];
  readonly adds: CrtListOperation[];
  readonly deletes: CrtListOperation[];
  readonly removes: TlsFileOperation[];
}

export const NO_TLS: TlsChanges = { files: [], adds: [], deletes: [], removes: [] };

/** Part of a command line that its words need. */
const COMMAND_BYTES = 1_024;
/** Largest file, in bytes, that one command carries; authorities go in pieces. */
const FILE_BYTES = LIMITS.commandLineBytes - COMMAND_BYTES;
const AUTHORITIES_BYTES = LIMITS.tlsFileBytes;

type Part = Pick<RuntimeState, 'backends' | 'files' | 'crtLists'>;

/**
 * What leads from a worker's TLS material to that of a plan.
 *
 * @param servers additions and removals of servers that go with it, and with them the files that these name
 * @param reasons gets what only a reload can bring
 */
export function tlsChanges(
  [before, after]: readonly [Part, Part],
  servers: readonly Operation[],
  reasons: ReloadReasons,
): TlsChanges {
  const changes: TlsChanges = { files: [], adds: [], deletes: [], removes: [] };
  for (const difference of sortedDifferences(before.crtLists, after.crtLists)) {
    changeList(changes, difference, reasons);
  }
  const named = held(after, [...addedServers(servers), ...changes.adds.flatMap(wordsOf)]);
  const left = held(before, [
    ...removedServers(servers, before),
    ...changes.deletes.flatMap(wordsOf),
  ]);
  const change = { changes, named, left, reasons };
  for (const difference of sortedDifferences(before.files, after.files)) {
    changeFile(difference, change);
  }
  const sent = new Set(changes.files.map(({ file }) => file));
  const loaded = held(before, siblingsOf(servers, before)).union(left);
  for (const path of named.difference(sent).difference(loaded)) {
    const file = after.files.get(path);
    if (file !== undefined && isTlsFile(file)) send(file, 'add', change);
  }
  // One whose file stays goes on getting its contents.
  for (const path of left) {
    const file = before.files.get(path);
    if (file !== undefined && isTlsFile(file) && after.files.get(path) === undefined) {
      changes.removes.push({ kind: `${tlsKind(file)}_remove`, file: path });
    }
  }
  return changes;
}

const NAMES_A_FILE: ReadonlySet<string> = new Set(['ca-file', 'crl-file', 'crt']);

/** Files that these words name and that are held, sorted. */
const held = ({ files }: Part, words: readonly string[]): ReadonlySet<string> =>
  new Set(
    words
      .filter((path, at) => NAMES_A_FILE.has(words[at - 1] ?? '') && files.get(path) !== undefined)
      .sort(),
  );

const wordsOf = ({ entry }: CrtListOperation): readonly string[] => [
  ...['crt', entry.certificate],
  ...entry.options,
];

const addedServers = (operations: readonly Operation[]): readonly string[] =>
  operations.flatMap((one) => (one.kind === 'server_add' ? one.keywords : []));

/** Words of servers that are in a backend already to which others come. */
const siblingsOf = (operations: readonly Operation[], before: Part): readonly string[] => {
  const grown = operations.flatMap((one) => (one.kind === 'server_add' ? [one.backend] : []));
  return [...new Set(grown)].flatMap((name) =>
    (before.backends.get(name)?.servers ?? []).flatMap(({ keywords }) => keywords),
  );
};

const removedServers = (operations: readonly Operation[], before: Part): readonly string[] =>
  operations.flatMap((one) => {
    if (one.kind !== 'server_remove') return [];
    const servers = before.backends.get(one.backend)?.servers ?? [];
    return servers.find(({ name }) => name === one.server)?.keywords ?? [];
  });

interface FileChange {
  readonly changes: TlsChanges;
  /** Paths that what is added names. */
  readonly named: ReadonlySet<string>;
  /** Paths that what goes named. */
  readonly left: ReadonlySet<string>;
  readonly reasons: ReloadReasons;
}

/** A file that nothing names may still be read, with its folder for example: when it comes or goes only a reload helps. */
function changeFile(difference: Difference<PlanFile>, change: FileChange): void {
  const { before, after } = difference;
  if (after === undefined) goneFile(before, change);
  else if (isTlsFile(after) && !isSameContent(before, after)) putFile(before, after, change);
}

const isSameContent = (before: PlanFile | undefined, after: PlanFile): boolean =>
  before?.text === after.text && before.kind === after.kind;

function putFile(before: PlanFile | undefined, after: PlanFile, change: FileChange): void {
  const { path, kind, reloadOnChange } = after;
  if (change.named.has(path)) send(after, 'add', change);
  else if (before?.kind === kind) send(after, 'set', change);
  else if (reloadOnChange) change.reasons.add('file-changed', `file ${path}: new`);
}

function goneFile(file: PlanFile | undefined, { left, reasons }: FileChange): void {
  if (file === undefined || !isTlsFile(file) || left.has(file.path)) return;
  if (file.reloadOnChange) reasons.add('file-changed', `file ${file.path}: removed`);
}

function send(file: PlanFile, what: 'add' | 'set', { changes, reasons }: FileChange): void {
  const obstacle = fileObstacle(file);
  if (obstacle === undefined) changes.files.push(fileOperation(file, what));
  else reasons.add('unsupported-operation', `file ${file.path}: ${obstacle}`);
}

const fileObstacle = ({ path, kind, size }: PlanFile): string | undefined => {
  if (!isPlainWord(path)) return 'its path cannot be sent in a command';
  const most = kind === 'ca' ? AUTHORITIES_BYTES : FILE_BYTES;
  return size > most ? `${size} bytes are too many for commands` : undefined;
};

const fileOperation = (file: PlanFile, what: 'add' | 'set'): TlsFileOperation => ({
  ...{ kind: `${tlsKind(file)}_${what}`, file: file.path, digest: file.text },
});

const tlsKind = ({ kind }: PlanFile): 'cert' | 'ca' | 'crl' =>
  kind === 'ca' || kind === 'crl' ? kind : 'cert';

function changeList(
  changes: TlsChanges,
  { key, before, after }: Difference<CrtList>,
  reasons: ReloadReasons,
): void {
  if (before === undefined || after === undefined) {
    const what = before === undefined ? 'new' : 'removed';
    reasons.add('file-changed', `certificate list ${key}: ${what}`);
    return;
  }
  const obstacle = listObstacle(before, after);
  if (obstacle !== undefined) {
    reasons.add('crt-list-order', `certificate list ${key}: ${obstacle}`);
    return;
  }
  for (const line of sortedDifferences(before.lines, after.lines)) {
    const [gone, entry] = [line.before, line.after];
    if (gone !== undefined) {
      changes.deletes.push({ kind: 'crtlist_delete', list: key, entry: entryOf(gone) });
    }
    if (entry !== undefined) {
      changes.adds.push({ kind: 'crtlist_add', list: key, entry: entryOf(entry) });
    }
  }
}

const entryOf = ({ certificate, options, filters }: CrtLine): CrtListOperation['entry'] => ({
  ...{ certificate, options, filters },
});

/** Lines that come at run time stand behind all others, so their order must be no matter. */
function listObstacle(before: CrtList, after: CrtList): string | undefined {
  if (before.first !== after.first)
    return 'its first line, whose certificate is the default one, changed';
  for (const list of [before, after]) {
    const obstacle = orderObstacle(list);
    if (obstacle !== undefined) return obstacle;
  }
  return undefined;
}

/** Why the order of the lines of a list matters; costs its length, once for each list. */
function orderObstacle(list: CrtList): string | undefined {
  const known = obstacles.get(list);
  if (known !== undefined) return known.obstacle;
  const obstacle = findOrderObstacle(list);
  obstacles.set(list, { obstacle });
  return obstacle;
}
const obstacles = new WeakMap<CrtList, { readonly obstacle: string | undefined }>();

function findOrderObstacle({ lines, first }: CrtList): string | undefined {
  const taken = new Set<string>();
  for (const key of lines.keys()) {
    const { certificate, filters } = lines.get(key) as CrtLine;
    if (filters.length === 0 && key !== first) return `the line of ${certificate} names no server`;
    for (const filter of filters) {
      const name = filter.toLowerCase();
      if (name.startsWith('!')) return `the line of ${certificate} excludes ${name.slice(1)}`;
      if (taken.has(name)) return `two lines answer to ${name}`;
      taken.add(name);
    }
  }
  return undefined;
}
