import { OPERATION_KINDS, PROTOCOL_VERSION, type AgentState } from '../../src/protocol/protocol.ts';
import { rolesOf } from '../apply/holding.ts';
import { persist, type Pod } from '../pod.ts';
import { AGENT_VERSION } from '../version.ts';
import { observeWorker } from '../haproxy/worker-watch.ts';
import { sameWorker, type WorkerInfo } from '../haproxy/worker.ts';

/** What this agent can do beyond version 1 of the protocol; empty words are never removed. */
const FEATURES: readonly string[] = ['file-patch', 'revert', 'verify', 'known-bad'];

/** The answer to `GET /v1/state`. */
export async function readState(pod: Pod): Promise<AgentState> {
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
    haproxy: {
      version: info?.version ?? '',
      workerPid: info?.pid ?? 0,
      workerStartMs: info?.startMs ?? 0,
      oldWorkers: info === null ? 0 : oldWorkers,
    },
    files: [...tree.held].map(([path, { digest, size }]) => ({ path, digest, size })),
    pendingReload:
      pending === null
        ? null
        : { planId: pending.planId, inMs: Math.max(0, pending.dueMs - Date.now()) },
    pendingDeletes: deletes.size,
    lastReload: holding.lastReload,
  };
}

/** Hashes the tree anew and looks at the worker, so that the next {@link readState} tells what is really there. */
export function verify(pod: Pod): Promise<void> {
  return pod.lock.run(async () => {
    await observeWorker(pod);
    const differing = await pod.tree.verify();
    if (differing.length === 0) return;
    pod.metrics.count('haptic_agent_drift_found_total', 'file', differing.length);
    pod.log.warn('files are not as the agent left them', { paths: differing.slice(0, 32) });
    pod.holding.generation += 1;
    await persist(pod);
  });
}

/** While an apply or a reload runs, a new worker is its own doing and is not looked at twice. */
async function currentWorker(pod: Pod): Promise<WorkerInfo | null> {
  const info = await pod.worker.info();
  if (info === null || sameWorker(info, pod.holding.worker) || pod.lock.busy) return info;
  return pod.lock.run(() => observeWorker(pod));
}
