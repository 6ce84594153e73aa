import type { Operation } from '../../src/protocol/protocol.ts';
import {
  ENTRY_NOT_FOUND,
  addEntries,
  deleteEntry,
  setEntry,
  type EntryOperation,
} from './commands.ts';
import { outcomeOf, refused, summarize, type Execution, type Outcome } from './outcome.ts';
import type { Command, Reply, Worker } from './worker.ts';
import type { WorkerIdentity } from './worker-identity.ts';

type MapOperation = Extract<Operation, { readonly map: string }>;
type Deletion = Extract<Operation, { kind: 'map_delete' }>;
type Replacement = Extract<Operation, { kind: 'map_replace' }>;

const MAX_DUPLICATES = 64;

/** Operations on maps. What concerns a map that the worker has not loaded is done: its file is all there is. */
export class MapLane {
  readonly #worker: Worker;

  constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** A key that is there gets the value, one that is not is added: never twice, never gone in between. */
  async entries(operations: readonly EntryOperation[], on: WorkerIdentity): Promise<Execution> {
    const references = await this.#references(operations, on);
    const loaded = operations.filter(({ map }) => references.has(map));
    const reference = (map: string): string => references.get(map) ?? map;
    const replies = await this.#worker.run(
      loaded.map(({ map, key, value }) => setEntry(reference(map), key, value)),
    );
    const absent = loaded.filter((_, index) => ENTRY_NOT_FOUND.test(replies[index]?.text ?? ''));
    const set = summarize(loaded.map((operation, index) => outcomeOf(operation, replies[index])));
    if (set.failed.length > 0) {
      const without = set.done.filter((operation) => !absent.some((one) => one === operation));
      return { ...set, done: without };
    }
    const added = await this.#worker.run(additions(absent, reference));
    const bad = added.find((reply) => !reply.ok);
    if (bad === undefined) return { done: operations, failed: [], certain: true };
    return refused(absent[0], bad.text, false);
  }

  async deletions(operations: readonly Deletion[], on: WorkerIdentity): Promise<Execution> {
    const references = await this.#references(operations, on);
    const loaded = operations.filter(({ map }) => references.has(map));
    const outcomes: Outcome[] = [];
    let rest = loaded;
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
    const execution = summarize(outcomes);
    return execution.failed.length > 0 ? execution : { ...execution, done: operations };
  }

  async replacement(operation: Replacement, on: WorkerIdentity): Promise<Execution> {
    const reference = (await this.#references([operation], on)).get(operation.map);
    const bad =
      reference === undefined ? undefined : await this.#replace(reference, operation.entries);
    if (bad === undefined) return { done: [operation], failed: [], certain: true };
    return refused(operation, bad.text, !bad.committing);
  }

  /** @returns what went wrong; until the commit nobody sees anything of it */
  async #replace(
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

  /** Of the maps that the worker has loaded. */
  async #references(
    operations: readonly MapOperation[],
    on: WorkerIdentity,
  ): Promise<ReadonlyMap<string, string>> {
    const references = new Map<string, string>();
    for (const map of new Set(operations.map((operation) => operation.map))) {
      const reference = await this.#worker.mapReference(map, on);
      if (reference !== undefined) references.set(map, reference);
    }
    return references;
  }
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
