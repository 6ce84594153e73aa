import { LIMITS } from '../../src/protocol/protocol.ts';
import { deleteBackend, deleteServer } from './commands.ts';
import type { Command, Reply, Worker } from './worker.ts';

const BACKEND = 'backend ';

/** Name of a backend in the queue; a server is called `backend/server`. */
export const backendName = (backend: string): string => BACKEND + backend;

/** What is left of a server or backend between its removal and its deletion. */
interface Waiting {
  attempts: number;
  /** Milliseconds of the monotonic clock. */
  notBefore: number;
}

/** What one round over the queue came to. */
export interface DeleteRound {
  readonly deleted: number;
  /** Servers that HAProxy will never delete at run time, with its words: only a reload removes them. */
  readonly stuck: readonly string[];
}

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 5_000;
const BATCH = 100;

/**
 * Servers that take no traffic any more and wait for their last connections to end, which HAProxy wants before it
 * deletes one. Lives as long as the worker; a reload makes it empty.
 */
export class DeleteQueue {
  readonly #waiting = new Map<string, Waiting>();
  /** Nothing is tried before, on the monotonic clock: the worker did not answer. */
  #resumeMs = 0;

  get size(): number {
    return this.#waiting.size;
  }

  names(): readonly string[] {
    return [...this.#waiting.keys()];
  }

  has(name: string): boolean {
    return this.#waiting.has(name);
  }

  /** @returns whether so many more fit */
  fits(more: number): boolean {
    return this.#waiting.size + more <= LIMITS.pendingDeletes;
  }

  add(name: string): void {
    this.#waiting.set(name, { attempts: 0, notBefore: performance.now() });
  }

  drop(name: string): void {
    this.#waiting.delete(name);
  }

  clear(): void {
    this.#waiting.clear();
    this.#resumeMs = 0;
  }

  /** Tries those whose time has come, up to the first that is not answered. Needs the lock: a server of the same name must not be added meanwhile. */
  async attempt(worker: Worker): Promise<DeleteRound> {
    const now = performance.now();
    if (now < this.#resumeMs) return { deleted: 0, stuck: [] };
    const due = [...this.#waiting]
      .filter(([, waiting]) => waiting.notBefore <= now)
      .slice(0, BATCH);
    const stuck: string[] = [];
    let deleted = 0;
    for (const [name, waiting] of due) {
      const [reply] = await worker.run([deletionOf(name)]);
      if (reply === undefined || 'lost' in reply) {
        this.#resumeMs = performance.now() + LONGEST_RETRY_MS; // others would wait for it in vain as well
        break;
      }
      if (reply.ok) {
        this.#waiting.delete(name);
        deleted += 1;
      } else if (mayCome(reply)) {
        waiting.attempts += 1;
        waiting.notBefore = now + retryMs(waiting.attempts);
      } else {
        this.#waiting.delete(name);
        stuck.push(`${name}: ${reply.text}`);
      }
    }
    return { deleted, stuck };
  }
}

const retryMs = (attempts: number): number =>
  Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts - 1, 10));

const deletionOf = (name: string): Command =>
  name.startsWith(BACKEND) ? deleteBackend(name.slice(BACKEND.length)) : deleteServer(name);

/** Something still uses it, or a backend still has servers that wait as well. */
const mayCome = ({ text }: Reply): boolean =>
  /connections attached|without server can be deleted|still (?:has|in use)|sessions? |streams? /i.test(
    text,
  );
