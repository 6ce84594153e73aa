import type { ApplyOutcome, OperationResult, OutcomeKind } from '../../src/protocol/answers.ts';
import type { ApplyCall } from './apply-call.ts';
import { NOTHING, type Execution } from '../haproxy/outcome.ts';
import { BadRequest, ClientGone, Conflict, Rejection, messageOf } from '../failures.ts';
import { checkBaseline, checkContent, checkEpoch, isRestore } from './fence.ts';
import { forgetWorker, keepFormer, rolesOf, wentBack } from './holding.ts';
import type { CheckedManifest } from '../http/manifest.ts';
import type { Pacer } from '../haproxy/pacer.ts';
import { persist, promote, type Pod } from '../pod.ts';
import { reloadNow } from '../haproxy/reload.ts';
import { drainBody, stageBody } from '../files/stage.ts';
import { Transition } from '../files/transition.ts';
import type { Change } from '../files/tree.ts';
import { observeWorker } from '../haproxy/worker-watch.ts';
import type { WorkerInfo } from '../haproxy/worker.ts';

/** From so many bytes of new files on, operations do not wait until those are written. */
const EARLY_BYTES = 64 * 1024;

/** The steps of one apply and their times. The lock is held. */
export class ApplyRun {
  readonly #pod: Pod;
  readonly #pacer: Pacer;
  readonly #call: ApplyCall;
  readonly #began = performance.now();
  readonly #times = { stage: 0, write: 0, operations: 0, reload: 0, confirmed: 0 };
  #failed: readonly OperationResult[] = [];
  #executed = 0;
  #wantsReload = false;

  constructor(pod: Pod, pacer: Pacer, call: ApplyCall) {
    this.#pod = pod;
    this.#pacer = pacer;
    this.#call = call;
  }

  async execute(): Promise<ApplyOutcome> {
    const { manifest, isGone } = this.#call;
    const { holding, tree } = this.#pod;
    if (isGone()) throw new ClientGone();
    const worker = await observeWorker(this.#pod);
    await this.#fence();
    this.#wantsReload = this.#needsReload();
    this.#checkKnownBad();
    const changes = this.#restoring
      ? [...holding.lkgDelta].map(([path, next]) => ({ path, next }))
      : tree.changesTo(manifest.files);
    const instructions = this.#instructions();
    if (changes.length + instructions.length === 0) {
      await this.#idle();
    } else {
      await this.#change(changes, worker);
    }
    if (this.#wantsReload || worker === null || this.#failed.length > 0)
      return this.#reload(worker);
    this.#pacer.withdraw(manifest.planId); // the operations reached the plan, so it needs no reload
    this.#confirm();
    return this.#outcome(kindOf(changes.length, instructions.length));
  }

  get #restoring(): boolean {
    return isRestore(this.#call.manifest);
  }

  rejected(error: Rejection): ApplyOutcome {
    const { stage, message } = error;
    return { ...this.#outcome('rejected'), error: { stage, message } };
  }

  async #fence(): Promise<void> {
    const { manifest } = this.#call;
    const { holding, storage, deletes, tree } = this.#pod;
    checkEpoch(manifest, holding);
    const { epoch, leader } = manifest;
    if (epoch > holding.highestEpoch || (holding.leader === '' && leader !== '')) {
      holding.highestEpoch = epoch;
      holding.leader = leader;
      await storage.saveState(holding, deletes.names(), { durable: true });
    }
    this.#promote();
    // Even when the rest of the fence refuses: what is to be reverted must not be loaded meanwhile.
    if (manifest.mode === 'revert') holding.pending = null;
    checkBaseline(manifest, holding);
    if (this.#restoring && manifest.planId !== holding.lkg) throw new Conflict('baseline_mismatch');
    checkContent(manifest, tree);
  }

  /** What the gate has passed is good, unless this HAProxy has still to load it: it may refuse what no check can see. */
  #promote(): void {
    const { holding } = this.#pod;
    const { validated } = this.#call.manifest;
    if (validated === undefined || validated !== holding.applied || validated === holding.lkg)
      return;
    if (holding.pending === null) promote(this.#pod);
  }

  #checkKnownBad(): void {
    const { planId } = this.#call.manifest;
    if (!this.#wantsReload) return;
    const message = this.#pod.knownBad.find(planId, performance.now());
    if (message !== undefined) throw new Rejection('reload', message);
  }

  #needsReload(): boolean {
    const { mode, reload, planId } = this.#call.manifest;
    if (mode === 'reload') return true;
    const { running, workerOperations } = this.#pod.holding;
    const runsAlready = mode === 'revert' && running === planId && workerOperations === 0;
    return reload && !runsAlready;
  }

  /** Nothing changes but the name of what is held. */
  async #idle(): Promise<void> {
    const { holding, plans, tree } = this.#pod;
    const { planId } = this.#call.manifest;
    await drainBody(this.#call, plans);
    if (holding.applied === planId && tree.intact) return;
    holding.applied = planId;
    if (!this.#restoring) tree.drifted.clear(); // what was found is what is wanted
    holding.generation += 1;
  }

  async #change(changes: readonly Change[], worker: WorkerInfo | null): Promise<void> {
    const { holding, tree, workshop, metrics } = this.#pod;
    const { manifest } = this.#call;
    const generation = holding.generation + 1;
    const operations = worker !== null && this.#instructions().length > 0;
    const transition = await asRejection('stage', () =>
      Transition.begin(tree, workshop, {
        generation,
        from: holding.applied,
        to: manifest.planId,
        operations: operations || holding.unsaved,
        changes,
      }),
    );
    await this.#fill(transition, worker);
    await this.#install(transition);
    if (this.#readsFiles) await this.#operate(worker);
    holding.generation = generation;
    holding.applied = manifest.planId;
    if (changes.length > 0) holding.changedMs = Date.now();
    if (this.#restoring) {
      wentBack(holding, await tree.matches(changes));
      metrics.count('haptic_agent_rollbacks_total', 'lkg');
      return;
    }
    tree.drifted.clear(); // every file of the list was held or has been written
    keepFormer(holding, transition.record.changes);
  }

  /** Whether an operation carries what stands in a file, so that the files have to be there first. */
  get #readsFiles(): boolean {
    return this.#instructions().some((entry) => entry.ok && 'digest' in entry.operation);
  }

  /** Files are staged and operations executed: side by side when the files are large. */
  async #fill(transition: Transition, worker: WorkerInfo | null): Promise<void> {
    const bytes = transition.record.changes.reduce((sum, { next }) => sum + (next?.size ?? 0), 0);
    const { holding } = this.#pod;
    const waits = this.#readsFiles;
    const early = bytes > EARLY_BYTES && !waits ? this.#operate(worker) : undefined;
    const began = performance.now();
    try {
      if (this.#restoring) await transition.stageKept();
      await stageBody(this.#call, transition, this.#pod);
    } catch (error: unknown) {
      await early;
      await transition.rollback();
      if (holding.unsaved) holding.generation += 1; // no record from before speaks of this worker
      if (error instanceof BadRequest || error instanceof Conflict) throw error;
      throw new Rejection('stage', messageOf(error), { cause: error });
    }
    this.#times.stage = performance.now() - began;
    if (!waits) await (early ?? this.#operate(worker));
  }

  async #install(transition: Transition): Promise<void> {
    const began = performance.now();
    try {
      await transition.install();
    } catch (error: unknown) {
      const { holding, metrics } = this.#pod;
      const restored = await transition.rollback();
      metrics.count('haptic_agent_rollbacks_total', 'previous');
      holding.generation += 1;
      if (!restored) {
        holding.applied = null;
        keepFormer(holding, transition.record.changes);
      }
      holding.changedMs = Date.now();
      throw new Rejection('write', messageOf(error), { cause: error });
    }
    this.#times.write = performance.now() - began;
  }

  #instructions(): CheckedManifest['operations'] {
    const { manifest } = this.#call;
    return this.#wantsReload ? manifest.inPlaceOperations : manifest.operations;
  }

  async #operate(worker: WorkerInfo | null): Promise<void> {
    const { executor, holding, plans, metrics } = this.#pod;
    const instructions = this.#instructions();
    const began = performance.now();
    const execution: Execution =
      worker === null || instructions.length === 0
        ? NOTHING
        : await executor.run(instructions, worker);
    this.#failed = execution.failed;
    this.#executed = execution.done.length;
    metrics.count('haptic_agent_operations_total', 'ok', execution.done.length);
    metrics.count('haptic_agent_operations_total', 'failed', execution.failed.length);
    this.#times.operations = performance.now() - began;
    if (execution.failed.length === 0 && instructions.length > 0) this.#confirm();
    if (execution.done.length > 0 || !execution.certain) {
      holding.unsaved = true;
      holding.changedMs = Date.now();
    }
    if (!execution.certain) {
      forgetWorker(holding);
      return;
    }
    holding.workerOperations += execution.done.length;
    this.#pod.readBack.expect(execution.done);
    this.#pod.image.expect(execution.done);
    await plans.append(execution.done);
  }

  /** The files are there and the worker has to read them: now, when it is time, or when HAProxy runs again. */
  async #reload(worker: WorkerInfo | null): Promise<ApplyOutcome> {
    const { manifest } = this.#call;
    if (worker === null) return this.#scheduled(this.#pacer.scheduleWhenUp(manifest.planId));
    const delay = this.#pacer.delay({
      notBeforeMs: manifest.reloadNotBeforeMs,
      intervalMs: manifest.reloadIntervalMs,
    });
    if (delay > 0) {
      this.#pacer.schedule(manifest.planId, delay);
      return this.#scheduled(delay);
    }
    const began = performance.now();
    this.#pod.holding.pending = null;
    await persist(this.#pod);
    const result = await reloadNow(this.#pod, manifest.planId);
    this.#times.reload = performance.now() - began;
    if (result.kind === 'down') {
      return this.#scheduled(this.#pacer.scheduleWhenUp(manifest.planId));
    }
    if (result.kind === 'failed') throw new Rejection('reload', result.message);
    this.#times.confirmed = performance.now() - this.#began;
    return this.#outcome('reload');
  }

  #scheduled(reloadInMs: number): ApplyOutcome {
    return { ...this.#outcome('scheduled'), reloadInMs: Math.ceil(reloadInMs) };
  }

  #confirm(): void {
    if (this.#times.confirmed === 0) this.#times.confirmed = performance.now() - this.#began;
  }

  #outcome(outcome: OutcomeKind): ApplyOutcome {
    return {
      outcome,
      roles: rolesOf(this.#pod.holding),
      failedOperations: this.#failed,
      operationsRun: this.#executed,
      timings: { ...this.#times, total: performance.now() - this.#began },
    };
  }
}

function kindOf(changes: number, operations: number): OutcomeKind {
  if (operations > 0) return 'runtime';
  return changes > 0 ? 'files' : 'noop';
}

async function asRejection<T>(stage: 'stage', work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error: unknown) {
    throw new Rejection(stage, messageOf(error), { cause: error });
  }
}
