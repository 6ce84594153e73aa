/** What is rendered instead of an object that cannot be served. */
import { at, listAt } from '../routing/fields.ts';
import { CLASS_ANNOTATION } from '../routing/ingress-class.ts';
import { isReferred } from './suspects.ts';
import type { KubeObject } from '../snapshot/objects.ts';

/**
 * A version of a route's object whose routes all answer 503: without its protection it must not be served, and without
 * its routes a less specific route would answer. Undefined for any other object: then nothing is to stand in for it.
 */
export const closedVersion = (object: KubeObject): KubeObject | undefined =>
  object.kind === 'Ingress' ? closedIngress(object) : undefined;

/**
 * Whether the protection of an object is its own, so that an earlier version without it must not stand in for it: all but what
 * others only refer to. The earlier version of an allow-list in a ConfigMap protects as it did.
 */
export const needsProtection = (object: KubeObject | undefined): boolean =>
  object !== undefined && (object.kind === 'Service' || !isReferred(object.kind));

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
      // It is no version of the object, so nobody may take it for the one that has this number.
      resourceVersion: `closed:${metadata.resourceVersion ?? ''}`,
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
