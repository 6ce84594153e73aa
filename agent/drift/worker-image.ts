import type { Operation } from '../../src/protocol/protocol.ts';
import { sameWorker, type WorkerIdentity } from '../haproxy/worker-identity.ts';
import type { Command, Worker } from '../haproxy/worker.ts';
import { MapText, mapRepairs, readEntries } from './map-text.ts';
import {
  compactRows,
  parseRows,
  printRows,
  rowAfter,
  serverRepairs,
  type ServerRow,
} from './server-row.ts';

/** What somebody else has changed, and the way back. */
export interface Deviation {
  /** `backend/server` or the path of a map. */
  readonly target: string;
  /** `undefined`: only a reload leads back. */
  readonly repairs: readonly Operation[] | undefined;
}

type ServerOperation = Extract<Operation, { readonly server: string }>;

const ask = (line: string): Command => ({ line, accept: /./, tolerate: /./ });

/**
 * What one worker holds as far as operations can change it: what it said of itself after its start, and the operations
 * since. Compared with what it says later, it tells what somebody else has done. It is kept in short lines: 50,000 servers
 * are about 3 MB.
 */
export class WorkerImage {
  #of: WorkerIdentity | null = null;
  #complete = false;
  readonly #backends = new Map<string, string>();
  readonly #maps = new Map<string, MapText>();

  /** Whether everything of this worker was learnt. */
  isOf(worker: WorkerIdentity): boolean {
    return this.#complete && sameWorker(this.#of, worker);
  }

  backends(): readonly string[] {
    return [...this.#backends.keys()];
  }

  maps(): readonly string[] {
    return [...this.#maps.keys()];
  }

  /** Nothing is known of this worker yet. */
  begin(of: WorkerIdentity): void {
    this.#of = of;
    this.#complete = false;
    this.#backends.clear();
    this.#maps.clear();
  }

  /** Everything was learnt. */
  end(): void {
    this.#complete = true;
  }

  /** Takes what these backends are now as what they shall be. The lock must be held. */
  async learnBackends(worker: Worker, names: readonly string[]): Promise<void> {
    for (const [name, rows] of await readServers(worker, names)) {
      if (rows !== undefined) this.#backends.set(name, rows);
    }
  }

  /** The same of a map, when the worker has loaded it. The lock must be held. */
  async learnMap(worker: Worker, map: string): Promise<void> {
    const entries = await this.#readMap(worker, map);
    if (entries !== undefined) this.#maps.set(map, new MapText(entries));
  }

  /** These were executed. */
  expect(operations: readonly Operation[]): void {
    const opened = new Map<string, Map<string, ServerRow>>();
    for (const operation of operations) {
      if ('map' in operation) this.#maps.get(operation.map)?.expect(operation);
      else if ('server' in operation) this.#expectServer(opened, operation);
      else if (operation.kind === 'backend_add') this.#backends.set(operation.backend, '');
      else if (operation.kind === 'backend_remove') {
        opened.delete(operation.backend);
        this.#backends.delete(operation.backend);
      }
    }
    for (const [backend, rows] of opened) {
      this.#backends.set(backend, printRows(rows.values()));
    }
  }

  /**
   * Compares servers of these backends. The lock must be held.
   *
   * @param leaving whether a `backend/server` waits for its deletion
   */
  async compareBackends(
    worker: Worker,
    names: readonly string[],
    leaving: (name: string) => boolean,
  ): Promise<Deviation[]> {
    const deviations: Deviation[] = [];
    for (const [backend, rows] of await readServers(worker, names)) {
      const shall = this.#backends.get(backend);
      if (shall === rows || shall === undefined) continue;
      const wanted = byName(shall);
      const real = byName(rows ?? '');
      for (const name of new Set([...wanted.keys(), ...real.keys()])) {
        const target = `${backend}/${name}`;
        const repairs = serverRepairs(backend, wanted.get(name), real.get(name));
        if (repairs?.length !== 0 && !leaving(target)) deviations.push({ target, repairs });
      }
    }
    return deviations;
  }

  /** Compares a map. The lock must be held. */
  async compareMap(worker: Worker, map: string): Promise<Deviation[]> {
    const wanted = this.#maps.get(map);
    const real = wanted === undefined ? undefined : await this.#readMap(worker, map);
    if (wanted === undefined || real === undefined) return [];
    const repairs = mapRepairs(map, wanted.lines(), real);
    return repairs.length === 0 ? [] : [{ target: map, repairs }];
  }

  #expectServer(opened: Map<string, Map<string, ServerRow>>, operation: ServerOperation): void {
    const learnt = this.#backends.get(operation.backend);
    if (learnt === undefined) return; // not learnt yet, and then it is learnt with this
    const rows = opened.get(operation.backend) ?? byName(learnt);
    opened.set(operation.backend, rows);
    const after = rowAfter(rows.get(operation.server), operation);
    if (after === undefined) rows.delete(operation.server);
    else rows.set(operation.server, after);
  }

  async #readMap(worker: Worker, map: string): Promise<string[] | undefined> {
    if (this.#of === null) return undefined;
    const reference = await worker.mapReference(map, this.#of).catch(() => undefined);
    if (reference === undefined) return undefined;
    const [reply] = await worker.run([ask(`show map ${reference}`)]);
    return reply === undefined || 'lost' in reply ? undefined : readEntries(reply.text);
  }
}

const byName = (compact: string): Map<string, ServerRow> =>
  new Map(parseRows(compact).map((row) => [row.name, row]));

/** Servers by backend; `undefined`: the worker tells nothing of it. Backends after a lost answer are left out. */
async function readServers(
  worker: Worker,
  names: readonly string[],
): Promise<[string, string | undefined][]> {
  const replies = await worker.run(names.map((name) => ask(`show servers state ${name}`)));
  return replies.flatMap((reply, at): [string, string | undefined][] => {
    const name = names[at];
    return name === undefined || 'lost' in reply ? [] : [[name, compactRows(reply.text)]];
  });
}
