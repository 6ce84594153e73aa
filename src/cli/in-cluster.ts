import type { Logger } from 'pino';
import {
  asapScheduler,
  combineLatest,
  defer,
  distinctUntilChanged,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  type Observable,
  observeOn,
  startWith,
  Subject,
  switchMap,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { controller } from '../controller.ts';
import { createChecker } from '../gate/checker.ts';
import { httpServer } from '../http/server.ts';
import { createDiscovery } from '../kube/discovery.ts';
import type { KubeAccess } from '../kube/kube-access.ts';
import { createKubeClient } from '../kube/undici-client.ts';
import { isEngine } from '../notifications.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { Notification, RenderEngine } from '../ports.ts';
import type { Library } from '../render/config/layers.ts';
import { createAgentClient } from '../sinks/agent-client.ts';
import type { AgentTls } from '../sinks/agent-tls.ts';
import { countingWatchEvents, watchSignalMetrics } from '../sinks/watch-metrics.ts';
import { clusterElection } from '../streams/election.ts';
import { clusterSource } from '../streams/cluster-source.ts';
import { crdChanges } from '../streams/crd-changes.ts';
import { type Fleet, haproxyPods } from '../streams/haproxy-pods.ts';
import { type Election, underElection } from '../streams/leadership.ts';
import { clusterConfigs } from './cluster-configs.ts';
import { clusterObservers } from './cluster-observers.ts';
import { createObservation } from './observation.ts';
import type { RunSettings } from './run-settings.ts';

/** Everything `haptic run` has found out before it starts. */
export interface ClusterSettings {
  readonly flags: RunSettings;
  readonly access: KubeAccess;
  readonly agentTls: AgentTls;
  readonly haproxy: { readonly path: string; readonly version: string };
  readonly libraries: readonly Library[];
  readonly logger: Logger;
  /** Emits once when everything shall end. Replays. */
  readonly shutdown$: Observable<unknown>;
}

/** How long work in flight may take after the shutdown began, in milliseconds; the Lease is given back after it. */
const HARD_STOP_MS = 15_000;

/**
 * One replica of the controller in a cluster: the pipeline over the API server, the election, the agents over mutual TLS,
 * and what is written back. Completes after an orderly shutdown, when the Lease was given back.
 */
export const inCluster = (settings: ClusterSettings): Observable<never> =>
  defer(() => {
    const { flags, haproxy, shutdown$ } = settings;
    const { namespace, identity } = flags;
    const { random } = Math;
    const client = createKubeClient(settings.access);
    const discovery = createDiscovery(client, { crdChanges$: crdChanges({ client, random }) });
    const agents = createAgentClient({
      tls: settings.agentTls,
      timeoutMs: { state: 5_000, apply: 90_000 },
    });
    const mirrors = { binary: haproxy.path, dir: flags.workDir, memoryDir: flags.workDir };
    const gateChecker = createChecker(mirrors);
    const vetChecker = createChecker(mirrors);
    let fleet: Fleet | undefined;
    const observation = createObservation({
      logger: settings.logger,
      minPods: 0,
      agentClientEnd: settings.agentTls.notAfterMs,
      facts: () => ({
        haproxy: haproxy.version,
        checkerIsolation: gateChecker.isolation,
        leavingPods: [...(fleet?.leaving ?? [])],
        rejectedPods: Object.fromEntries(fleet?.rejected ?? []),
      }),
    });
    const resources = countingWatchEvents(
      clusterSource({
        client,
        discovery,
        random,
        onSignal: watchSignalMetrics(observation.registry, () => performance.now()),
      }),
      observation.registry,
    );
    const config$ = clusterConfigs({
      ...settings,
      client,
      resources,
      check: vetChecker.check,
    }).pipe(shareLatest());
    const engine$: Observable<RenderEngine> = config$.pipe(
      filter(isEngine),
      map(({ engine }) => engine),
    );
    const fleet$ = haproxyPods({
      resources,
      namespace,
      settings$: engine$.pipe(
        map(({ podSelector, settings: { port } }) => ({ podSelector, port })),
      ),
    }).pipe(
      tap((newest) => (fleet = newest)),
      shareLatest(),
    );
    const pods$ = fleet$.pipe(
      map(({ pods }) => pods),
      distinctUntilChanged(),
    );
    // What happens comes back to sources a turn later, never from inside what it changes.
    const happened$ = new Subject<Notification>();
    const elect = (release$: Observable<unknown>): Election =>
      clusterElection(
        {
          client,
          agents,
          namespace,
          identity,
          settings$: engine$.pipe(map((engine) => engine.controller.leaderElection)),
          pods$,
          feedback$: happened$.pipe(observeOn(asapScheduler)),
          random,
        },
        release$,
      );
    const run = (election: Election): Observable<Notification> => {
      const problems$ = [
        resources.problems$,
        election.problems$,
        fleet$.pipe(map(({ problems }) => problems)),
      ].map((source$) => source$.pipe(startWith([])));
      return controller({
        resources: {
          ...resources,
          problems$: combineLatest(problems$).pipe(map((lists) => lists.flat())),
        },
        config$,
        pods$,
        leader$: election.leader$,
        agents,
        check: gateChecker.check,
        checkerVersion: haproxy.version,
        shutdown$,
        observers: [
          observation.observe,
          ...clusterObservers({ flags, client, discovery, resources, engine$ }),
        ],
      }).pipe(
        tap((event) => {
          happened$.next(event);
        }),
      );
    };

    const ended$ = new Subject<void>();
    const { health, metrics, debug } = flags.listen;
    const served = { status: observation.status, metrics: observation.metrics };
    const beside$ = merge(
      httpServer({ ...served, ...health, paths: ['/healthz', '/readyz'] }),
      httpServer({ ...served, ...metrics, paths: ['/metrics'] }),
      httpServer({ ...served, ...debug, paths: ['/debug/vars'] }),
    );
    const stopped$ = shutdown$.pipe(switchMap(() => timer(HARD_STOP_MS)));
    const pipeline$ = underElection(elect, (election) =>
      run(election).pipe(takeUntil(stopped$)),
    ).pipe(
      finalize(() => {
        ended$.next();
      }),
    );
    return merge(beside$.pipe(takeUntil(ended$)), pipeline$).pipe(
      ignoreElements(),
      finalize(() => {
        observation.close();
        void gateChecker.close();
        void vetChecker.close();
        void agents.close();
        void client.close();
      }),
    );
  });
