import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { WatchedResource } from '../../src/snapshot/watch.ts';

/** A watched resource with everything at its plainest. */
export const watched = (name: string, members: Partial<WatchedResource> = {}): WatchedResource => ({
  name,
  apiVersions: ['v1'],
  resources: name,
  optional: false,
  namespaces: [],
  labelSelector: {},
  fieldSelector: {},
  indexBy: ['metadata.namespace', 'metadata.name'],
  ignoreFields: [],
  store: 'full',
  debounceMs: 0,
  maxWaitMs: 1_000,
  ...members,
});

/** An object by `namespace/name`; `members` replace or add whole members. */
export const kubeObject = (
  key: string,
  members: Readonly<Record<string, unknown>> = {},
): KubeObject => {
  const [namespace = '', name = ''] = key.split('/');
  const { metadata, ...rest } = members;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...(namespace !== '' && { namespace }), name, ...(metadata as object) },
    ...rest,
  };
};
