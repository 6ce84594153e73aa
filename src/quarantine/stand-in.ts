/** What is rendered instead of an object that cannot be served. */
import { at, listAt } from '../routing/fields.ts';
import { CLASS_ANNOTATION } from '../routing/ingress-class.ts';
import type { KubeObject } from '../snapshot/objects.ts';

/**
 * A version of a route's object whose routes all answer 503: without its protection it must not be served, and without
 * its routes a less specific route would answer. Undefined for any other object: then nothing is to stand in for it.
 */
export const closedVersion = (object: KubeObject): KubeObject | undefined =>
  object.kind === 'Ingress' ? closedIngress(object) : undefined;

/** Kinds whose protection is theirs, so that an earlier version without it must not stand in for them. */
export const canBeClosed = ({ kind }: Pick<KubeObject, 'kind'>): boolean =>
  kind === 'Ingress' || kind === 'Service';

/** Routing answers 503 for a path whose backend names no Service. */
const NO_SERVICE = {};

const closedIngress = (ingress: KubeObject): KubeObject => {
  const { annotations, ...metadata } = ingress.metadata;
  const ingressClass = annotations?.[CLASS_ANNOTATION];
  const rules = listAt(ingress, 'spec', 'rules').map((rule) => ({
    host: at(rule, 'host'),
    http: {
      paths: listAt(rule, 'http', 'paths').map((path) => ({
        path: at(path, 'path'),
        pathType: at(path, 'pathType'),
        backend: NO_SERVICE,
      })),
    },
  }));
  const hasDefault = at(ingress, 'spec', 'defaultBackend') !== undefined;
  return {
    ...ingress,
    metadata: {
      ...metadata,
      ...(ingressClass !== undefined && { annotations: { [CLASS_ANNOTATION]: ingressClass } }),
    },
    spec: {
      ingressClassName: at(ingress, 'spec', 'ingressClassName'),
      tls: at(ingress, 'spec', 'tls'),
      ...(rules.length > 0 && { rules }),
      ...(hasDefault && { defaultBackend: NO_SERVICE }),
    },
  };
};
