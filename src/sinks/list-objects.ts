import { catchError, EMPTY, expand, map, mergeMap, type Observable } from 'rxjs';
import { collectionPath } from '../kube/api-resource.ts';
import type { KubeClient } from '../kube/client.ts';
import { at, listAt, textAt } from '../routing/fields.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import { asCall, type WrittenResource } from './write-objects.ts';

/** What {@link listObjects} lists. */
export interface ListScope {
  readonly resource: WrittenResource;
  /** Empty: all namespaces. */
  readonly namespace: string;
  /** Default: all. */
  readonly labelSelector?: string;
  /** Objects in one answer. */
  readonly limit: number;
}

/** Every object of a scope, page by page, so that only one page is in memory. Errors with `CallFailed`. */
export const listObjects = (
  client: KubeClient,
  { resource, namespace, labelSelector, limit }: ListScope,
): Observable<KubeObject> => {
  const path = collectionPath({
    apiVersion: resource.apiVersion,
    plural: resource.plural,
    ...(namespace === '' ? {} : { namespace }),
  });
  const page = (token?: string): Observable<unknown> =>
    client.request({
      method: 'GET',
      path,
      query: {
        limit,
        ...(labelSelector === undefined ? {} : { labelSelector }),
        ...(token === undefined ? {} : { continue: token }),
      },
    });
  return page().pipe(
    expand((answer) => {
      const token = textAt(answer, 'metadata', 'continue') ?? '';
      return token === '' ? EMPTY : page(token);
    }),
    mergeMap((answer) => listAt(answer, 'items')),
    mergeMap((item) => (isNamed(item) ? [item] : [])),
    map((item) => ({ ...item, apiVersion: resource.apiVersion, kind: resource.kind })),
    catchError(asCall({ verb: 'list', resource, namespace })),
  );
};

/** Whether it has what every object has: the server's answer is data as any other. */
const isNamed = (item: unknown): item is KubeObject =>
  textAt(item, 'metadata', 'name') !== undefined && typeof at(item, 'metadata') === 'object';
