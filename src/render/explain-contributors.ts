/** Which objects take part in the elements of `routes` of one snapshot. */
import { PersistentMap } from '../cells/persistent-map.ts';
import { at, listAt, textAt } from '../routing/fields.ts';
import type { Contribution } from '../routing/contribution.ts';
import {
  isServed,
  readClasses,
  type IngressClassSettings,
  type ServedClasses,
} from '../routing/ingress-class.ts';
import { readIngress } from '../routing/read-ingress.ts';
import { objectRef, type KubeObject, type ObjectRef } from '../snapshot/objects.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { RouteElement } from './made-line.ts';

/** Label of an EndpointSlice that names its Service. */
export const SERVICE_LABEL = 'kubernetes.io/service-name';

/** All objects of a watched resource; none when it is not watched. */
export const objectsOf = (snapshot: Snapshot, resource: string): readonly KubeObject[] =>
  snapshot.resources.includes(resource) ? snapshot.store(resource).list() : [];

/** What the objects of a snapshot ask for, by what they ask for. */
export class Contributors {
  readonly served: ServedClasses;
  readonly #hosts = new Map<string, Contribution[]>();
  readonly #backends = new Map<string, Contribution[]>();
  readonly #certificates = new Map<string, Contribution[]>();
  /** `namespace/name` of Services and Secrets → Ingresses. */
  readonly #naming = new Map<string, ObjectRef[]>();
  /** `namespace/name` of the Service → slices. */
  readonly #slices = new Map<string, KubeObject[]>();

  constructor(snapshot: Snapshot, classes: IngressClassSettings) {
    const store = snapshot.resources.includes('ingressclasses')
      ? snapshot.store('ingressclasses')
      : NO_OBJECTS;
    this.served = readClasses(store, classes);
    for (const ingress of objectsOf(snapshot, 'ingresses')) {
      if (isServed(ingress, this.served)) this.#addIngress(readIngress(ingress));
    }
    for (const slice of objectsOf(snapshot, 'endpointslices')) {
      const service = textAt(slice, 'metadata', 'labels', SERVICE_LABEL);
      if (service !== undefined) {
        append(this.#slices, `${slice.metadata.namespace ?? ''}/${service}`, slice);
      }
    }
  }

  /**
   * Objects behind a line of the cell of an element, besides the object that the cell is made for: those that the text
   * points at, or all of the element where it points at none.
   */
  of({ collection, key }: RouteElement, text: string): readonly ObjectRef[] {
    switch (collection) {
      case 'hosts':
        return this.#ofHost(key, text);
      case 'backends':
        return [
          ...ownersOf(this.#backends.get(key)),
          ...this.#slicesIn(text, this.#serviceOf(key)).map(objectRef),
        ];
      case 'certificates':
        return ownersOf(this.#certificates.get(key));
    }
  }

  /** Ingresses that name a Service or a Secret. */
  naming(kind: 'Service' | 'Secret', namespace: string, name: string): readonly ObjectRef[] {
    return this.#naming.get(`${kind} ${namespace}/${name}`) ?? [];
  }

  #addIngress(contribution: Contribution): void {
    const { owner, hosts, backends, certificates } = contribution;
    for (const host of hosts.keys()) append(this.#hosts, host, contribution);
    const named = new Set<string>();
    for (const [name, { reference }] of backends) {
      append(this.#backends, name, contribution);
      named.add(`Service ${reference.namespace}/${reference.service}`);
    }
    for (const [name, { namespace, secret }] of certificates) {
      append(this.#certificates, name, contribution);
      named.add(`Secret ${namespace}/${secret}`);
    }
    for (const name of named) append(this.#naming, name, owner.object);
  }

  /** Those whose path is the key of a map entry, and of them those whose backend is its value; else all of the host. */
  #ofHost(host: string, text: string): readonly ObjectRef[] {
    const claiming = this.#hosts.get(host) ?? [];
    const [key = ''] = text.split(' ', 1);
    const claims = claiming.flatMap((contribution) => claimsOf(contribution, host));
    const keyed = claims.filter((claim) => claim.key === key);
    const words = new Set(text.split(' '));
    const exactly = keyed.filter(({ backend }) => words.has(backend));
    // A host alone is the key in several maps: it means the default backend only where that is the value.
    const found = exactly.length > 0 ? exactly : keyed.filter((claim) => claim.key !== host);
    return ownersOf(found.length > 0 ? found.map((claim) => claim.contribution) : claiming);
  }

  #serviceOf(backend: string): string {
    const claim = this.#backends.get(backend)?.[0]?.backends.get(backend);
    return claim === undefined ? '' : `${claim.reference.namespace}/${claim.reference.service}`;
  }

  /** Slices with an endpoint whose address stands in the text. */
  #slicesIn(text: string, service: string): readonly KubeObject[] {
    const words = new Set(text.split(/[\s[\]]+|:\d+(?=\s|$)/));
    return (this.#slices.get(service) ?? []).filter((slice) =>
      listAt(slice, 'endpoints').some((endpoint) =>
        listAt(at(endpoint), 'addresses').some((address) => words.has(String(address))),
      ),
    );
  }
}

interface KeyedClaim {
  readonly contribution: Contribution;
  /** As in the maps of the libraries. */
  readonly key: string;
  readonly backend: string;
}

const claimsOf = (contribution: Contribution, host: string): readonly KeyedClaim[] => {
  const claim = contribution.hosts.get(host);
  const paths = (claim?.paths ?? []).map(({ type, path, backend }) => ({
    ...{ contribution, backend },
    key: `${host}${path}${type === 'prefix' ? '/' : ''}`,
  }));
  const fallback = claim?.defaultBackend;
  return fallback === undefined
    ? paths
    : [...paths, { contribution, key: host, backend: fallback.backend }];
};

const NO_OBJECTS = {
  size: 0,
  objects: PersistentMap.EMPTY,
  get: () => undefined,
  fetch: () => [],
  list: () => [],
};

const ownersOf = (contributions: readonly Contribution[] = []): readonly ObjectRef[] =>
  contributions.map(({ owner }) => owner.object);

const append = <Value>(map: Map<string, Value[]>, key: string, value: Value): void => {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else known.push(value);
};
