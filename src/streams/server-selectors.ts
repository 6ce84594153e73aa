import type { ApiResource } from '../kube/api-resource.ts';
import type { WatchedResource } from '../snapshot/watch.ts';

/** Field selectors that an API server knows for every resource. */
const GENERAL_FIELDS: readonly string[] = ['metadata.name', 'metadata.namespace'];

/** Field selectors of single resources, by apiVersion and plural. */
const SPECIAL_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['v1/secrets', ['type']],
  ['v1/pods', ['spec.nodeName', 'status.phase', 'status.podIP', 'spec.serviceAccountName']],
  ['v1/nodes', ['spec.unschedulable']],
  ['v1/services', ['spec.clusterIP', 'spec.type']],
  ['v1/namespaces', ['status.phase']],
]);

/**
 * The selectors of a resource that the API server can apply itself, as query parameters. All others are applied when an
 * object arrives.
 */
export const serverSelectors = (
  { labelSelector, fieldSelector }: WatchedResource,
  { apiVersion, plural }: ApiResource,
): Readonly<Record<string, string>> => {
  const known = [...GENERAL_FIELDS, ...(SPECIAL_FIELDS.get(`${apiVersion}/${plural}`) ?? [])];
  const labels = Object.entries(labelSelector).map(([name, value]) => `${name}=${value}`);
  const fields = Object.entries(fieldSelector)
    .filter(([path]) => known.includes(path))
    .map(([path, value]) => `${path}=${value.replace(/[\\,=]/g, (special) => `\\${special}`)}`);
  return {
    ...(labels.length === 0 ? {} : { labelSelector: labels.join(',') }),
    ...(fields.length === 0 ? {} : { fieldSelector: fields.join(',') }),
  };
};
