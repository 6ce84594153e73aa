import { map, type Observable, skip } from 'rxjs';
import type { ApiResource } from '../kube/api-resource.ts';
import type { KubeClient } from '../kube/client.ts';
import { listWatch } from './list-watch.ts';

const CRDS: ApiResource = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

/** With what {@link crdChanges} watches. */
export interface CrdChangesOptions {
  readonly client: KubeClient;
  /** Source of randomness, from 0 up to 1. */
  readonly random: () => number;
}

/**
 * Emits whenever a CustomResourceDefinition was created, changed or deleted; of the definitions only their metadata is
 * asked for. Whoever may not list them hears nothing. Never errors.
 */
export const crdChanges = ({ client, random }: CrdChangesOptions): Observable<void> =>
  listWatch({ client, random, api: CRDS, metadataOnly: true }).pipe(
    skip(1), // what is there at first is no change
    map(() => undefined),
  );
