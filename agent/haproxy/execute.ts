import type { Operation, OperationKind, OperationResult } from '../../src/protocol/protocol.ts';
import {
  ENTRY_NOT_FOUND,
  addEntries,
  deleteEntry,
  deleteServer,
  serverCommands,
  setEntry,
  waitRemovable,
  type EntryOperation,
  type ServerOperation,
} from './commands.ts';
import type { DeleteQueue } from './deletes.ts';
import { messageOf } from '../failures.ts';
import { targetOf, type Instruction } from '../http/instruction.ts';
import { lanesOf, type Lane } from './lanes.ts';
import {
  sameWorker,
  type Command,
  type Reply,
  type Worker,
  type WorkerIdentity,
} from './worker.ts';

/** What came of a list of operations. */
export interface Execution {
  /** Completely executed, in order. */
  readonly done: readonly Operation[];
  /** Those that were refused; nothing after the line of the first one was sent. At most 32. */
  readonly failed: readonly OperationResult[];
  /** False: some operation may have been executed in part, so what the worker holds is not known. */
  readonly certain: boolean;
}

export const NOTHING: Execution = { done: [], failed: [], certain: true };

/** How long an operation waits for the last connections of a server of the same name, in milliseconds. */
const READD_WAIT_MS = 1_000;
const MAX_DUPLICATES = 64;
const MAX_FAILED = 32;

/** Brings operations to the worker. The lock must be held. */
export class Executor {
  readonly #worker: Worker;
  readonly #deletes: DeleteQueue;

  constructor(worker: Worker, deletes: DeleteQueue) {
    this.#worker = worker;
    this.#deletes = deletes;
  }

  /** Runs all of them in order on the worker that is expected. Never throws. */
  async run(instructions: readonly Instruction[], on: WorkerIdentity): Promise<Execution> {
    const refused = this.#refusals(instructions);
    if (refused.length > 0)
      return { done: [], failed: refused.slice(0, MAX_FAILED), certain: true };
    const operations = instructions.flatMap((entry) => (entry.ok ? [entry.operation] : []));
    const done: Operation[] = [];
    for (const lane of lanesOf(operations, (name) => this.#deletes.has(name))) {
      const part = await this.#lane(lane, on);
      done.push(...part.done);
      if (part.failed.length > 0) return { ...part, done };
    }
    if (done.length > 0 && !sameWorker(await this.#worker.info(), on)) {
      return { done: [], failed: [failure(done[0], 'the worker was replaced')], certain: false };
    }
    return { done, failed: [], certain: true };
  }

  #refusals(instructions: readonly Instruction[]): OperationResult[] {
    const refused = instructions.flatMap((entry) =>
      entry.ok
        ? []
        : [
            {
              kind: entry.kind as OperationKind,
              target: entry.target,
              ok: false,
              message: entry.reason,
            },
          ],
    );
    const removals = instructions.flatMap((entry) =>
      entry.ok && entry.operation.kind === 'server_remove' ? [entry.operation] : [],
    );
    if (this.#deletes.fits(removals.length)) return refused;
    return [...refused, failure(removals[0], 'too many servers wait for their deletion')];
  }

  async #lane(lane: Lane, on: WorkerIdentity): Promise<Execution> {
    try {
      switch (lane.kind) {
        case 'servers':
          return await this.#servers(lane.operations);
        case 'readd':
          return await this.#readd(lane.operation);
        case 'entries':
          return await this.#entries(lane.operations, on);
        case 'deletions':
          return await this.#deletions(lane.operations, on);
        case 'replacement':
          return await this.#replacement(lane.operation, on);
      }
    } catch (error: unknown) {
      return { done: [], failed: [failure(lane.first, messageOf(error))], certain: false };
    }
  }

  async #servers(operations: readonly ServerOperation[]): Promise<Execution> {
    const commands = operations.map(serverCommands);
    const replies = await this.#worker.run(commands.flat());
    let from = 0;
    const outcomes = operations.map((operation, index) => {
      const count = commands[index]?.length ?? 0;
      const own = replies.slice(from, from + count);
      from += count;
      return { operation, own, complete: own.length === count };
    });
    const execution = summarize(outcomes);
    for (const operation of execution.done) this.#settle(operation);
    return execution;
  }

  #settle(operation: Operation): void {
    if (operation.kind === 'server_remove') {
      this.#deletes.add(`${operation.backend}/${operation.server}`);
    }
  }

  /** A server comes back whose namesake still waits for its deletion: that one has to go first. */
  async #readd(operation: ServerOperation): Promise<Execution> {
    const name = `${operation.backend}/${operation.server}`;
    const [, gone] = await this.#worker.run([
      waitRemovable(name, READD_WAIT_MS),
      deleteServer(name),
    ]);
    if (gone?.ok !== true) {
      return { done: [], failed: [failure(operation, gone?.text ?? 'no reply')], certain: true };
    }
    this.#deletes.drop(name);
    return this.#servers([operation]);
  }

  /** A key that is there gets the value, one that is not is added: never twice, never gone in between. */
  async #entries(operations: readonly EntryOperation[], on: WorkerIdentity): Promise<Execution> {
    const references = await this.#references(operations, on);
    if (!(references instanceof Map)) return references;
    const reference = (map: string): string => references.get(map) ?? map;
    const replies = await this.#worker.run(
      operations.map(({ map, key, value }) => setEntry(reference(map), key, value)),
    );
    const outcomes = operations.map((operation, index) => {
      const own = replies.slice(index, index + 1);
      return { operation, own, complete: own.length === 1 };
    });
    const absent = operations.filter((_, index) =>
      ENTRY_NOT_FOUND.test(replies[index]?.text ?? ''),
    );
    const set = summarize(outcomes);
    if (set.failed.length > 0) {
      return {
        ...set,
        done: set.done.filter((operation) => !absent.some((one) => one === operation)),
      };
    }
    const added = await this.#worker.run(additions(absent, reference));
    const bad = added.find((reply) => !reply.ok);
    if (bad === undefined) return { done: operations, failed: [], certain: true };
    return { done: [], failed: [failure(absent[0], bad.text)], certain: false };
  }

  async #deletions(
    operations: readonly Extract<Operation, { kind: 'map_delete' }>[],
    on: WorkerIdentity,
  ): Promise<Execution> {
    const references = await this.#references(operations, on);
    if (!(references instanceof Map)) return references;
    const outcomes: Outcome[] = [];
    let rest = operations;
    for (let round = 0; rest.length > 0; round += 1) {
      const replies = await this.#worker.run(
        rest.map(({ map, key }) => deleteEntry(references.get(map) ?? map, key)),
      );
      if (round === 0 || replies.some((reply) => !reply.ok)) {
        outcomes.push(...rest.map((operation, index) => outcomeOf(operation, replies[index])));
      }
      if (replies.some((reply) => !reply.ok)) break;
      if (round > MAX_DUPLICATES) throw new Error('a map key does not go away');
      rest = rest.filter((_, index) => replies[index]?.text === '');
    }
    return summarize(outcomes);
  }

  async #replacement(
    operation: Extract<Operation, { kind: 'map_replace' }>,
    on: WorkerIdentity,
  ): Promise<Execution> {
    const references = await this.#references([operation], on);
    if (!(references instanceof Map)) return references;
    const reference = references.get(operation.map) ?? operation.map;
    const bad = await this.#replaceMap(reference, operation.entries);
    if (bad === undefined) return { done: [operation], failed: [], certain: true };
    return { done: [], failed: [failure(operation, bad.text)], certain: !bad.committing };
  }

  /** @returns what went wrong; until the commit nobody sees anything of it */
  async #replaceMap(
    reference: string,
    entries: readonly (readonly [string, string])[],
  ): Promise<{ readonly text: string; readonly committing: boolean } | undefined> {
    const prepared = await this.#one({
      line: `prepare map ${reference}`,
      accept: /^New version created: \d+/,
    });
    const version = /\d+/.exec(prepared.text)?.[0] ?? '';
    if (!prepared.ok) return { text: prepared.text, committing: false };
    const added = await this.#worker.run(addEntries(`@${version} ${reference}`, entries));
    const bad = added.find((reply) => !reply.ok);
    if (bad !== undefined) return { text: bad.text, committing: false };
    const committed = await this.#one({
      line: `commit map @${version} ${reference}`,
      accept: 'silent',
    });
    return committed.ok ? undefined : { text: committed.text, committing: true };
  }

  async #one(command: Command): Promise<Reply> {
    const [reply] = await this.#worker.run([command]);
    return reply ?? { ok: false, lost: true, text: 'no reply' };
  }

  async #references(
    operations: readonly Extract<Operation, { readonly map: string }>[],
    on: WorkerIdentity,
  ): Promise<Map<string, string> | Execution> {
    const references = new Map<string, string>();
    for (const operation of operations) {
      if (references.has(operation.map)) continue;
      const reference = await this.#worker.mapReference(operation.map, on);
      if (reference === undefined) {
        const message = 'the worker has not loaded this map';
        return { done: [], failed: [failure(operation, message)], certain: true };
      }
      references.set(operation.map, reference);
    }
    return references;
  }
}

interface Outcome {
  readonly operation: Operation;
  readonly own: readonly Reply[];
  /** Every command of the operation was sent. */
  readonly complete: boolean;
}

const outcomeOf = (operation: Operation, reply: Reply | undefined): Outcome => ({
  operation,
  own: reply === undefined ? [] : [reply],
  complete: reply !== undefined,
});

/** An operation of which no command took effect is just not done; one of which some did leaves the worker unknown. */
function summarize(outcomes: readonly Outcome[]): Execution {
  const done: Operation[] = [];
  const failed: OperationResult[] = [];
  let certain = true;
  for (const { operation, own, complete } of outcomes) {
    const bad = own.find((reply) => !reply.ok);
    if (bad === undefined) {
      if (complete) done.push(operation);
      else if (own.length > 0) certain = false;
      continue;
    }
    failed.push(failure(operation, bad.text));
    if (own.some((reply) => reply.ok || 'lost' in reply)) certain = false;
  }
  return { done, failed: failed.slice(0, MAX_FAILED), certain };
}

function failure(operation: Operation | undefined, message: string): OperationResult {
  return {
    kind: operation?.kind ?? 'server_add',
    target: operation === undefined ? '' : targetOf(operation),
    ok: false,
    message: message.slice(0, 1_000),
  };
}

function additions(
  operations: readonly EntryOperation[],
  reference: (map: string) => string,
): ReturnType<typeof addEntries> {
  const byMap = new Map<string, Map<string, string>>();
  for (const { map, key, value } of operations) {
    const entries = byMap.get(map) ?? new Map<string, string>();
    byMap.set(map, entries.set(key, value)); // the last value of a key wins
  }
  return [...byMap].flatMap(([map, entries]) => addEntries(reference(map), entries));
}
