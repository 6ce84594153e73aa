import type { KubeObject } from '../snapshot/objects.ts';
import { readIngress } from './read-ingress.ts';

/** An object that a route names, whether it exists or not. */
export interface Reference {
  /** Name in `watchedResources`, as the libraries call it. */
  readonly resource: 'services' | 'secrets';
  readonly namespace: string;
  readonly name: string;
}

/** The Services and Secrets that an object names; none for what is no route. */
export const referencesOf = (object: KubeObject): readonly Reference[] => {
  if (object.kind !== 'Ingress') return [];
  const { backends, certificates } = readIngress(object);
  return [
    ...[...backends.values()].map(({ reference: { namespace, service } }) => ({
      ...{ resource: 'services' as const, namespace, name: service },
    })),
    ...[...certificates.values()].map(({ namespace, secret }) => ({
      ...{ resource: 'secrets' as const, namespace, name: secret },
    })),
  ];
};
