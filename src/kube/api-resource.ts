import type { Observable } from 'rxjs';

/** One kind as the API server serves it. */
export interface ApiResource {
  /** `v1`, `networking.k8s.io/v1`. */
  readonly apiVersion: string;
  readonly kind: string;
  /** `ingresses`. */
  readonly plural: string;
  readonly namespaced: boolean;
}

/** What the API server serves; answers are remembered and asked anew when a CustomResourceDefinition changes. */
export interface Discovery {
  /** The first of the versions in which the server serves this resource, as it is now; undefined when none. */
  byPlural(apiVersions: readonly string[], plural: string): Observable<ApiResource | undefined>;
  /** The resource of a kind, as it is now; undefined when it is not served. */
  byKind(apiVersion: string, kind: string): Observable<ApiResource | undefined>;
}

/** Which objects of a resource a path means. */
export interface ObjectPath {
  readonly apiVersion: string;
  readonly plural: string;
  /** Absent for cluster-scoped resources, and for a collection over all namespaces. */
  readonly namespace?: string;
}

/** Path of a collection: `/apis/networking.k8s.io/v1/namespaces/shop/ingresses`. */
export const collectionPath = ({ apiVersion, plural, namespace }: ObjectPath): string =>
  [
    apiVersion.includes('/') ? '/apis' : '/api',
    ...apiVersion.split('/').map(encodeURIComponent),
    ...(namespace === undefined ? [] : ['namespaces', encodeURIComponent(namespace)]),
    encodeURIComponent(plural),
  ].join('/');

/** Path of one object, or of one of its subresources such as `status`. */
export const objectPath = (
  where: ObjectPath & { readonly name: string; readonly subresource?: string },
): string =>
  [
    collectionPath(where),
    encodeURIComponent(where.name),
    ...(where.subresource === undefined ? [] : [encodeURIComponent(where.subresource)]),
  ].join('/');
