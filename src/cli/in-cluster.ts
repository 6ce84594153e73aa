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
  take,
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
import { isEngine, observedBy } from '../notifications.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { Notification, RenderEngine, ResourceSource } from '../ports.ts';
import type { Library } from '../render/config/layers.ts';
import { createAgentClient } from '../sinks/agent-client.ts';
import type { AgentTls } from '../sinks/agent-tls.ts';
import { countingWatchEvents, watchSignalMetrics } from '../sinks/watch-metrics.ts';
import { clusterElection } from '../streams/election.ts';
import { clusterSource } from '../streams/cluster-source.ts';
import { loadKeptQuarantine } from '../streams/kept-quarantine.ts';
import { CONFIG_RESOURCE } from '../streams/config.ts';
import { crdChanges } from '../streams/crd-changes.ts';
import { defaultCertificates } from '../streams/default-certificate.ts';
import { fleetVersion } from '../streams/fleet-version.ts';
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

/** How long, in milliseconds, a configuration that is there waits for the Secret of the default certificate. */
const CERTIFICATE_MS = 10_000;
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
      identity,
      timeoutMs: { state: 5_000, apply: 90_000 },
    });
    const mirrors = { binary: haproxy.path, dir: flags.workDir, memoryDir: flags.workDir };
    const gateChecker = createChecker(mirrors);
    const vetChecker = createChecker(mirrors);
    const searchChecker = createChecker(mirrors);
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
    const certificate$ = defaultCertificates({
      resources,
      secret: flags.defaultCertificate,
      late$: listedConfig(resources, namespace).pipe(switchMap(() => timer(CERTIFICATE_MS))),
    }).pipe(shareLatest());
    // What happens comes back to sources a turn later, never from inside what it changes.
    const happened$ = new Subject<Notification>();
    const fleets$ = new Subject<Fleet>();
    const config$ = clusterConfigs({
      ...settings,
      client,
      resources,
      vettedResources: () => clusterSource({ client, discovery, random }),
      certificate$,
      version$: fleetVersion({
        client: agents,
        fleet$: fleets$.pipe(observeOn(asapScheduler)),
        localVersion: haproxy.version,
        random,
      }),
      check: vetChecker.check,
    }).pipe(shareLatest());
    const engine$: Observable<RenderEngine> = config$.pipe(
      filter(isEngine),
      map(({ engine }) => engine),
      // Whoever comes after a refusal still hears of the configuration in force.
      shareLatest(),
    );
    const fleet$ = haproxyPods({
      resources,
      namespace,
      settings$: engine$.pipe(
        map(({ podSelector, settings: { port } }) => ({ podSelector, port })),
      ),
    }).pipe(
      tap((newest) => {
        fleet = newest;
        fleets$.next(newest);
      }),
      shareLatest(),
    );
    const pods$ = fleet$.pipe(
      map(({ pods }) => pods),
      distinctUntilChanged(),
    );
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
        certificate$.pipe(map(({ problems }) => problems)),
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
        searchCheck: searchChecker.check,
        storedQuarantine$: loadKeptQuarantine(client, { namespace, name: flags.config }),
        checkerVersion: haproxy.version,
        shutdown$,
        observers: clusterObservers({ flags, client, discovery, resources, engine$ }),
      }).pipe(
        observedBy(observation.observe),
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
        void searchChecker.close();
        void agents.close();
        void client.close();
      }),
    );
  });

/** Emits when the configurations have been listed: the API server answers. */
const listedConfig = (resources: ResourceSource, namespace: string): Observable<unknown> =>
  resources.watch({ ...CONFIG_RESOURCE, namespaces: [namespace] }).pipe(take(1));
