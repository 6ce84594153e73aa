import { emptyFolder } from '../files/disk.ts';
import { forgetWorker, keepFormer } from './holding.ts';
import { persist, type Pod } from '../pod.ts';
import type { Loaded } from '../files/storage.ts';
import { Transition, type JournalRecord } from '../files/transition.ts';
import type { Change } from '../files/tree.ts';
import { sameWorker } from '../haproxy/worker-identity.ts';

/**
 * Finds out what the pod holds after a start, whatever the process before was doing when it ended. Afterwards `applied`
 * names the tree before the last apply, the tree after it, or nothing.
 */
export async function recover(pod: Pod): Promise<void> {
  const { holding, tree, workshop, plans, storage, log, metrics } = pod;
  const loaded = await storage.load(holding, tree);
  await workshop.objects.open();
  await plans.open();
  const record = await workshop.journal();
  if (record !== undefined && loaded.known && record.generation > holding.generation) {
    await recoverTransition(pod, record);
  } else if (record !== undefined && !loaded.known) {
    await recoverFirst(pod, record);
  }
  const differing = await tree.verify();
  if (differing.length > 0) {
    log.warn('files are not as the agent left them', { paths: differing.slice(0, 32) });
    metrics.count('haptic_agent_drift_found_total', 'file', differing.length);
    holding.applied = null;
    holding.generation += 1;
  }
  await recoverWorker(pod, { loaded, tookOperations: record?.operations === true });
  await emptyFolder(workshop.stage);
  await persist(pod);
  log.info('recovered', { applied: holding.applied, running: holding.running, lkg: holding.lkg });
}

async function recoverWorker(
  pod: Pod,
  { loaded, tookOperations }: { readonly loaded: Loaded; readonly tookOperations: boolean },
): Promise<void> {
  const { holding, deletes } = pod;
  const worker = await pod.worker.info();
  if (tookOperations && !loaded.matched && worker !== null) {
    // It may have taken them, whatever the clock says about its start.
    holding.worker = { pid: worker.pid, startMs: worker.startMs };
  }
  if (!sameWorker(holding.worker, worker)) return;
  for (const name of loaded.pendingDeletes) deletes.add(name);
}

async function recoverTransition(pod: Pod, record: JournalRecord): Promise<void> {
  const { holding, tree, workshop, log } = pod;
  const former = record.changes.map(({ path, previous }) => ({ path, next: previous }));
  log.warn('an apply was interrupted', { from: record.from, to: record.to });
  if (await tree.matches(record.changes)) {
    remember(pod, record.changes);
    holding.applied = record.to;
    keepFormer(holding, record.changes);
  } else {
    const intact = await Transition.resume(tree, workshop, record).undo();
    remember(pod, former);
    holding.applied = intact ? record.from : null;
    if (!intact) keepFormer(holding, record.changes);
  }
  holding.generation = record.generation;
  holding.changedMs = Date.now();
  if (record.operations) forgetWorker(holding);
}

/** Interrupted in the very first apply: what stood there before was not the agent's. */
async function recoverFirst(pod: Pod, record: JournalRecord): Promise<void> {
  await Transition.resume(pod.tree, pod.workshop, record).undo();
  remember(
    pod,
    record.changes.map(({ path }) => ({ path, next: null })),
  );
  pod.holding.generation = record.generation;
  pod.holding.changedMs = Date.now();
}

/** What the agent holds at these paths, as far as it wrote it. */
function remember(pod: Pod, changes: readonly Change[]): void {
  for (const { path, next } of changes) {
    if (next === null || next.foreign === true) pod.tree.held.delete(path);
    else pod.tree.held.set(path, { digest: next.digest, size: next.size, kind: next.kind });
  }
}
