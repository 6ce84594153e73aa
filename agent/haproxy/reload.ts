import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS, type Digest } from '../../src/protocol/protocol.ts';
import { messageOf } from '../failures.ts';
import { endReload, forgetWorker, wentBack, type LastReload } from '../apply/holding.ts';
import { persist, promote, type Pod } from '../pod.ts';
import { Transition } from '../files/transition.ts';
import { sameWorker } from './worker-identity.ts';
import type { WorkerInfo } from './worker.ts';

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
  const isNew = await newcomerTest(pod);
  const startedMs = Date.now();
  const answer = await pod.master.reload();
  if (answer.kind === 'down') return { kind: 'down' };
  holding.lastReloadMs = startedMs;
  const worker = answer.kind === 'done' && isNew ? await newWorker(pod, isNew) : null;
  const message = 'message' in answer ? answer.message : 'the new worker does not answer';
  const result: LastReload = {
    planId,
    ok: worker !== null,
    message: worker === null ? message : '',
    atMs: startedMs,
    durationMs: Date.now() - startedMs,
  };
  metrics.count('haptic_agent_reloads_total', worker === null ? 'failed' : 'ok');
  metrics.count('haptic_agent_reload_seconds_total', '', (Date.now() - startedMs) / 1000);
  if (worker !== null) {
    await started(pod, { worker, result });
    log.info('reloaded', { planId, pid: worker.pid, ms: Date.now() - startedMs });
    return { kind: 'done' };
  }
  log.warn('reload failed', { planId, reason: answer.kind });
  if (answer.kind === 'refused') pod.knownBad.add(planId, message, performance.now());
  else forgetWorker(holding);
  await restoreLastKnownGood(pod, result);
  return { kind: 'failed', message };
}

/**
 * Puts the last known good files back: those a worker of this pod was started from, or that the gate has passed. The
 * worker is not touched. The lock must be held and everything persisted.
 *
 * @param result of the reload that made it necessary; it is told when the files are back
 */
export async function restoreLastKnownGood(pod: Pod, result: LastReload): Promise<void> {
  const { holding, tree, workshop, log } = pod;
  const changes = [...holding.lkgDelta].map(([path, next]) => ({ path, next }));
  pod.metrics.count('haptic_agent_rollbacks_total', 'lkg');
  holding.generation += 1;
  let matches = false;
  try {
    const transition = await Transition.begin(tree, workshop, {
      generation: holding.generation,
      from: holding.applied,
      to: holding.lkg,
      operations: holding.unsaved,
      changes,
    });
    await transition.stageKept();
    await transition.install();
    matches = await tree.matches(changes);
  } catch (error: unknown) {
    log.error('the last known good files cannot be put back', { error: messageOf(error) });
  }
  wentBack(holding, matches);
  endReload(holding, result);
  log.warn('went back to the last known good files', {
    lkg: holding.lkg,
    applied: holding.applied,
  });
  await persist(pod);
}

async function started(
  pod: Pod,
  { worker, result }: { readonly worker: WorkerInfo; readonly result: LastReload },
): Promise<void> {
  const { holding } = pod;
  endReload(holding, result);
  holding.running = pod.tree.intact ? result.planId : null; // it has read what somebody else wrote
  holding.workerOperations = 0;
  holding.reloadOwed = false;
  holding.worker = { pid: worker.pid, startMs: worker.startMs };
  promote(pod);
  pod.deletes.clear();
  pod.readBack.clear();
  await pod.plans.restart();
}

/** @returns what tells a new worker from those of now; `undefined` when neither worker nor master answers */
async function newcomerTest(pod: Pod): Promise<((info: WorkerInfo) => boolean) | undefined> {
  const before = await pod.worker.info();
  if (before !== null) return (info) => !sameWorker(info, before);
  const pids = await pod.master.workers();
  return pids === undefined ? undefined : ({ pid }) => !pids.includes(pid);
}

/** @returns `null` when no other worker answers in time */
async function newWorker(
  pod: Pod,
  isNew: (info: WorkerInfo) => boolean,
): Promise<WorkerInfo | null> {
  const deadline = performance.now() + LIMITS.reloadTimeoutMs;
  let steady = 0;
  let last: WorkerInfo | null = null;
  while (performance.now() < deadline) {
    const info = await pod.worker.info(1_000);
    steady = info !== null && isNew(info) && sameWorker(info, last) ? steady + 1 : 0;
    last = info;
    if (steady >= STEADY_ANSWERS) return info;
    if (steady === 0) await sleep(POLL_MS);
  }
  return null;
}
