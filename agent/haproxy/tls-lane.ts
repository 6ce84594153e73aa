import type { CrtListOperation } from '../../src/protocol/protocol.ts';
import { messageOf } from '../failures.ts';
import type { ReadContent } from './contents.ts';
import type { References } from './references.ts';
import {
  abortTls,
  addLine,
  commitTls,
  crtListLine,
  deleteLine,
  deleteTls,
  fitsPayload,
  lineNumber,
  newTls,
  setTls,
  showLines,
  tlsKindOf,
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
  const { references, on } = context;
  const kind = tlsKindOf(operation);
  const { file } = operation;
  const name = await references.find(kind, file, on);
  if (!('digest' in operation)) {
    if (name === undefined) return undefined;
    const removed = await one(context, deleteTls(kind, name));
    if (/deleted!$/.test(removed.text)) references.note(kind, file, false);
    return removed.ok ? undefined : { message: removed.text, certain: true };
  }
  if (name === undefined && operation.kind.endsWith('_set')) return undefined; // the file is all there is
  const lines = await context
    .read(file, operation.digest)
    .catch((error: unknown) => messageOf(error));
  if (typeof lines === 'string') return { message: lines, certain: true };
  if (!fitsPayload(lines)) return { message: 'the file is too large for a command', certain: true };
  if (name === undefined) {
    const made = await one(context, newTls(kind, file));
    if (!made.ok) return { message: made.text, certain: true };
    references.note(kind, file, true);
  }
  return transact(context, { kind, name: name ?? file, lines });
}

async function transact(
  context: TlsContext,
  {
    kind,
    name,
    lines,
  }: Parameters<typeof setTls> extends [infer Kind, infer Name, infer Lines]
    ? { readonly kind: Kind; readonly name: Name; readonly lines: Lines }
    : never,
): Promise<LaneFailure | undefined> {
  const set = await one(context, setTls(kind, name, lines));
  if (set.ok) {
    const committed = await one(context, commitTls(kind, name));
    if (committed.ok) return undefined;
    if ('lost' in committed) return { message: committed.text, certain: false };
    await one(context, abortTls(kind, name));
    return { message: withoutProgress(committed.text), certain: true };
  }
  await one(context, abortTls(kind, name));
  return { message: set.text, certain: true };
}

/** Runs one operation on a certificate list. @returns what went wrong; nothing when it is done */
export async function runListOperation(
  { kind, list, entry }: CrtListOperation,
  context: TlsContext,
): Promise<LaneFailure | undefined> {
  const { references, on } = context;
  const name = await references.find('crt-list', list, on);
  if (name === undefined) return { message: 'the worker has not loaded this list', certain: true };
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
