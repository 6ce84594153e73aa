/** Operations of a plan on a real worker, sent as the agent sends them. */
import { contentsBelow } from '../../agent/haproxy/contents.ts';
import { DeleteQueue } from '../../agent/haproxy/deletes.ts';
import { Executor } from '../../agent/haproxy/execute.ts';
import { Worker } from '../../agent/haproxy/worker.ts';
import type { Operation } from '../../src/protocol/protocol.ts';
import { waitFor } from './haproxy.ts';

/** Which worker, and the directory its files are relative to. */
export interface OnWorker {
  readonly workerSocket: string;
  readonly dir: string;
}

/**
 * Executes operations in order, and waits until servers that were removed are gone.
 *
 * @throws with HAProxy's words when it refuses one
 */
export async function executeOperations(
  { workerSocket, dir }: OnWorker,
  operations: readonly Operation[],
): Promise<void> {
  const worker = new Worker(workerSocket, dir);
  const deletes = new DeleteQueue();
  const identity = await worker.info();
  if (identity === null) throw new Error('no worker answers');
  const instructions = operations.map((operation) => ({ ok: true, operation }) as const);
  const { done, failed } = await new Executor({ worker, deletes, read: contentsBelow(dir) }).run(
    instructions,
    identity,
  );
  if (failed.length > 0 || done.length < operations.length) {
    throw new Error(`${done.length} of ${operations.length} done: ${JSON.stringify(failed)}`);
  }
  const gone = async (): Promise<boolean> => {
    const { stuck } = await deletes.attempt(worker);
    if (stuck.length > 0) throw new Error(`servers stay: ${stuck.join('; ')}`);
    return deletes.size === 0;
  };
  await waitFor(gone, { what: `${deletes.size} servers to go` });
}
