import { LIMITS, type Digest } from '../../src/protocol/protocol.ts';
import { keepImage } from '../drift/verify.ts';
import { messageOf } from '../failures.ts';
import { persist, type Pod } from '../pod.ts';
import { reloadNow, restoreLastKnownGood, type ReloadResult } from './reload.ts';
import { observeWorker } from './worker-watch.ts';
import type { WorkerIdentity } from './worker-identity.ts';

/** When a reload may start. */
export interface Pace {
  /** Milliseconds from now. */
  readonly notBeforeMs: number;
  /** Least distance from the last one in milliseconds. */
  readonly intervalMs: number;
}

const RETRY_DOWN_MS = 250;
const WATCH_MS = 1_000;
const TICK_MS = 100;

/**
 * Runs what is due later: scheduled reloads, deletions, and the watch over the worker. One timer, and everything it does
 * happens under the lock.
 */
export class Pacer {
  readonly #pod: Pod;
  #timer: NodeJS.Timeout | undefined;
  #lastWatch = 0;

  constructor(pod: Pod) {
    this.#pod = pod;
  }

  start(): void {
    this.#arm(TICK_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Milliseconds until a reload may start; 0 = now. */
  delay({ notBeforeMs, intervalMs }: Pace): number {
    const sinceLast = Date.now() - this.#pod.holding.lastReloadMs;
    return Math.max(0, notBeforeMs, sinceLast < 0 ? 0 : intervalMs - sinceLast);
  }

  /** Schedules a reload onto the files on disk; the newest wins. The lock must be held. */
  schedule(planId: Digest, inMs: number): void {
    this.#pod.holding.pending = { planId, dueMs: Date.now() + inMs };
  }

  /** A reload that waits for HAProxy to run again, for a limited time. The lock must be held. */
  scheduleWhenUp(planId: Digest): number {
    const giveUpMs = this.#pod.holding.pending?.giveUpMs ?? Date.now() + LIMITS.reloadTimeoutMs;
    this.#pod.holding.pending = { planId, dueMs: Date.now() + RETRY_DOWN_MS, giveUpMs };
    return RETRY_DOWN_MS;
  }

  /** A plan was reached without a reload, so the one that waits is not needed, unless it is owed for another reason. */
  withdraw(planId: Digest): void {
    const { holding } = this.#pod;
    holding.pending = null;
    if (holding.reloadOwed) this.#scheduleOwed(planId);
  }

  /** At the pace that the agent keeps by itself. */
  #scheduleOwed(planId: Digest): void {
    const pace = { notBeforeMs: 0, intervalMs: this.#pod.options.reloadIntervalMs };
    this.schedule(planId, this.delay(pace));
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => {
      void this.#tick();
    }, ms);
    this.#timer.unref();
  }

  async #tick(): Promise<void> {
    const { lock, log, holding, deletes } = this.#pod;
    const now = Date.now();
    const watch = now - this.#lastWatch >= WATCH_MS;
    const reload = holding.pending !== null && holding.pending.dueMs <= now;
    if (watch || reload || deletes.size > 0) {
      await lock
        .run(() => this.#work(watch))
        .then(() => keepImage(this.#pod))
        .catch((error: unknown) => log.error('pacer failed', { error: messageOf(error) }));
    }
    if (this.#timer !== undefined) this.#arm(TICK_MS);
  }

  async #work(watch: boolean): Promise<void> {
    if (watch) {
      this.#lastWatch = Date.now();
      const info = await observeWorker(this.#pod);
      if (info !== null) await this.#readBack(info);
    }
    const { pending } = this.#pod.holding;
    if (pending !== null && pending.dueMs <= Date.now()) await this.#fire(pending.planId);
    if (this.#pod.deletes.size > 0) await this.#delete();
  }

  /** A worker that is not what its operations have made it gets its files anew. */
  async #readBack(info: WorkerIdentity): Promise<void> {
    const { readBack, worker, holding, metrics, log } = this.#pod;
    if (readBack.size === 0) return;
    if (holding.running === null) {
      readBack.clear(); // a reload comes in any case
      return;
    }
    const { diverging, unverified } = await readBack.check(worker, info);
    metrics.count('haptic_agent_unverified_total', '', unverified);
    if (diverging.length === 0) return;
    metrics.count('haptic_agent_drift_found_total', 'runtime', diverging.length);
    log.warn('the worker is not what its operations say', { targets: diverging.slice(0, 32) });
    await this.owe();
  }

  /** A reload of what is applied, whatever comes between. The lock must be held. */
  async owe(): Promise<void> {
    const { holding, storage, deletes } = this.#pod;
    holding.reloadOwed = true;
    if (holding.pending === null && holding.applied !== null) this.#scheduleOwed(holding.applied);
    await storage.saveState(holding, deletes.names());
  }

  async #fire(planId: Digest): Promise<void> {
    const pod = this.#pod;
    if (pod.holding.applied !== planId) {
      pod.holding.pending = null; // the files are others by now, and whoever wrote them has decided anew
      await persist(pod);
      return;
    }
    const result = await reloadNow(pod, planId);
    await this.#settle(planId, result);
    await persist(pod);
  }

  async #settle(planId: Digest, result: ReloadResult): Promise<void> {
    const { holding } = this.#pod;
    if (result.kind !== 'down') return;
    this.scheduleWhenUp(planId);
    if ((holding.pending?.giveUpMs ?? Infinity) > Date.now()) return;
    await restoreLastKnownGood(this.#pod, {
      planId,
      ok: false,
      message: 'HAProxy does not run',
      atMs: Date.now(),
      durationMs: 0,
    });
  }

  async #delete(): Promise<void> {
    const { deletes, worker, log, holding, storage } = this.#pod;
    const { deleted, stuck } = await deletes.attempt(worker);
    if (stuck.length > 0) {
      log.warn('servers that only a reload removes', { servers: stuck.slice(0, 32) });
      await this.owe();
    } else if (deleted > 0) {
      await storage.saveState(holding, deletes.names());
    }
  }
}
