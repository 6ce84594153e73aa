import {
  catchError,
  defer,
  finalize,
  from,
  map,
  type Observable,
  of,
  switchMap,
  throwError,
  timeout,
} from 'rxjs';
import { existsSync, realpathSync } from 'node:fs';
import { judgeRun, type RunVerdict } from './alerts.ts';
import { explain } from './explain.ts';
import { createMirror, type Mirror } from './mirror.ts';
import { runConfined } from './run-confined.ts';
import { ENVIRONMENT, findSandbox, type Isolation, type Sandbox } from './sandbox.ts';
import type { Checkable, Checked, Verdict } from './verdict.ts';

/** Options of {@link createChecker}. */
export interface CheckerOptions {
  /** Absolute path of HAProxy. */
  readonly binary: string;
  /** Existing directory for the mirror, where no memory-backed one can be had. */
  readonly dir: string;
  /** Memory-backed directory that is tried first. Default: `/dev/shm`. */
  readonly memoryDir?: string;
  /** Longest check in milliseconds. Default: 60000. */
  readonly timeoutMs?: number;
  /** Address space of a check in MiB; 10,000 backends need about 350. Default: 2048. */
  readonly memoryMb?: number;
  /** `auto`: as strict as the machine allows. `off`: memory and time limits only. Default: `auto`. */
  readonly isolate?: 'auto' | 'off';
}

/** HAProxy's own checker as a port of the controller. */
export interface HaproxyChecker {
  /** A `Checker` of the pipeline; it needs less than a whole render. */
  readonly check: (render: Checkable) => Observable<Checked>;
  /** What is in force: nothing until that was tried out, and it may change when the mirror has to move. */
  readonly isolation: Isolation;
  /** Removes the mirror with its keys. Checks afterwards are inconclusive. */
  close(): Promise<void>;
}

/**
 * Asks HAProxy (`haproxy -c -dr`) about renders, in a private mirror directory and confined as far as the machine allows.
 * It never throws and its checks never error: what keeps HAProxy from judging is an inconclusive verdict with its cause.
 */
export const createChecker = (options: CheckerOptions): HaproxyChecker => {
  const workspace = new Workspace(options);
  const { timeoutMs = 60_000 } = options;
  const check: HaproxyChecker['check'] = (render) =>
    defer(() => {
      const startedAt = performance.now();
      return judge(workspace, render, timeoutMs).pipe(
        map((verdict) => ({
          planId: render.plan.id,
          verdict,
          durationMs: performance.now() - startedAt,
        })),
      );
    });
  return {
    check,
    get isolation() {
      return workspace.isolation;
    },
    close: () => workspace.close(),
  };
};

const judge = (workspace: Workspace, render: Checkable, timeoutMs: number): Observable<Verdict> =>
  abortable(async (signal) => {
    const place = await workspace.open();
    signal.throwIfAborted();
    const needs = await place.mirror.update(render, signal);
    return { ...place, needs };
  }).pipe(
    switchMap(({ mirror, sandbox, needs, binary }) =>
      runConfined({
        commandLine: sandbox.wrap({
          tree: mirror.tree,
          root: mirror.root,
          needs,
          command: [binary, '-c', '-dr', '-f', `${mirror.tree}/${render.plan.config.path}`],
        }),
        cwd: mirror.tree,
        env: ENVIRONMENT,
      }).pipe(
        map((run) => judgeRun(run, { lookUps: !sandbox.isolation.network })),
        map((verdict) => explained(verdict, render, mirror.tree)),
      ),
    ),
    timeout({
      first: timeoutMs,
      with: () => throwError(() => new Error(`the check took longer than ${timeoutMs} ms`)),
    }),
    catchError((error: unknown) => {
      workspace.failed(error);
      return of<Verdict>({ result: 'inconclusive', cause: causeOf(error) });
    }),
  );

const explained = (verdict: RunVerdict, render: Checkable, directory: string): Verdict =>
  verdict.result === 'refused'
    ? { result: 'refused', ...explain(verdict.alerts, render, { directory }) }
    : verdict;

const causeOf = (error: unknown): string =>
  `HAProxy could not be asked: ${error instanceof Error ? error.message : String(error)}`;

/** A promise that hears of unsubscribing. */
const abortable = <T>(work: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  defer(() => {
    const abort = new AbortController();
    return from(work(abort.signal)).pipe(finalize(() => abort.abort()));
  });

interface Opened {
  readonly mirror: Mirror;
  readonly sandbox: Sandbox;
  readonly binary: string;
}

const NOTHING_IN_FORCE = { network: false, filesystem: false, user: false, memory: false };

/** Mirror and sandbox: made at once, and again after a failure that time or another directory may mend. */
class Workspace {
  readonly #options: CheckerOptions;
  readonly #parents: string[];
  #opening: Promise<Opened> | undefined;
  #opened: Opened | undefined;
  #trouble = 'not yet known';
  #closed = false;

  constructor(options: CheckerOptions) {
    this.#options = options;
    this.#parents = [options.memoryDir ?? '/dev/shm', options.dir];
    this.open().catch(() => undefined); // each check tries again and says so
  }

  get isolation(): Isolation {
    return this.#opened?.sandbox.isolation ?? { ...NOTHING_IN_FORCE, detail: this.#trouble };
  }

  /** @throws when there is no binary, or no directory that can be written */
  open(): Promise<Opened> {
    if (this.#closed) return Promise.reject(new Error('the checker is closed'));
    this.#opening ??= this.#make();
    return this.#opening;
  }

  /** A small memory file system that is full: the next check uses the directory on disk. */
  failed(error: unknown): void {
    const full = (error as NodeJS.ErrnoException | undefined)?.code === 'ENOSPC';
    if (!full || this.#parents.length === 1 || this.#opened === undefined) return;
    void this.#opened.mirror.close();
    this.#opening = undefined;
    this.#opened = undefined;
    this.#parents.shift();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.mirror.close();
  }

  async #make(): Promise<Opened> {
    try {
      this.#opened = await this.#prepare();
      return this.#opened;
    } catch (error: unknown) {
      this.#opening = undefined;
      this.#trouble = causeOf(error);
      throw error;
    }
  }

  async #prepare(): Promise<Opened> {
    const { binary: given } = this.#options;
    if (!existsSync(given)) throw new Error(`there is no ${given}`);
    const binary = realpathSync(given);
    const mirror = this.#makeMirror();
    const { timeoutMs = 60_000, memoryMb = 2048, isolate = 'auto' } = this.#options;
    const cpuSeconds = Math.ceil(timeoutMs / 1000);
    const { tree, root } = mirror;
    const own = (user: number): void => mirror.own(user);
    const sandbox = await findSandbox({ binary, tree, root, memoryMb, cpuSeconds, isolate, own });
    return { mirror, sandbox, binary };
  }

  #makeMirror(): Mirror {
    const [preferred = '', ...others] = this.#parents;
    try {
      return createMirror(preferred);
    } catch (error: unknown) {
      const [next] = others;
      if (next === undefined) throw error;
      return createMirror(next);
    }
  }
}
