import { join } from 'node:path';
import {
  catchError,
  concat,
  defer,
  from,
  map,
  merge,
  type Observable,
  of,
  switchMap,
  tap,
  throwError,
} from 'rxjs';
import { retryBackoff } from '../operators/retry-backoff.ts';
import { writeBootstrap } from './bootstrap.ts';
import { childProcess, type ProcessEvent } from './process.ts';
import type { StateDirectory } from './state-directory.ts';

/** One line of what happens to the two processes beside the controller. */
export interface SupervisorEvent {
  readonly process: 'haproxy' | 'agent';
  readonly event: ProcessEvent | { readonly type: 'ended'; readonly message: string };
}

export interface SuperviseOptions {
  readonly haproxy: string;
  readonly state: StateDirectory;
  readonly httpPort: number;
  readonly agentPort: number;
  readonly agentProgram: readonly string[];
  readonly reloadIntervalMs: number;
}

/** A process that ended sooner than this after its start counts as one that could not start. */
const SHORT_LIFE_MS = 2_000;
const RESTART = { initialMs: 200, maxMs: 5_000, resetAfterMs: 10_000 };

/**
 * HAProxy and its agent as children, restarted when they end. HAProxy starts from what was applied last, so a restart of
 * everything serves the same as before; only a tree HAProxy cannot start from gives way to the bootstrap configuration.
 */
export const supervise = (options: SuperviseOptions): Observable<SupervisorEvent> =>
  merge(haproxy(options), agent(options));

const haproxy = (options: SuperviseOptions): Observable<SupervisorEvent> => {
  let failedStarts = 0;
  return defer(() => {
    const startedAt = performance.now();
    const ready = writeBootstrap(
      { base: options.state.base, httpPort: options.httpPort },
      failedStarts >= 3,
    );
    return from(ready).pipe(
      switchMap(() =>
        childProcess({
          name: 'haproxy',
          command: options.haproxy,
          arguments: [
            '-W',
            '-db',
            '-S',
            `${join(options.state.base, 'haproxy-master.sock')},mode,600,level,admin`,
            '-f',
            join(options.state.base, 'haproxy.cfg'),
          ],
        }),
      ),
      tap({
        error: () => {
          failedStarts = performance.now() - startedAt < SHORT_LIFE_MS ? failedStarts + 1 : 0;
        },
      }),
    );
  }).pipe(restarting('haproxy'));
};

const agent = ({
  state,
  agentPort,
  agentProgram,
  reloadIntervalMs,
}: SuperviseOptions): Observable<SupervisorEvent> => {
  const [command, ...program] = agentProgram;
  return childProcess({
    name: 'agent',
    command: command ?? process.execPath,
    arguments: [
      ...program,
      '--base-dir',
      state.base,
      '--listen',
      `127.0.0.1:${String(agentPort)}`,
      '--token-file',
      state.tokenFile,
      '--reload-interval-ms',
      String(reloadIntervalMs),
    ],
  }).pipe(restarting('agent'));
};

/** Tells each end, then starts the process again after a pause that grows while it keeps ending. */
const restarting =
  (name: SupervisorEvent['process']) =>
  (process$: Observable<ProcessEvent>): Observable<SupervisorEvent> =>
    process$.pipe(
      map((event): SupervisorEvent => ({ process: name, event })),
      catchError((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        const ended: SupervisorEvent = { process: name, event: { type: 'ended', message } };
        return concat(
          of(ended),
          throwError(() => new Error(message, { cause: error })),
        );
      }),
      retryBackoff(RESTART),
    );
