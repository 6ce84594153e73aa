import type { AgentState } from '../../src/protocol/answers.ts';
import { OPERATION_KINDS, PROTOCOL_VERSION } from '../../src/protocol/protocol.ts';
import type { Drift } from '../drift/verify.ts';
import { rolesOf, type PendingReload } from '../apply/holding.ts';
import type { Pod } from '../pod.ts';
import { AGENT_VERSION } from '../version.ts';
import { observeWorker } from '../haproxy/worker-watch.ts';
import { sameWorker } from '../haproxy/worker-identity.ts';
import type { WorkerInfo } from '../haproxy/worker.ts';

/** What this agent can do beyond version 1 of the protocol; empty words are never removed. */
const FEATURES: readonly string[] = ['file-patch', 'revert', 'verify', 'known-bad'];

/**
 * The answer to `GET /v1/state`.
 *
 * @param drift what a verification before it has found
 */
export async function readState(pod: Pod, drift?: Drift): Promise<AgentState> {
  const { holding, tree, deletes, metrics } = pod;
  const info = await currentWorker(pod);
  const workers = (await pod.master.workers()) ?? [];
  const oldWorkers = workers.filter((pid) => pid !== info?.pid).length;
  metrics.set('haptic_agent_workers', workers.length);
  const { pending } = holding;
  return {
    protocol: PROTOCOL_VERSION,
    agentVersion: AGENT_VERSION,
    operationKinds: OPERATION_KINDS,
    features: FEATURES,
    roles: rolesOf(holding),
    highestEpoch: holding.highestEpoch,
    haproxy: haproxyOf(info, oldWorkers),
    files: [...tree.held].map(([path, { digest, size }]) => ({ path, digest, size })),
    pendingReload: pending === null ? null : announced(pending),
    pendingDeletes: deletes.size,
    lastReload: holding.lastReload,
    ...(drift === undefined ? {} : { drift: { modes: drift.modes, runtime: drift.runtime } }),
  };
}

const haproxyOf = (info: WorkerInfo | null, oldWorkers: number): AgentState['haproxy'] =>
  info === null
    ? { version: '', workerPid: 0, workerStartMs: 0, oldWorkers: 0 }
    : { version: info.version, workerPid: info.pid, workerStartMs: info.startMs, oldWorkers };

const announced = ({ planId, dueMs }: PendingReload): AgentState['pendingReload'] => ({
  planId,
  inMs: Math.max(0, dueMs - Date.now()),
});

/** While an apply or a reload runs, a new worker is its own doing and is not looked at twice. */
async function currentWorker(pod: Pod): Promise<WorkerInfo | null> {
  const info = await pod.worker.info();
  if (info === null || sameWorker(info, pod.holding.worker) || pod.lock.busy) return info;
  return pod.lock.run(() => observeWorker(pod));
}
