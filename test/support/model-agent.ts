import { defer, delay, map, NEVER, type Observable, of, timer } from 'rxjs';
import { AgentError, type ApplyRequest } from '../../src/ports.ts';
import type {
  AgentState,
  ApplyConflict,
  ApplyOutcome,
  Roles,
  StoredPlan,
} from '../../src/protocol/answers.ts';
import { OPERATION_KINDS, type Manifest, type Operation } from '../../src/protocol/protocol.ts';

/** A model of one agent: answers after a delay, holds files and a worker, and remembers what it was sent. */
export class ModelAgent {
  readonly applied: { readonly at: number; readonly manifest: Manifest }[] = [];
  /** Why applies were fenced off. */
  readonly conflicts: ApplyConflict['conflict'][] = [];
  latencyMs: number;
  /** Why it cannot be reached, if so. */
  unreachable: string | undefined;
  /** Why its HAProxy refuses the next reloads, if so. */
  refuses: string | undefined;
  /** Version of its HAProxy. */
  version = '3.4.0';
  /** How long a scheduled reload takes when it is due. */
  reloadMs = 0;
  busy = 0;
  mostBusy = 0;
  verifies = 0;
  /** When its HAProxy was reloaded. */
  readonly reloads: number[] = [];
  /** Digest that a hand has put in the place of a file's. */
  readonly tampered = new Map<string, string>();
  #roles: Roles = { applied: null, running: null, workerOperations: 0, lkg: null };
  #files: ReadonlyMap<string, string> = new Map<string, string>();
  /** Files of its last known good tree. */
  #goodFiles = this.#files;
  readonly #plans = new Map<string, string>();
  #operations: readonly Operation[] = [];
  #epoch = 0;
  #pending: { readonly planId: string; readonly at: number } | undefined;
  #lastReloadAt = -Infinity;
  #lastReload: AgentState['lastReload'] = null;
  readonly #now: () => number;

  constructor(now: () => number, latencyMs = 1) {
    this.#now = now;
    this.latencyMs = latencyMs;
  }

  get roles(): Roles {
    this.#tick();
    return this.#roles;
  }

  state(verify: boolean): Observable<AgentState> {
    return this.#answer(() => {
      this.#tick();
      if (verify) this.verifies += 1;
      const digests = verify ? new Map([...this.#files, ...this.tampered]) : this.#files;
      return {
        protocol: 1,
        agentVersion: 'model',
        operationKinds: OPERATION_KINDS,
        features: [],
        roles: this.#roles,
        highestEpoch: this.#epoch,
        haproxy: { version: this.version, workerPid: 1, workerStartMs: 0, oldWorkers: 0 },
        files: [...digests].map(([path, digest]) => ({ path, digest, size: 0 })),
        pendingReload:
          this.#pending === undefined
            ? null
            : { planId: this.#pending.planId, inMs: Math.max(0, this.#pending.at - this.#now()) },
        pendingDeletes: 0,
        lastReload: this.#lastReload,
      };
    });
  }

  plan(): Observable<StoredPlan> {
    return this.#answer(() => ({
      planId: this.#roles.running,
      plan: this.#plans.get(this.#roles.running ?? '') ?? '',
      operations: this.#operations,
    }));
  }

  apply({ manifest, plan }: ApplyRequest): Observable<ApplyOutcome | ApplyConflict> {
    return defer(() => {
      this.busy += 1;
      this.mostBusy = Math.max(this.mostBusy, this.busy);
      if (plan !== '') this.#plans.set(manifest.planId, plan);
      return this.#answer(() => this.#take(manifest));
    });
  }

  #answer<T>(read: () => T): Observable<T> {
    return defer(() => {
      if (this.unreachable !== undefined) {
        const error = new AgentError('unreachable', this.unreachable);
        return timer(this.latencyMs).pipe(
          map((): T => {
            throw error;
          }),
        );
      }
      return this.latencyMs === Infinity
        ? NEVER
        : of(undefined).pipe(delay(this.latencyMs), map(read));
    });
  }

  #take(manifest: Manifest): ApplyOutcome | ApplyConflict {
    this.busy -= 1;
    this.#tick();
    const conflict = this.#fence(manifest);
    if (conflict !== undefined) {
      this.conflicts.push(conflict);
      return { conflict, roles: this.#roles, highestEpoch: this.#epoch };
    }
    this.#epoch = manifest.epoch;
    this.applied.push({ at: this.#now(), manifest });
    this.#promote(manifest);
    if (manifest.mode === 'revert') this.#pending = undefined;
    const reloads = manifest.reload || manifest.mode === 'reload';
    const at = Math.max(
      this.#now() + manifest.reloadNotBeforeMs,
      this.#lastReloadAt + manifest.reloadIntervalMs,
    );
    const due = at <= this.#now();
    if (reloads && due && this.refuses !== undefined)
      return this.#outcome('rejected', this.refuses);
    const changed = this.#roles.applied !== manifest.planId;
    this.#write(manifest);
    if (!reloads) return this.#run(manifest.operations, changed);
    return due ? this.#reload(manifest.planId) : this.#later(manifest, at);
  }

  #fence({
    epoch,
    mode,
    refused: refusedIds = [],
    expected,
  }: Manifest): ApplyConflict['conflict'] | undefined {
    const { running, applied: held } = this.#roles;
    if (epoch < this.#epoch) return 'stale_epoch';
    if (mode === 'revert' && refusedIds.includes(running ?? '')) return 'target_running';
    return expected.applied === undefined || expected.applied === held
      ? undefined
      : 'baseline_mismatch';
  }

  #write({ files, planId, mode }: Manifest): void {
    // A revert without files goes back to what the pod itself knows to be good.
    this.#files =
      mode === 'revert' && files.length === 0
        ? this.#goodFiles
        : new Map(files.map(({ path, digest }) => [path, digest]));
    this.tampered.clear();
    this.#roles = { ...this.#roles, applied: planId };
  }

  /** What the gate has passed is good, unless HAProxy has still to load it. */
  #promote({ validated }: Manifest): void {
    if (validated === this.#roles.applied && this.#pending === undefined) this.#isGood(validated);
  }

  #isGood(planId: string | null): void {
    this.#goodFiles = this.#files;
    this.#roles = { ...this.#roles, lkg: planId };
  }

  #later({ planId, inPlaceOperations }: Manifest, at: number): ApplyOutcome {
    this.#pending = { planId, at };
    const { operationsRun } = this.#run(inPlaceOperations, false);
    return { ...this.#outcome('scheduled'), operationsRun, reloadInMs: at - this.#now() };
  }

  #run(operations: readonly Operation[], changed: boolean): ApplyOutcome {
    const count = operations.length;
    this.#operations = [...this.#operations, ...operations];
    this.#roles = { ...this.#roles, workerOperations: this.#roles.workerOperations + count };
    return {
      ...this.#outcome(count > 0 ? 'runtime' : changed ? 'files' : 'noop'),
      operationsRun: count,
    };
  }

  #reload(planId: string): ApplyOutcome {
    this.#pending = undefined;
    this.#operations = [];
    this.#lastReloadAt = this.#now();
    this.reloads.push(this.#now());
    this.#lastReload = { planId, ok: true, message: '', atMs: this.#now(), durationMs: 0 };
    this.#roles = {
      applied: this.#roles.applied,
      running: planId,
      workerOperations: 0,
      lkg: this.#roles.lkg,
    };
    this.#isGood(planId);
    return this.#outcome('reload');
  }

  #tick(): void {
    if (this.#pending !== undefined && this.#pending.at + this.reloadMs <= this.#now())
      this.#reload(this.#pending.planId);
  }

  #outcome(outcome: ApplyOutcome['outcome'], message?: string): ApplyOutcome {
    return {
      outcome,
      roles: this.#roles,
      ...(message === undefined ? {} : { error: { stage: 'reload', message } }),
      failedOperations: [],
      operationsRun: 0,
      timings: { stage: 0, write: 0, operations: 0, reload: 0, confirmed: 0, total: 0 },
    };
  }
}
