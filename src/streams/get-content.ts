import {
  catchError,
  concat,
  defer,
  finalize,
  ignoreElements,
  map,
  type Observable,
  of,
  switchMap,
  take,
  timer,
} from 'rxjs';
import { objectPath } from '../kube/api-resource.ts';
import { KubeError, type KubeClient } from '../kube/client.ts';
import type { KubeDiscovery } from '../kube/discovery.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import { admitParsed } from '../snapshot/admit.ts';
import { type ContentOutcome } from '../snapshot/content.ts';
import type { ObjectKey } from '../snapshot/objects.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import { unreadable } from './cluster-problems.ts';
import type { OpenProblems } from './open-problems.ts';
import { readObject } from './watch-line.ts';

/** With what {@link getContent} works. */
export interface GetContentOptions {
  readonly client: KubeClient;
  readonly discovery: KubeDiscovery;
  /** Source of randomness, from 0 up to 1. */
  readonly random: () => number;
  readonly open: OpenProblems;
}

/** A render may wait for the answer, and everything else that changes with it: twice this, and the wait between. */
const GET_TIMEOUT_MS = 2_000;
const TRIES = 2;
const RETRY_MS = 30_000;

/**
 * Gets one object. What fails is tried once more at once, unless a right is missing; then it is unreadable, told as a
 * problem, and the stream stays open for 15 s to 30 s until it is time to ask again. Unsubscribing aborts the request.
 */
export const getContent = (
  resource: WatchedResource,
  key: ObjectKey,
  { client, discovery, random, open }: GetContentOptions,
): Observable<ContentOutcome> =>
  defer(() => {
    let tries = 0;
    return defer(() => found(resource, key, { client, discovery })).pipe(
      retryBackoff({
        initialMs: 200,
        shouldRetry: (error) => {
          tries += 1;
          return tries < TRIES && asKubeError(error).code !== 'forbidden';
        },
      }),
      catchError((error: unknown) => {
        const failure = asKubeError(error);
        if (failure.code === 'not-found') return of<ContentOutcome>({ type: 'Gone' });
        const scope = open.scope();
        const reason =
          failure.code === 'forbidden' ? 'the controller may not get it' : failure.code;
        return defer(() => {
          scope.open('get', unreadable({ resource, key, error: failure }));
          return concat(
            of<ContentOutcome>({ type: 'Unreadable', reason }),
            timer(RETRY_MS * (1 - random() / 2)).pipe(ignoreElements()),
          );
        }).pipe(finalize(() => scope.end()));
      }),
    );
  });

const found = (
  resource: WatchedResource,
  key: ObjectKey,
  { client, discovery }: Pick<GetContentOptions, 'client' | 'discovery'>,
): Observable<ContentOutcome> =>
  discovery.byPlural(resource.apiVersions, resource.resources).pipe(
    take(1),
    switchMap((api) => {
      if (api === undefined) return of<ContentOutcome>({ type: 'Gone' });
      const [namespace = '', name = ''] = key.split('/');
      const path = objectPath({
        apiVersion: api.apiVersion,
        plural: api.plural,
        ...(namespace === '' ? {} : { namespace }),
        name,
      });
      return client.request({ method: 'GET', path, timeoutMs: GET_TIMEOUT_MS }).pipe(
        map((answer): ContentOutcome => {
          const object = admitParsed(resource, readObject(answer, api, `GET ${path}`));
          return object === undefined ? { type: 'Gone' } : { type: 'Found', object };
        }),
      );
    }),
  );

/** Anything else is a defect of ours; its message may quote what the object holds. */
const asKubeError = (error: unknown): KubeError =>
  error instanceof KubeError ? error : new KubeError('protocol', 'the answer cannot be read');
