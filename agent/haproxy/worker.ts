import { LIMITS } from '../../src/protocol/protocol.ts';
import { messageOf } from '../failures.ts';
import { References } from './references.ts';
import { exchange } from './socket.ts';
import type { WorkerIdentity } from './worker-identity.ts';

/** What a worker says about itself. */
export interface WorkerInfo extends WorkerIdentity {
  /** For example `3.0.11`. */
  readonly version: string;
}

/** One command, what must come back, and lines that belong to it. */
export interface Command {
  readonly line: string;
  /** Lines after the command, without the empty line at the end. A command with a payload ends its batch. */
  readonly payload?: readonly string[];
  /** What the reply must look like; `silent`: nothing at all. */
  readonly accept: RegExp | 'silent';
  /** A complaint that counts as success here; its text is in the reply. */
  readonly tolerate?: RegExp;
  /** Time it may take by itself, in milliseconds, for example to wait. Default: 0. */
  readonly waitMs?: number;
}

/** Reply to one command: HAProxy's words without its severity, or that it never came. */
export type Reply =
  | { readonly ok: boolean; readonly text: string }
  | { readonly ok: false; readonly lost: true; readonly text: string };

const PREFIX = 'set severity-output number';

/** HAProxy's worker, through its `stats socket` (level admin). */
export class Worker {
  readonly #socket: string;
  /** What it has loaded. */
  readonly references: References;

  constructor(socket: string, base: string) {
    this.#socket = socket;
    this.references = new References(socket, base);
  }

  /** @returns `null` when no worker answers in time */
  async info(timeoutMs: number = LIMITS.commandTimeoutMs): Promise<WorkerInfo | null> {
    try {
      return parseInfo(await exchange(this.#socket, { text: 'show info\n', timeoutMs }));
    } catch {
      return null;
    }
  }

  /**
   * Runs commands in order, several on a line, and stops after the line on which one of them failed.
   *
   * @returns one reply for each command that was sent; never throws
   */
  async run(commands: readonly Command[]): Promise<Reply[]> {
    const replies: Reply[] = [];
    for (const line of packed(commands)) {
      const answers = await this.#line(line);
      replies.push(...answers);
      if (answers.some((answer) => !answer.ok)) break;
    }
    return replies;
  }

  /**
   * How a worker calls the map of a file, as commands need it: as the configuration spells it.
   *
   * @returns `undefined` when this worker has not loaded it
   */
  mapReference(map: string, worker: WorkerIdentity): Promise<string | undefined> {
    return this.references.find('map', map, worker);
  }

  async #line(commands: readonly Command[]): Promise<Reply[]> {
    const payload = commands.at(-1)?.payload;
    const line = [PREFIX, ...commands.map((command) => command.line)].join(';');
    const text = payload === undefined ? `${line}\n` : `${line} <<\n${payload.join('\n')}\n\n`;
    const waitMs = commands.reduce((sum, command) => sum + (command.waitMs ?? 0), 0);
    try {
      const answer = await exchange(this.#socket, {
        text,
        timeoutMs: LIMITS.commandTimeoutMs + waitMs,
      });
      const [, ...texts] = splitReplies(answer);
      return commands.map((command, index) => judge(command, texts[index]));
    } catch (error: unknown) {
      return commands.map(() => ({ ok: false, lost: true, text: messageOf(error) }));
    }
  }
}

/** Commands line by line: under the limit, one with a payload last. */
export function packed(commands: readonly Command[]): Command[][] {
  const lines: Command[][] = [];
  let current: Command[] = [];
  let bytes = PREFIX.length;
  const close = (): void => {
    if (current.length > 0) lines.push(current);
    current = [];
    bytes = PREFIX.length;
  };
  for (const command of commands) {
    const size = bytesOf(command);
    if (bytes + size > LIMITS.commandLineBytes) close();
    current.push(command);
    bytes += size;
    if (command.payload !== undefined) close();
  }
  close();
  return lines;
}

const bytesOf = (command: Command): number =>
  (command.payload ?? []).reduce(
    (sum, line) => sum + Buffer.byteLength(line) + 1,
    Buffer.byteLength(command.line) + 4,
  );

/** Replies of the commands on one line: an empty line ends each. */
export function splitReplies(answer: string): string[] {
  const replies: string[] = [];
  let lines: string[] = [];
  for (const line of answer.split('\n')) {
    if (line !== '') {
      lines.push(line);
      continue;
    }
    replies.push(lines.join('\n'));
    lines = [];
  }
  return lines.length > 0 ? [...replies, lines.join('\n')] : replies.slice(0, -1);
}

function judge(command: Command, text: string | undefined): Reply {
  if (text === undefined) return { ok: false, lost: true, text: 'no reply' };
  const words = text.replace(/^\[\d\]: /, '');
  const severity = /^\[(\d)\]: /.exec(text)?.[1];
  if (command.tolerate?.test(words) === true) return { ok: true, text: words };
  if (command.accept === 'silent') return { ok: text === '', text: words };
  const failed = severity !== undefined && Number(severity) <= 3;
  return { ok: !failed && command.accept.test(words), text: words };
}

/** Reads `show info`; `null` when it is something else. */
export function parseInfo(text: string): WorkerInfo | null {
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}: (.+)$`, 'm').exec(text)?.[1];
  const pid = Number(field('Pid'));
  const start = Number(field('Start_time_sec'));
  const version = /^\d+(?:\.\d+)+/.exec(field('Version') ?? '')?.[0];
  if (version === undefined || !Number.isInteger(pid) || !Number.isInteger(start)) return null;
  return { version, pid, startMs: start * 1000 };
}
