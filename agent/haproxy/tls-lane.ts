import { crtListLine } from '../../src/protocol/crt-list.ts';
import type { CrtListOperation } from '../../src/protocol/protocol.ts';
import { messageOf } from '../failures.ts';
import type { ReadContent } from './contents.ts';
import type { References } from './references.ts';
import {
  abortTls,
  addLine,
  commitTls,
  deleteLine,
  deleteTls,
  lineNumber,
  newTls,
  setTls,
  showLines,
  tlsKindOf,
  type TlsKind,
  type TlsOperation,
} from './tls-commands.ts';
import type { Command, Reply, Worker } from './worker.ts';
import type { WorkerIdentity } from './worker-identity.ts';

/** What went wrong with an operation; `certain`: and that it had no effect. */
export interface LaneFailure {
  readonly message: string;
  readonly certain: boolean;
}

/** What the execution of TLS operations needs. */
export interface TlsContext {
  readonly worker: Worker;
  readonly references: References;
  readonly read: ReadContent;
  readonly on: WorkerIdentity;
}

/** Runs one operation on a TLS file. @returns what went wrong; nothing when it is done */
export async function runTlsOperation(
  operation: TlsOperation,
  context: TlsContext,
): Promise<LaneFailure | undefined> {
  const kind = tlsKindOf(operation);
  const name = await context.references.find(kind, operation.file, context.on);
  if ('digest' in operation) return put(operation, name, context);
  return name === undefined ? undefined : remove(operation, name, context);
}

async function remove(
  operation: TlsOperation,
  name: string,
  context: TlsContext,
): Promise<LaneFailure | undefined> {
  const kind = tlsKindOf(operation);
  const removed = await one(context, deleteTls(kind, name));
  if (/deleted!$/.test(removed.text)) context.references.note(kind, operation.file, false);
  return failureOf(removed);
}

async function put(
  operation: Extract<TlsOperation, { readonly digest: string }>,
  name: string | undefined,
  context: TlsContext,
): Promise<LaneFailure | undefined> {
  if (name === undefined && operation.kind.endsWith('_set')) return undefined; // the file is all there is
  const { file, digest } = operation;
  const lines = await context.read(file, digest).catch((error: unknown) => messageOf(error));
  if (typeof lines === 'string') return { message: lines, certain: true };
  const kind = tlsKindOf(operation);
  const content = setTls(kind, name ?? file, lines);
  if (content.length === 0) return { message: 'the file is too large for commands', certain: true };
  if (name !== undefined) return transact(context, { kind, name, content });
  return create(context, { kind, name: file, content });
}

async function create(
  context: TlsContext,
  transaction: Transaction,
): Promise<LaneFailure | undefined> {
  const { kind, name } = transaction;
  const made = await one(context, newTls(kind, name));
  if (!made.ok) return failureOf(made);
  context.references.note(kind, name, true);
  const bad = await transact(context, transaction);
  if (bad?.certain !== true) return bad;
  await one(context, deleteTls(kind, name)); // an empty one is of no use to anybody
  context.references.note(kind, name, false);
  return bad;
}

interface Transaction {
  readonly kind: TlsKind;
  readonly name: string;
  readonly content: readonly Command[];
}

/** Nobody sees anything of it until the commit, and without one nothing is left of it. */
async function transact(
  context: TlsContext,
  { kind, name, content }: Transaction,
): Promise<LaneFailure | undefined> {
  const replies = await context.worker.run([...content, commitTls(kind, name)]);
  const bad = replies.find((reply) => !reply.ok);
  if (bad === undefined) return undefined;
  const isCommit = replies.length > content.length;
  if (!isCommit || !('lost' in bad)) await one(context, abortTls(kind, name));
  return { message: withoutProgress(bad.text), certain: !(isCommit && 'lost' in bad) };
}

/** Runs one operation on a certificate list. @returns what went wrong; nothing when it is done */
export async function runListOperation(
  { kind, list, entry }: CrtListOperation,
  context: TlsContext,
): Promise<LaneFailure | undefined> {
  const { references, on } = context;
  const name = await references.find('crt-list', list, on);
  if (name === undefined) return undefined; // the file is all there is
  const certificate = await references.find('cert', entry.certificate, on);
  if (certificate === undefined) {
    return { message: 'the worker has not loaded this certificate', certain: true };
  }
  const line = crtListLine({ ...entry, certificate });
  if (kind === 'crtlist_add') return failureOf(await one(context, addLine(name, line)));
  const shown = await one(context, showLines(name));
  if (!shown.ok) return { message: shown.text, certain: true };
  const number = lineNumber(shown.text, line);
  if (number === undefined) return { message: 'the list has no such line', certain: true };
  return failureOf(await one(context, deleteLine(name, certificate, number)));
}

const failureOf = (reply: Reply): LaneFailure | undefined =>
  reply.ok ? undefined : { message: withoutProgress(reply.text), certain: !('lost' in reply) };

/** Without the first line, which only says what is being done. */
const withoutProgress = (text: string): string =>
  text.replace(/^(?:Committing|Inserting) .*\n/, '');

async function one({ worker }: TlsContext, command: Command): Promise<Reply> {
  const [reply] = await worker.run([command]);
  return reply ?? { ok: false, lost: true, text: 'no reply' };
}
