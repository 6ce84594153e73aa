import { createReadStream } from 'node:fs';
import { appendFile, mkdir, open, readdir, rename, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { LIMITS, type Digest, type Operation } from '../../src/protocol/protocol.ts';
import { removeFile, replaceFile } from '../files/disk.ts';
import { writeContent } from '../files/content.ts';

/**
 * The serialised plans as the controller sent them, one file each, and the log of the operations executed since the
 * worker was started. Both stay on disk: the agent never needs them itself.
 */
export class Plans {
  readonly #folder: string;
  readonly #log: string;
  /** Operations in the log; `undefined` when the log does not tell all of them. */
  #logged: number | undefined;

  constructor(folder: string) {
    this.#folder = join(folder, 'plans');
    this.#log = join(folder, 'operations.jsonl');
  }

  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#logged = await countLines(this.#log);
  }

  /** Keeps a plan that comes as a stream. */
  async put(planId: Digest, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const temporary = join(this.#folder, 'incoming');
    await removeFile(temporary);
    await writeContent(temporary, chunks, 0o600);
    await rename(temporary, join(this.#folder, planId));
  }

  /** Forgets every plan but these. */
  async retain(planIds: readonly (Digest | null)[]): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      if (!planIds.includes(name)) await removeFile(join(this.#folder, name));
    }
  }

  /** Another worker: the log begins anew. */
  async restart(): Promise<void> {
    await replaceFile(this.#log, '');
    this.#logged = 0;
  }

  /** Appends what the worker has executed. Never throws: a log that cannot be written is unknown from then on. */
  async append(operations: readonly Operation[]): Promise<void> {
    if (this.#logged === undefined || operations.length === 0) return;
    if (this.#logged + operations.length > LIMITS.storedOperations) {
      this.#logged = undefined;
      await removeFile(this.#log).catch(() => undefined);
      return;
    }
    const lines = operations.map((operation) => `${JSON.stringify(operation)}\n`).join('');
    const logged = this.#logged + operations.length;
    this.#logged = undefined; // a line that is half written makes the log worthless
    await appendFile(this.#log, lines, { mode: 0o600 }).then(
      () => (this.#logged = logged),
      () => undefined,
    );
  }

  /**
   * The answer to `GET /v1/plan`, as pieces of JSON. What it reads is opened before it returns, so the lock is needed
   * no longer; the caller must read it to its end.
   *
   * @param executed number of operations the worker has executed since its start
   */
  async read(running: Digest | null, executed: number): Promise<AsyncGenerator<string>> {
    const plan = running === null ? undefined : await openIfThere(join(this.#folder, running));
    const complete = this.#logged === executed;
    if (running === null || plan === undefined || !complete) {
      await plan?.close();
      return unknownPlan(running);
    }
    const log = await openIfThere(this.#log);
    return storedPlan({ planId: running, plan, log, operations: executed });
  }
}

async function* unknownPlan(planId: Digest | null): AsyncGenerator<string> {
  yield await Promise.resolve(JSON.stringify({ planId, plan: '', operations: [] }));
}

async function* storedPlan(stored: {
  readonly planId: Digest;
  readonly plan: FileHandle;
  readonly log: FileHandle | undefined;
  readonly operations: number;
}): AsyncGenerator<string> {
  try {
    yield `{"planId":${JSON.stringify(stored.planId)},"plan":"`;
    for await (const text of stored.plan.createReadStream({ encoding: 'utf8', autoClose: false })) {
      yield JSON.stringify(text).slice(1, -1);
    }
    yield '","operations":[';
    yield* logLines(stored.log, stored.operations);
    yield ']}';
  } finally {
    await stored.plan.close();
    await stored.log?.close();
  }
}

/** At most so many lines: later ones belong to applies that came after the answer had begun. */
async function* logLines(log: FileHandle | undefined, count: number): AsyncGenerator<string> {
  if (log === undefined) return;
  const input = log.createReadStream({ encoding: 'utf8', autoClose: false });
  let index = 0;
  for await (const line of createInterface({ input })) {
    if (index === count) break;
    yield index === 0 ? line : `,${line}`;
    index += 1;
  }
}

const openIfThere = (path: string): Promise<FileHandle | undefined> =>
  open(path, 'r').catch(() => undefined);

async function countLines(path: string): Promise<number> {
  let lines = 0;
  try {
    for await (const chunk of createReadStream(path)) lines += newlinesIn(chunk as Buffer);
  } catch {
    return 0; // no log yet
  }
  return lines;
}

function newlinesIn(chunk: Buffer): number {
  let lines = 0;
  for (const byte of chunk) if (byte === 10) lines += 1;
  return lines;
}
