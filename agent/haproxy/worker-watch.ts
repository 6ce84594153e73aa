import { endReload, forgetWorker } from '../apply/holding.ts';
import { persist, promote, type Pod } from '../pod.ts';
import { sameWorker } from './worker-identity.ts';
import type { WorkerInfo } from './worker.ts';

/**
 * Looks which worker answers, and finds out what it runs when it is another one than before. The lock must be held.
 *
 * @returns `null` when none answers
 */
export async function observeWorker(pod: Pod): Promise<WorkerInfo | null> {
  const info = await pod.worker.info();
  if (info === null || sameWorker(pod.holding.worker, info)) return info;
  await adopt(pod, info);
  return info;
}

/**
 * A worker that the agent did not start, because HAProxy was restarted or somebody else reloaded it. It has read what
 * was on disk when it started: that is the applied plan if the tree has not changed since its start (which HAProxy tells
 * in whole seconds) and is what the agent wrote. Else nobody knows.
 */
async function adopt(pod: Pod, info: WorkerInfo): Promise<void> {
  const { holding, tree, log, metrics } = pod;
  const startedAfter = holding.applied !== null && info.startMs >= holding.changedMs;
  if (startedAfter) await tree.verify();
  const first = holding.worker === null;
  forgetWorker(holding);
  holding.reloadOwed = false;
  holding.worker = { pid: info.pid, startMs: info.startMs };
  pod.deletes.clear();
  pod.readBack.clear();
  await pod.plans.restart();
  if (startedAfter && tree.intact) becomeRunning(pod);
  if (!first) metrics.count('haptic_agent_drift_found_total', 'worker');
  log.warn('another worker answers', {
    pid: info.pid,
    running: holding.running,
    applied: holding.applied,
  });
  await persist(pod);
}

/** The new worker runs the applied files, so they are good and a reload onto them is not needed any more. */
function becomeRunning(pod: Pod): void {
  const { holding } = pod;
  holding.running = holding.applied;
  if (holding.pending !== null) {
    endReload(holding, {
      planId: holding.pending.planId,
      ok: true,
      message: 'HAProxy was started anew',
      atMs: Date.now(),
      durationMs: 0,
    });
  }
  promote(pod);
}
