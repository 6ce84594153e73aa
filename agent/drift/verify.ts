import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation } from '../../src/protocol/protocol.ts';
import { observeWorker } from '../haproxy/worker-watch.ts';
import type { WorkerIdentity } from '../haproxy/worker-identity.ts';
import { persist, type Pod } from '../pod.ts';
import type { Deviation } from './worker-image.ts';

/** What one look has found changed behind the agent's back; at most 32 names each. */
export interface Drift {
  /** Files whose content is another one; the next apply writes them anew. */
  readonly files: readonly string[];
  /** Files whose permission bits were set right again. */
  readonly modes: readonly string[];
  /** Servers and maps of the worker that were set right again, or will be by a reload. */
  readonly runtime: readonly string[];
}

const MOST_NAMED = 32;
/** Backends that are looked at without letting an apply in between. */
const BATCH = 100;
/** HAProxy carries out a change of an address a moment after it has answered. */
const SECOND_LOOK_MS = 100;

/**
 * Hashes the tree anew, looks at permission bits and at what the worker holds. Contents are only remembered, so that the
 * next apply repairs them; the rest is repaired here. When everything is as it was left, nothing is written and no
 * command changes anything.
 *
 * @param owe has a reload come, for what no operation repairs; called with the lock held
 */
export async function verify(pod: Pod, owe: () => Promise<void>): Promise<Drift> {
  const { files, modes } = await pod.lock.run(() => verifyFiles(pod));
  const runtime = await verifyWorker(pod, owe);
  return { files, modes, runtime };
}

async function verifyFiles(pod: Pod): Promise<Pick<Drift, 'files' | 'modes'>> {
  const { tree, metrics, log, holding } = pod;
  await observeWorker(pod);
  const modes = await tree.mendModes();
  if (modes.length > 0) {
    metrics.count('haptic_agent_drift_found_total', 'mode', modes.length);
    metrics.count('haptic_agent_drift_repaired_total', 'mode', modes.length);
    log.warn('permissions were not as the agent left them, and are again', named('paths', modes));
  }
  const files = await tree.verify();
  if (files.length > 0) {
    metrics.count('haptic_agent_drift_found_total', 'file', files.length);
    log.warn('files are not as the agent left them', named('paths', files));
    holding.generation += 1;
    await persist(pod);
  }
  return { files: files.slice(0, MOST_NAMED), modes: modes.slice(0, MOST_NAMED) };
}

/** Learns what a worker holds that was not looked at since its start. Cheap when there is nothing to learn. */
export async function keepImage(pod: Pod): Promise<void> {
  const { image, worker, lock, tree } = pod;
  const of = comparable(pod);
  if (of === null || image.isOf(of)) return;
  const names = await lock.run(async () => {
    image.begin(of);
    const [reply] = await worker.run([{ line: 'show backend', accept: /./, tolerate: /./ }]);
    return reply === undefined || 'lost' in reply ? [] : backendNames(reply.text);
  });
  for (const batch of batches(names)) {
    await lock.run(async () => {
      if (comparable(pod) === of) await image.learnBackends(worker, batch);
    });
  }
  for (const [path, { kind }] of [...tree.held]) {
    if (kind !== 'map') continue;
    await lock.run(async () => {
      if (comparable(pod) === of) await image.learnMap(worker, path);
    });
  }
  if (comparable(pod) === of) image.end();
}

async function verifyWorker(pod: Pod, owe: () => Promise<void>): Promise<string[]> {
  const { image, certificates, lock, worker, deletes } = pod;
  await keepImage(pod);
  const of = comparable(pod);
  // While files are not the agent's, a reload would load them; what is left is found the next time.
  if (of === null || !image.isOf(of) || !pod.tree.intact) return [];
  const leaving = (name: string): boolean => deletes.has(name);
  const looks = [
    ...batches(image.backends()).map(
      (names) => () => image.compareBackends(worker, names, leaving),
    ),
    ...image.maps().map((map) => () => image.compareMap(worker, map)),
    () => certificates.compare(worker, pod.tree),
  ];
  const found: string[] = [];
  for (const look of looks) {
    const settled = await lock.run(async () =>
      comparable(pod) === of ? settle(pod, of, look) : { targets: [], repaired: true },
    );
    found.push(...settled.targets);
    if (!settled.repaired) await lock.run(owe);
  }
  certificates.advance();
  return found.slice(0, MOST_NAMED);
}

interface Settled {
  readonly targets: readonly string[];
  /** False: only a reload leads back. */
  readonly repaired: boolean;
}

/** Looks, twice where something differs, and repairs. The lock must be held. */
async function settle(
  pod: Pod,
  of: WorkerIdentity,
  look: () => Promise<Deviation[]>,
): Promise<Settled> {
  const first = new Set((await look()).map(({ target }) => target));
  if (first.size === 0) return { targets: [], repaired: true };
  await sleep(SECOND_LOOK_MS);
  const deviations = (await look()).filter(({ target }) => first.has(target));
  if (deviations.length === 0) return { targets: [], repaired: true };
  const targets = deviations.map(({ target }) => target);
  pod.metrics.count('haptic_agent_drift_found_total', 'runtime', deviations.length);
  pod.log.warn('the worker is not as the agent left it', named('targets', targets));
  const repaired = await repair(pod, of, deviations);
  if (repaired) {
    pod.metrics.count('haptic_agent_drift_repaired_total', 'runtime', deviations.length);
  }
  return { targets, repaired };
}

/**
 * Runs what leads back. It is not counted among the operations of the worker, which then holds again what the
 * operations counted so far have made of it.
 *
 * @returns false when only a reload leads back
 */
async function repair(
  pod: Pod,
  of: WorkerIdentity,
  deviations: readonly Deviation[],
): Promise<boolean> {
  const operations: Operation[] = [];
  for (const { repairs } of deviations) {
    if (repairs === undefined) return false;
    operations.push(...repairs);
  }
  const instructions = operations.map((operation) => ({ ok: true, operation }) as const);
  const { failed } = await pod.executor.run(instructions, of);
  for (const { kind, target, message = '' } of failed) {
    pod.log.warn('the worker cannot be repaired by an operation', { kind, target, message });
  }
  return failed.length === 0;
}

/** The worker whose state is known and waits for no reload, which would repair it in any case. */
const comparable = ({ holding }: Pod): WorkerIdentity | null =>
  holding.running === null || holding.pending !== null || holding.reloadOwed
    ? null
    : holding.worker;

/** Reads the answer to `show backend`: a heading, and a name each. */
const backendNames = (text: string): string[] =>
  text
    .split('\n')
    .slice(1)
    .filter((name) => name !== '');

const batches = (names: readonly string[]): (readonly string[])[] =>
  Array.from({ length: Math.ceil(names.length / BATCH) }, (_, at) =>
    names.slice(at * BATCH, (at + 1) * BATCH),
  );

const named = (
  member: 'paths' | 'targets',
  names: readonly string[],
): Record<string, string[]> => ({
  [member]: names.slice(0, MOST_NAMED),
});
