/**
 * What a request must get, said as plainly as the Ingress API says it: looks at every path of every Ingress, keeps
 * nothing, shares no code with the controller. Slow on purpose.
 */
import type { KubeObject } from '../../src/snapshot/objects.ts';

/** One request; the host as it stands in the header, port and all. */
export interface OracleRequest {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly path: string;
}

/** `service` is `namespace/name:port`. */
export type OracleAnswer =
  | { readonly kind: 'service'; readonly service: string }
  | { readonly kind: 'redirect' }
  | { readonly kind: 'notFound' };

interface Path {
  readonly path?: string;
  readonly pathType: string;
  readonly backend: Backend;
}

interface Backend {
  readonly service: { readonly name: string; readonly port: { name?: string; number?: number } };
}

interface IngressSpec {
  readonly ingressClassName?: string;
  readonly rules?: readonly { host?: string; http?: { paths?: readonly Path[] } }[];
  readonly defaultBackend?: Backend;
  readonly tls?: readonly { readonly hosts?: readonly string[] }[];
}

const specOf = (ingress: KubeObject): IngressSpec => ingress['spec'] as IngressSpec;

/** Oldest first, then by namespace and name. */
const inOrderOfAge = (ingresses: readonly KubeObject[]): KubeObject[] =>
  [...ingresses].sort((left, right) => {
    const [a, b] = [left, right].map(({ metadata }) =>
      [metadata.creationTimestamp ?? '9999', metadata.namespace, metadata.name].join(' '),
    );
    return (a ?? '') < (b ?? '') ? -1 : 1;
  });

/** Rules of one Ingress; without any, a default backend stands for every host. */
const rulesOf = (ingress: KubeObject): NonNullable<IngressSpec['rules']> => {
  const { rules = [], defaultBackend } = specOf(ingress);
  return rules.length === 0 && defaultBackend !== undefined ? [{}] : rules;
};

const hostsOf = (ingress: KubeObject): string[] => rulesOf(ingress).map((rule) => rule.host ?? '*');

const claimedHost = (ingresses: readonly KubeObject[], host: string): string | undefined => {
  const claimed = new Set(ingresses.flatMap(hostsOf));
  const wildcard = `*.${host.split('.').slice(1).join('.')}`;
  return [host, wildcard, '*'].find((candidate) => claimed.has(candidate));
};

const elements = (path: string): string[] => path.split('/').filter((part) => part !== '');

/** How well a path fits: undefined = not at all; more is better. */
const fit = ({ path = '/', pathType }: Path, requested: string): number | undefined => {
  if (pathType === 'Exact') return path === requested ? Infinity : undefined;
  if (path === '/') return 0;
  const prefix = path.endsWith('/') ? path.slice(0, -1) : path;
  const fits = requested === prefix || requested.startsWith(`${prefix}/`);
  return fits ? elements(prefix).length : undefined;
};

const nameOf = (ingress: KubeObject, { service }: Backend): string =>
  `${ingress.metadata.namespace ?? ''}/${service.name}:${service.port.name ?? service.port.number ?? ''}`;

interface Offer {
  readonly fit: number;
  readonly service: string;
}

/** Everything that the paths of one Ingress offer for a request, in their order. */
const offersOf = (ingress: KubeObject, host: string, requested: string): Offer[] =>
  rulesOf(ingress)
    .filter((rule) => (rule.host ?? '*') === host)
    .flatMap((rule) => rule.http?.paths ?? [])
    .flatMap((path) => {
      const found = fit(path, requested);
      return found === undefined ? [] : [{ fit: found, service: nameOf(ingress, path.backend) }];
    });

const defaultsOf = (ingress: KubeObject): Offer[] => {
  const { defaultBackend } = specOf(ingress);
  return defaultBackend === undefined
    ? []
    : [{ fit: -1, service: nameOf(ingress, defaultBackend) }];
};

/** The answer that a request must get of these Ingresses, all of them ours. */
export const oracle = (all: readonly KubeObject[], request: OracleRequest): OracleAnswer => {
  const ingresses = inOrderOfAge(all);
  const host = claimedHost(ingresses, request.host.replace(/:\d+$/, '').toLowerCase());
  if (host === undefined) return { kind: 'notFound' };
  const concerned = ingresses.filter((ingress) => hostsOf(ingress).includes(host));
  if (request.scheme === 'http' && concerned.some((ingress) => hasTls(ingress, host))) {
    return { kind: 'redirect' };
  }
  const offers = concerned.flatMap((ingress) => [
    ...offersOf(ingress, host, request.path),
    ...defaultsOf(ingress),
  ]);
  const best = Math.max(...offers.map((offer) => offer.fit));
  const first = offers.find((offer) => offer.fit === best);
  return first === undefined ? { kind: 'notFound' } : { kind: 'service', service: first.service };
};

const hasTls = (ingress: KubeObject, host: string): boolean =>
  (specOf(ingress).tls ?? []).some(({ hosts }) => {
    const names = hosts ?? [];
    const wildcard = `*.${host.split('.').slice(1).join('.')}`;
    return names.length === 0 || names.includes(host) || names.includes(wildcard);
  });
