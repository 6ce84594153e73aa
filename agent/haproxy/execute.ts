import type { OperationResult } from '../../src/protocol/answers.ts';
import type { Operation, OperationKind } from '../../src/protocol/protocol.ts';
import { messageOf } from '../failures.ts';
import type { Instruction } from '../http/instruction.ts';
import {
  deleteBackend,
  deleteServer,
  proxyCommands,
  waitBackendRemovable,
  waitRemovable,
  type ProxyOperation,
} from './commands.ts';
import type { ReadContent } from './contents.ts';
import { backendName, type DeleteQueue } from './deletes.ts';
import { lanesOf, type Lane } from './lanes.ts';
import { MapLane } from './map-lane.ts';
import { failure, refused, summarize, type Execution } from './outcome.ts';
import { runListOperation, runTlsOperation } from './tls-lane.ts';
import type { Worker } from './worker.ts';
import { sameWorker, type WorkerIdentity } from './worker-identity.ts';

/** How long an operation waits for the last connections of a namesake, in milliseconds. */
const READD_WAIT_MS = 1_000;
const MAX_FAILED = 32;

/** What an executor works with. */
export interface ExecutorParts {
  readonly worker: Worker;
  readonly deletes: DeleteQueue;
  /** Where the content of TLS files comes from. */
  readonly read: ReadContent;
}

/** Brings operations to the worker. The lock must be held. */
export class Executor {
  readonly #parts: ExecutorParts;
  readonly #maps: MapLane;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    this.#maps = new MapLane(parts.worker);
  }

  /** Runs all of them in order on the worker that is expected. Never throws. */
  async run(instructions: readonly Instruction[], on: WorkerIdentity): Promise<Execution> {
    const { worker, deletes } = this.#parts;
    const bad = this.#refusals(instructions);
    if (bad.length > 0) return { done: [], failed: bad.slice(0, MAX_FAILED), certain: true };
    const operations = instructions.flatMap((entry) => (entry.ok ? [entry.operation] : []));
    const done: Operation[] = [];
    for (const lane of lanesOf(operations, (name) => deletes.has(name))) {
      const part = await this.#lane(lane, on);
      done.push(...part.done);
      if (part.failed.length > 0) return { ...part, done };
    }
    if (done.length > 0 && !sameWorker(await worker.info(), on)) {
      return refused(done[0], 'the worker was replaced', false);
    }
    return { done, failed: [], certain: true };
  }

  #refusals(instructions: readonly Instruction[]): OperationResult[] {
    const bad = instructions.flatMap((entry): OperationResult[] => {
      if (entry.ok) return [];
      const { kind, target, reason: message } = entry;
      return [{ kind: kind as OperationKind, target, ok: false, message }];
    });
    const removals = instructions.flatMap((entry) =>
      entry.ok && /^(?:server|backend)_remove$/.test(entry.operation.kind) ? [entry.operation] : [],
    );
    if (this.#parts.deletes.fits(removals.length)) return bad;
    return [...bad, failure(removals[0], 'too many servers and backends wait for their deletion')];
  }

  async #lane(lane: Lane, on: WorkerIdentity): Promise<Execution> {
    try {
      switch (lane.kind) {
        case 'proxies':
          return await this.#proxies(lane.operations);
        case 'readd':
          return await this.#readd(lane.operation);
        case 'entries':
          return await this.#maps.entries(lane.operations, on);
        case 'deletions':
          return await this.#maps.deletions(lane.operations, on);
        case 'replacement':
          return await this.#maps.replacement(lane.operation, on);
        case 'tls':
          return await this.#tls(lane.operation, on);
      }
    } catch (error: unknown) {
      return refused(lane.first, messageOf(error), false);
    }
  }

  async #proxies(operations: readonly ProxyOperation[]): Promise<Execution> {
    const commands = operations.map(proxyCommands);
    const replies = await this.#parts.worker.run(commands.flat());
    let from = 0;
    const reached = replies.every(({ ok }) => ok) ? Infinity : replies.length;
    const outcomes = operations.map((operation, index) => {
      const count = commands[index]?.length ?? 0;
      const own = replies.slice(from, from + count);
      from += count;
      // One without commands is done when all before it are.
      return {
        operation,
        own,
        complete: own.length === count && from <= reached - Number(count === 0),
      };
    });
    const execution = summarize(outcomes);
    for (const operation of execution.done) this.#settle(operation);
    return execution;
  }

  #settle(operation: Operation): void {
    const { deletes } = this.#parts;
    if (operation.kind === 'server_remove') {
      deletes.add(`${operation.backend}/${operation.server}`);
    } else if (operation.kind === 'backend_remove') deletes.add(backendName(operation.backend));
  }

  /** A server or a backend comes back whose namesake still waits for its deletion: that one has to go first. */
  async #readd(operation: Extract<ProxyOperation, { kind: `${string}_add` }>): Promise<Execution> {
    const { worker, deletes } = this.#parts;
    const { backend } = operation;
    const servers =
      operation.kind === 'server_add'
        ? [`${backend}/${operation.server}`]
        : deletes.names().filter((name) => name.startsWith(`${backend}/`));
    const commands = servers.flatMap((name) => [
      waitRemovable(name, READD_WAIT_MS),
      deleteServer(name),
    ]);
    if (operation.kind === 'backend_add') {
      commands.push(waitBackendRemovable(backend, READD_WAIT_MS), deleteBackend(backend));
    }
    const replies = await worker.run(commands);
    const gone = replies.findLast((reply) => !reply.ok);
    if (gone !== undefined || replies.length < commands.length) {
      return refused(operation, gone?.text ?? 'no reply');
    }
    for (const name of servers) deletes.drop(name);
    if (operation.kind === 'backend_add') deletes.drop(backendName(backend));
    return this.#proxies([operation]);
  }

  async #tls(
    operation: Extract<Lane, { kind: 'tls' }>['operation'],
    on: WorkerIdentity,
  ): Promise<Execution> {
    const { worker, read } = this.#parts;
    const context = { worker, references: worker.references, read, on };
    const bad =
      'list' in operation
        ? await runListOperation(operation, context)
        : await runTlsOperation(operation, context);
    if (bad === undefined) return { done: [operation], failed: [], certain: true };
    return refused(operation, bad.message, bad.certain);
  }
}
