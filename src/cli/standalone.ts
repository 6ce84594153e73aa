import type { Logger } from 'pino';
import {
  defer,
  distinctUntilChanged,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  share,
  skip,
  Subject,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
  withLatestFrom,
} from 'rxjs';
import { controller } from '../controller.ts';
import { createChecker, type HaproxyChecker } from '../gate/checker.ts';
import { httpServer } from '../http/server.ts';
import { isConfirming } from '../http/status.ts';
import { observedBy } from '../notifications.ts';
import type { Observer, ResourceSource } from '../ports.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { createAgentClient } from '../sinks/agent-client.ts';
import type { LogLine } from '../sinks/log-line.ts';
import { countingWatchEvents } from '../sinks/watch-metrics.ts';
import { standaloneLeader, standalonePod, standalonePods } from '../streams/standalone.ts';
import { compiledConfigs } from './compile.ts';
import { demoBackends, demoPorts } from './demo.ts';
import { writeLine } from './logger.ts';
import { createObservation } from './observation.ts';
import { agentProgram } from './programs.ts';
import { keepQuarantine, loadQuarantine } from './quarantine-file.ts';
import type { StateDirectory } from './state-directory.ts';
import { supervise, type SupervisorEvent } from './supervise.ts';

/** Everything `haptic up` has found out before it starts. */
export interface StandaloneSettings {
  readonly source: ResourceSource;
  readonly state: StateDirectory;
  readonly haproxy: { readonly path: string; readonly version: string };
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly statsPort: number;
  readonly metricsPort: number;
  readonly agentPort: number;
  readonly token: string;
  readonly defaultCertificate: string;
  readonly demo: boolean;
  readonly logger: Logger;
  /** Told once, when the first configuration serves. */
  readonly ready: (snapshot: Snapshot) => void;
  /** Emits once when everything shall end. Replays. */
  readonly shutdown$: Observable<unknown>;
}

/** How long work in flight may take after the shutdown began, in milliseconds. */
const HARD_STOP_MS = 10_000;

/**
 * A whole load balancer on one machine: the controller over a directory, and beside it HAProxy, its agent, the metrics server
 * and, if wanted, demo backends. Completes after an orderly shutdown.
 */
export const standalone = (settings: StandaloneSettings): Observable<never> =>
  defer(() => {
    const ended$ = new Subject<void>();
    const { agentPort, haproxy, state, token } = settings;
    const [checker, searcher] = [0, 1].map(() =>
      createChecker({ binary: haproxy.path, dir: state.mirror }),
    ) as [HaproxyChecker, HaproxyChecker];
    const client = createAgentClient({ token, timeoutMs: { state: 5_000, apply: 90_000 } });
    const pod = standalonePod(agentPort);
    const observation = createObservation({
      logger: settings.logger,
      minPods: 1,
      facts: () => ({ haproxy: haproxy.version, checkerIsolation: checker.isolation }),
    });
    const processes$ = supervise({
      ...settings,
      haproxy: haproxy.path,
      agentProgram: agentProgram(),
      reloadIntervalMs: 5_000,
    }).pipe(
      tap((event) => {
        for (const line of supervisorLines(event)) writeLine(settings.logger, line);
      }),
      share(),
    );
    const beside$ = merge(
      processes$,
      httpServer({
        host: '127.0.0.1',
        port: settings.metricsPort,
        status: observation.status,
        metrics: observation.metrics,
      }),
    );
    const pipeline$ = controller({
      resources: countingWatchEvents(settings.source, observation.registry),
      config$: compiledConfigs(settings.source, {
        overrides: {
          baseDir: state.base,
          extraContext: {
            httpPort: settings.httpPort,
            httpsPort: settings.httpsPort,
            statsPort: settings.statsPort,
          },
        },
        haproxyVersion: haproxy.version,
        defaultCertificate: settings.defaultCertificate,
      }),
      pods$: standalonePods(agentPort, restartsOf(processes$)),
      leader$: standaloneLeader(client, pod),
      agents: client,
      check: checker.check,
      searchCheck: searcher.check,
      shutdown$: settings.shutdown$,
      storedQuarantine$: loadQuarantine(state.quarantineFile),
      observers: [keeper(settings), announce(settings), ...(settings.demo ? [demo(settings)] : [])],
    }).pipe(
      observedBy(observation.observe),
      takeUntil(settings.shutdown$.pipe(switchMap(() => timer(HARD_STOP_MS)))),
      finalize(() => {
        ended$.next();
      }),
    );
    return merge(beside$.pipe(takeUntil(ended$)), pipeline$).pipe(
      ignoreElements(),
      finalize(() => {
        observation.close();
        void checker.close();
        void searcher.close();
        void client.close();
      }),
    );
  });

/** Keeps the quarantine over a restart. */
const keeper = ({ state, logger }: StandaloneSettings): Observer =>
  keepQuarantine(state.quarantineFile, (reason) => {
    writeLine(logger, {
      level: 'warn',
      message: `the quarantine cannot be kept: ${reason}`,
      fields: {},
    });
  });

/** Each start of HAProxy but the first. */
const restartsOf = (processes$: Observable<SupervisorEvent>): Observable<unknown> =>
  processes$.pipe(
    filter(({ process: name, event }) => name === 'haproxy' && event.type === 'started'),
    skip(1),
  );

/** Says once that requests are served, when the first apply is confirmed. */
const announce =
  ({ ready }: StandaloneSettings): Observer =>
  ({ notifications$, render$ }) =>
    notifications$.pipe(
      filter(isConfirming),
      withLatestFrom(render$),
      take(1),
      tap(([, { snapshot }]) => {
        ready(snapshot);
      }),
      ignoreElements(),
    );

/** Backends for the loopback endpoints of every snapshot. A taken port is a line in the log, no end. */
const demo =
  ({ shutdown$, logger }: StandaloneSettings): Observer =>
  ({ snapshot$ }) =>
    snapshot$.pipe(
      filter((snapshot) => snapshot.resources.includes('endpointslices')),
      map((snapshot) => snapshot.store('endpointslices')),
      distinctUntilChanged(),
      mergeMap((slices) => demoPorts(slices.list())),
      demoBackends,
      tap(({ port, error }) => {
        const message =
          error === undefined
            ? `demo backend on 127.0.0.1:${String(port)}`
            : `no demo backend on 127.0.0.1:${String(port)}: ${error}`;
        const level = error === undefined ? 'info' : 'warn';
        writeLine(logger, { level, message, fields: { port } });
      }),
      ignoreElements(),
      takeUntil(shutdown$),
    );

const supervisorLines = ({ process: name, event }: SupervisorEvent): readonly LogLine[] => {
  const fields = { process: name };
  if (event.type === 'started') {
    return [{ level: 'info', message: `${name} runs, pid ${String(event.pid)}`, fields }];
  }
  if (event.type === 'ended') {
    return [{ level: 'error', message: `${event.message}; starting it again`, fields }];
  }
  return [{ level: 'debug', message: event.text, fields }];
};
