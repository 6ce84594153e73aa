import {
  asyncScheduler,
  auditTime,
  catchError,
  concatMap,
  defer,
  EMPTY,
  first,
  from,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  share,
  ReplaySubject,
  Subject,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import type { ApiResource, Discovery } from './api-resource.ts';
import { KubeError, type KubeClient } from './client.ts';

/** A {@link Discovery} that also tells when to ask again. */
export interface KubeDiscovery extends Discovery {
  /** Emits when the server may serve other resources than before. While it is subscribed, answers are that fresh. */
  readonly changes$: Observable<void>;
  /** Forgets what is known and makes `changes$` emit: something that was served is not there. */
  refresh(): void;
  /** All resources that the server serves in these versions, as it is now; for messages. */
  served(apiVersions: readonly string[]): Observable<readonly ApiResource[]>;
}

/** Options of {@link createDiscovery}. */
export interface DiscoveryOptions {
  /** Emits when a CustomResourceDefinition changed. Default: never, then only time tells. */
  readonly crdChanges$?: Observable<unknown>;
}

/** Aggregated API servers come and go without a CustomResourceDefinition. */
const EVERY_MS = 30_000;
/** Milliseconds for one answer; less than above, or who waits would begin anew before it hears of a failure. */
const TIMEOUT_MS = 10_000;
/** Milliseconds after a CustomResourceDefinition changed; the server serves it soon after it says so, but not at once. */
const AFTER_CHANGE_MS = [0, 1_000, 5_000];
/** Several watches that find their resource gone ask once. */
const REFRESH_MS = 100;

/**
 * Discovery by the lists of resources of the versions that are asked for (`/api/v1`, `/apis/GROUP/VERSION`). An answer
 * is kept for 30 s at most and shared by those who ask for it at the same time; errors are not kept. Each look-up emits
 * once, or errors with a {@link KubeError}.
 */
export const createDiscovery = (
  client: KubeClient,
  { crdChanges$ = EMPTY }: DiscoveryOptions = {},
): KubeDiscovery => {
  const known = new Map<string, { readonly at: number; readonly answer$: Answer }>();
  const refreshes = new Subject<void>();
  const version = (apiVersion: string): Answer =>
    defer(() => {
      const now = asyncScheduler.now();
      const entry = known.get(apiVersion);
      if (entry !== undefined && now - entry.at < EVERY_MS) return entry.answer$;
      const answer$ = resourcesOf(client, apiVersion).pipe(
        tap({ error: () => known.delete(apiVersion) }),
        share({
          connector: () => new ReplaySubject<readonly ApiResource[]>(1),
          // The answer serves whoever comes later, also when who asked has left.
          resetOnComplete: false,
          resetOnRefCountZero: false,
        }),
      );
      known.set(apiVersion, { at: now, answer$ });
      return answer$;
    });
  const find = (
    apiVersions: readonly string[],
    matches: (resource: ApiResource) => boolean,
  ): Observable<ApiResource | undefined> =>
    from(apiVersions).pipe(
      concatMap((apiVersion) => version(apiVersion)),
      map((resources) => resources.find(matches)),
      first((resource) => resource !== undefined, undefined),
    );
  return {
    byPlural: (apiVersions, plural) => find(apiVersions, (resource) => resource.plural === plural),
    byKind: (apiVersion, kind) => find([apiVersion], (resource) => resource.kind === kind),
    served: (apiVersions) =>
      from(apiVersions).pipe(
        concatMap((apiVersion) => version(apiVersion)),
        map((resources) => [...resources]),
      ),
    changes$: merge(
      refreshes.pipe(auditTime(REFRESH_MS)),
      timer(EVERY_MS, EVERY_MS),
      crdChanges$.pipe(
        switchMap(() => from(AFTER_CHANGE_MS).pipe(mergeMap((dueMs) => timer(dueMs)))),
      ),
    ).pipe(
      tap(() => known.clear()),
      map(() => undefined),
      share(),
    ),
    refresh: () => refreshes.next(),
  };
};

type Answer = Observable<readonly ApiResource[]>;

/** What the server serves in one version; nothing when it does not know the version. */
const resourcesOf = (client: KubeClient, apiVersion: string): Answer =>
  client
    .request({
      method: 'GET',
      path: [
        apiVersion.includes('/') ? '/apis' : '/api',
        ...apiVersion.split('/').map(encodeURIComponent),
      ].join('/'),
      timeoutMs: TIMEOUT_MS,
    })
    .pipe(
      map((answer) => readResources(answer, apiVersion)),
      catchError((error: unknown) => {
        if (error instanceof KubeError && error.code === 'not-found') return of([]);
        throw error;
      }),
    );

const readResources = (answer: unknown, apiVersion: string): readonly ApiResource[] => {
  const { resources } = membersOf(answer);
  if (!Array.isArray(resources)) {
    throw new KubeError('protocol', `${apiVersion}: the answer is not a list of resources`);
  }
  return resources.flatMap((resource) => {
    const { name, kind, namespaced } = membersOf(resource);
    if (typeof name !== 'string' || typeof kind !== 'string' || name.includes('/')) return [];
    return [{ apiVersion, kind, plural: name, namespaced: namespaced === true }];
  });
};

const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
