import {
  auditTime,
  catchError,
  concat,
  defer,
  distinctUntilChanged,
  finalize,
  ignoreElements,
  NEVER,
  type Observable,
  of,
  startWith,
  switchMap,
  tap,
} from 'rxjs';
import type { ApiResource } from '../kube/api-resource.ts';
import { KubeError, type KubeClient } from '../kube/client.ts';
import type { KubeDiscovery } from '../kube/discovery.ts';
import { longestWaitMs } from '../kube/kube-error.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { ResourceSource } from '../ports.ts';
import { admitParsed } from '../snapshot/admit.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';
import { metadataOf } from '../snapshot/content.ts';
import { discoveryFailing, failing, forbidden, notServed } from './cluster-problems.ts';
import { getContent } from './get-content.ts';
import { listWatch, type WatchSignal } from './list-watch.ts';
import { mergeNamespaces } from './merge-namespaces.ts';
import { OpenProblems, type ProblemScope } from './open-problems.ts';
import { serverSelectors } from './server-selectors.ts';

/** With what {@link clusterSource} works. */
export interface ClusterSourceOptions {
  readonly client: KubeClient;
  readonly discovery: KubeDiscovery;
  /** Source of randomness, from 0 up to 1. */
  readonly random: () => number;
  /** Told what happens at each list-watch, for metrics. */
  readonly onSignal?: (watch: WatchName, signal: WatchSignal) => void;
  /** For how long, in milliseconds, problems are gathered before they are told. Default 100. */
  readonly problemsMs?: number;
}

/** One list-watch; the same object for all its signals. */
export interface WatchName {
  /** Name in `watchedResources`. */
  readonly resource: string;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
}

/** Failures in a row after which a person should know. */
const TOLD_AFTER_FAILURES = 3;

/**
 * The API server as a source of resources. Each resource is found by discovery and list-watched, in its namespaces one by
 * one, so that nothing is asked for beyond them; selectors that the server knows are applied there.
 *
 * An optional resource that is not served is empty, and there as soon as its CustomResourceDefinition is; a mandatory one
 * keeps its last state, or holds the first snapshot back (G4), and is a problem until it is served. So is a missing right.
 * A watch never errors.
 */
export const clusterSource = (options: ClusterSourceOptions): ResourceSource => {
  const open = new OpenProblems();
  return {
    watch: (resource) =>
      defer(() => {
        const scope = open.scope();
        const part: Part = { resource, scope, options };
        return servedAs(part).pipe(
          switchMap((api) => (api === undefined ? absent(part) : watches(part, api))),
          finalize(() => scope.end()),
        );
      }),
    get: (resource, key) => getContent(resource, key, { ...options, open }),
    problems$: open.problems$.pipe(
      auditTime(options.problemsMs ?? 100),
      distinctUntilChanged((left, right) => JSON.stringify(left) === JSON.stringify(right)),
      shareLatest(),
    ),
  };
};

/** One watch of {@link clusterSource} at work. */
interface Part {
  readonly resource: WatchedResource;
  readonly scope: ProblemScope;
  readonly options: ClusterSourceOptions;
}

/** As what the resource is served, whenever that changes. */
const servedAs = ({
  resource,
  scope,
  options: { discovery, random },
}: Part): Observable<ApiResource | undefined> =>
  defer(() => {
    // Over all look-ups: a server that swallows requests lets none of them fail often enough by itself.
    let failures = 0;
    return discovery.changes$.pipe(
      startWith(undefined),
      switchMap(() =>
        discovery.byPlural(resource.apiVersions, resource.resources).pipe(
          tap(() => {
            failures = 0;
            scope.close('discovery');
          }),
          retryBackoff({
            maxMs: longestWaitMs,
            jitter: 0.5,
            random,
            retryAfter: (error) => (error instanceof KubeError ? error.retryAfterMs : undefined),
            onRetry: ({ error }) => {
              failures += 1;
              if (failures < TOLD_AFTER_FAILURES || !(error instanceof KubeError)) return;
              scope.open('discovery', discoveryFailing(resource, error));
            },
          }),
        ),
      ),
      distinctUntilChanged((left, right) => JSON.stringify(left) === JSON.stringify(right)),
    );
  });

const absent = ({ resource, scope, options: { discovery } }: Part): Observable<WatchEvent> => {
  if (resource.optional) return concat(of<WatchEvent>({ type: 'Replaced', objects: [] }), NEVER);
  // The candidates only make the message better.
  const told$ = discovery.served(resource.apiVersions).pipe(
    catchError(() => of([])),
    tap((served) => scope.open('served', notServed(resource, served))),
    ignoreElements(),
  );
  return concat(told$, NEVER).pipe(finalize(() => scope.close('served')));
};

const watches = (part: Part, api: ApiResource): Observable<WatchEvent> => {
  const { resource } = part;
  const places =
    api.namespaced && resource.namespaces.length > 0 ? new Set(resource.namespaces) : [undefined];
  return mergeNamespaces([...places].map((namespace) => watchOf(part, api, namespace)));
};

const watchOf = (
  { resource, scope, options }: Part,
  api: ApiResource,
  namespace: string | undefined,
): Observable<WatchEvent> => {
  const watch: WatchName = { resource: resource.name, namespace };
  const key = `watch ${namespace ?? ''}`;
  const track = (signal: WatchSignal): void => {
    options.onSignal?.(watch, signal);
    if (signal.type === 'Received' || signal.type === 'Stopped') scope.close(key);
    if (signal.type !== 'Failed') return;
    const { verb, error, attempt } = signal;
    const failure = { resource, api, namespace, verb, error };
    if (error.code === 'forbidden') scope.open(key, forbidden(failure));
    else if (attempt >= TOLD_AFTER_FAILURES) scope.open(key, failing(failure));
    // Its CustomResourceDefinition may be gone, which nobody tells who may not watch those.
    if (error.code === 'not-found') options.discovery.refresh();
  };
  return listWatch({
    client: options.client,
    random: options.random,
    api,
    ...(namespace === undefined ? {} : { namespace }),
    selectors: serverSelectors(resource, api),
    ...(resource.store === 'on-demand'
      ? { metadataOnly: true, admit: (object) => admitParsed(resource, metadataOf(object)) }
      : { admit: (object) => admitParsed(resource, object) }),
    onSignal: track,
  });
};
