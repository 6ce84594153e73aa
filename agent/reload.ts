import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS, type Digest } from '../src/protocol/protocol.ts';
import { messageOf } from './failures.ts';
import { forgetWorker } from './holding.ts';
import { persist, promote, type Pod } from './pod.ts';
import { Transition } from './transition.ts';
import { sameWorker, type WorkerInfo } from './worker.ts';

/** What came of a reload. `down`: HAProxy does not run, so nothing was tried. */
export type ReloadResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'down' };

const POLL_MS = 20;
/** Answers in a row that must come from the new worker: the old one may still take a connection or two. */
const STEADY_ANSWERS = 3;

/**
 * Has HAProxy read the files on disk, which are those of `planId`, and waits for the new worker. When it does not come,
 * the last known good files are put back. The lock must be held and everything persisted.
 */
export async function reloadNow(pod: Pod, planId: Digest): Promise<ReloadResult> {
  const { holding, log, metrics } = pod;
  const before = await pod.worker.info();
  const startedMs = Date.now();
  const answer = await pod.master.reload();
  if (answer.kind === 'down') return { kind: 'down' };
  holding.lastReloadMs = startedMs;
  const worker = answer.kind === 'done' ? await newWorker(pod, before) : null;
  const message = 'message' in answer ? answer.message : 'the new worker does not answer';
  holding.lastReload = {
    planId,
    ok: worker !== null,
    message: worker === null ? message : '',
    atMs: startedMs,
    durationMs: Date.now() - startedMs,
  };
  metrics.count('haptic_agent_reloads_total', worker === null ? 'failed' : 'ok');
  metrics.count('haptic_agent_reload_duration_seconds_sum', '', (Date.now() - startedMs) / 1000);
  if (worker !== null) {
    await started(pod, { planId, worker });
    log.info('reloaded', { planId, pid: worker.pid, ms: Date.now() - startedMs });
    return { kind: 'done' };
  }
  log.warn('reload failed', { planId, reason: answer.kind });
  if (answer.kind === 'refused') pod.knownBad.add(planId, message, performance.now());
  else forgetWorker(holding);
  await restoreLastKnownGood(pod);
  return { kind: 'failed', message };
}

/**
 * Puts the last known good files back: those a worker of this pod was started from, or that the gate has passed. The
 * worker is not touched. The lock must be held and everything persisted.
 */
export async function restoreLastKnownGood(pod: Pod): Promise<void> {
  const { holding, tree, workshop, log } = pod;
  const changes = [...holding.lkgDelta].map(([path, next]) => ({ path, next }));
  pod.metrics.count('haptic_agent_rollbacks_total', 'lkg');
  holding.generation += 1;
  try {
    const transition = await Transition.begin(tree, workshop, {
      generation: holding.generation,
      from: holding.applied,
      to: holding.lkg,
      operations: false,
      changes,
    });
    await transition.stageKept();
    await transition.install();
    holding.applied = (await tree.matches(changes)) ? holding.lkg : null;
  } catch (error: unknown) {
    log.error('the last known good files cannot be put back', { error: messageOf(error) });
    holding.applied = null;
  }
  holding.lkgDelta.clear();
  holding.treeChangedMs = Date.now();
  log.warn('went back to the last known good files', {
    lkg: holding.lkg,
    applied: holding.applied,
  });
  await persist(pod);
}

async function started(
  pod: Pod,
  { planId, worker }: { readonly planId: Digest; readonly worker: WorkerInfo },
): Promise<void> {
  const { holding } = pod;
  holding.running = planId;
  holding.workerOperations = 0;
  holding.worker = { pid: worker.pid, startMs: worker.startMs };
  promote(pod);
  pod.deletes.clear();
  await pod.plans.restart();
}

/** @returns `null` when no other worker answers in time */
async function newWorker(pod: Pod, before: WorkerInfo | null): Promise<WorkerInfo | null> {
  const deadline = performance.now() + LIMITS.reloadTimeoutMs;
  let steady = 0;
  let last: WorkerInfo | null = null;
  while (performance.now() < deadline) {
    const info = await pod.worker.info(1_000);
    steady = info !== null && !sameWorker(info, before) && sameWorker(info, last) ? steady + 1 : 0;
    last = info;
    if (steady >= STEADY_ANSWERS) return info;
    if (steady === 0) await sleep(POLL_MS);
  }
  return null;
}
