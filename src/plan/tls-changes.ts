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
/** Largest file, in bytes, that one command carries. */
const FILE_BYTES = LIMITS.commandLineBytes - COMMAND_BYTES;

type Part = Pick<RuntimeState, 'backends' | 'files' | 'crtLists'>;

/**
 * What leads from a worker's TLS material to that of a plan.
 *
 * @param servers operations on servers that go with it: files that they name are put into the worker
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
  const named = namedBy([...servers, ...changes.adds], after);
  const left = namedBy(changes.deletes, before);
  const change = { changes, named, left, reasons };
  for (const difference of sortedDifferences(before.files, after.files)) {
    changeFile(difference, change);
  }
  const sent = new Set(changes.files.map(({ file }) => file));
  for (const path of named.difference(sent)) {
    const file = after.files.get(path);
    if (file !== undefined && isTlsFile(file)) send(file, 'add', change);
  }
  for (const path of [...withoutNamed(left, after)].sort()) {
    changes.removes.push({ kind: 'cert_remove', file: path });
  }
  return changes;
}

/** Files that words of servers and lines name, if they are new to the worker's servers and lines. */
function namedBy(operations: readonly Operation[], after: Part): Set<string> {
  const named = new Set<string>();
  for (const operation of operations) {
    if (operation.kind === 'server_add') addNamed(named, operation.keywords);
    if (operation.kind !== 'crtlist_add' && operation.kind !== 'crtlist_delete') continue;
    named.add(operation.entry.certificate);
    addNamed(named, operation.entry.options);
  }
  return new Set([...named].filter((path) => after.files.get(path) !== undefined).sort());
}

const NAMES_A_FILE: ReadonlySet<string> = new Set(['ca-file', 'crl-file', 'crt']);

const addNamed = (named: Set<string>, words: readonly string[]): void => {
  for (const [at, word] of words.entries()) {
    const path = words[at + 1];
    if (NAMES_A_FILE.has(word) && path !== undefined) named.add(path);
  }
};

interface FileChange {
  readonly changes: TlsChanges;
  /** Paths that what is added names. */
  readonly named: ReadonlySet<string>;
  /** Paths that lines which go named. */
  readonly left: ReadonlySet<string>;
  readonly reasons: ReloadReasons;
}

/** A new file that nothing names may still be read, with its folder for example: then only a reload helps. */
function changeFile({ key, before, after }: Difference<PlanFile>, change: FileChange): void {
  if (before?.text === after?.text && before?.kind === after?.kind) return;
  if (after === undefined) {
    if (before === undefined || !isTlsFile(before) || change.left.has(key)) return;
    if (before.reloadOnChange) change.reasons.add('file-changed', `file ${key}: removed`);
    return;
  }
  if (!isTlsFile(after)) return;
  if (before?.kind === after.kind) send(after, change.named.has(key) ? 'add' : 'set', change);
  else if (change.named.has(key)) send(after, 'add', change);
  else if (after.reloadOnChange) change.reasons.add('file-changed', `file ${key}: new`);
}

function send(file: PlanFile, what: 'add' | 'set', { changes, reasons }: FileChange): void {
  const obstacle = fileObstacle(file);
  if (obstacle === undefined) changes.files.push(fileOperation(file, what));
  else reasons.add('unsupported-operation', `file ${file.path}: ${obstacle}`);
}

const fileObstacle = ({ path, size }: PlanFile): string | undefined => {
  if (!isPlainWord(path)) return 'its path cannot be sent in a command';
  return size > FILE_BYTES ? `${size} bytes are too many for one command` : undefined;
};

const fileOperation = (file: PlanFile, what: 'add' | 'set'): TlsFileOperation => {
  const kind = file.kind === 'ca' || file.kind === 'crl' ? file.kind : 'cert';
  return { kind: `${kind}_${what}`, file: file.path, digest: file.text };
};

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

/** Of these certificates those that no line names. */
function withoutNamed(certificates: ReadonlySet<string>, { crtLists }: Part): ReadonlySet<string> {
  const left = new Set(certificates);
  for (const list of crtLists.values()) {
    if (left.size === 0) break;
    for (const { certificate } of list.lines.values()) left.delete(certificate);
  }
  return left;
}
