import type { ObjectKey, ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { byCodeUnits } from '../cells/persistent-map.ts';
import type { ServiceReference } from './service-reference.ts';

/** Everything one route object asks for, read from that object alone. */
export interface Contribution {
  readonly owner: Owner;
  /** By host, `*` for rules without one. */
  readonly hosts: ReadonlyMap<string, HostClaim>;
  /** By backend name. */
  readonly backends: ReadonlyMap<string, BackendClaim>;
  /** By certificate name. */
  readonly certificates: ReadonlyMap<string, CertificateClaim>;
  /** Host → certificate to serve it with. */
  readonly serverNames: ReadonlyMap<string, ServerNameClaim>;
  readonly problems: readonly Problem[];
}

/** Who claims; decides who wins. */
export interface Owner {
  readonly object: ObjectRef;
  /** RFC 3339, or undefined where nobody sets it. */
  readonly created: string | undefined;
}

export interface HostClaim {
  readonly owner: Owner;
  readonly paths: readonly PathClaim[];
  readonly defaultBackend: { readonly backend: string; readonly field: string } | undefined;
  /** The object has a TLS entry that covers this host. */
  readonly tls: boolean;
}

export interface PathClaim {
  readonly type: 'exact' | 'prefix';
  readonly path: string;
  readonly backend: string;
  readonly field: string;
}

export interface BackendClaim {
  readonly owner: Owner;
  readonly reference: ServiceReference;
  /** Where the object refers to it. */
  readonly fields: readonly string[];
}

export interface CertificateClaim {
  readonly owner: Owner;
  readonly namespace: string;
  readonly secret: string;
  /** Empty: served for what the certificate itself names. */
  readonly hosts: readonly string[];
  readonly field: string;
}

/** Name of the certificate that is served where no other fits. */
export const DEFAULT_CERTIFICATE = 'default';

export interface ServerNameClaim {
  readonly owner: Owner;
  /** Name of a certificate; {@link DEFAULT_CERTIFICATE} where the object names no Secret. */
  readonly certificate: string;
  /** The object has a rule for the host as well. Who has none must not decide for those who have. */
  readonly hasRule: boolean;
  readonly field: string;
}

/** No timestamp sorts behind every one. */
const NEVER = '~';

/** Who comes first in a conflict: the older object, then by namespace, then by name. */
export const byAge = (left: Owner, right: Owner): number =>
  byCodeUnits(left.created ?? NEVER, right.created ?? NEVER) ||
  byCodeUnits(left.object.namespace, right.object.namespace) ||
  byCodeUnits(left.object.name, right.object.name);

/** Who decides which certificate a host is served with: those who have a rule for it, then by age. */
export const byRuleAndAge = (left: ServerNameClaim, right: ServerNameClaim): number =>
  Number(right.hasRule) - Number(left.hasRule) || byAge(left.owner, right.owner);

/** Claims of many owners on many keys: hosts, backends, certificates. */
export class ClaimTable<T> {
  readonly #claims = new Map<string, Map<ObjectKey, T>>();

  /** Owners and their claims on `key`, in no stated order. */
  of(key: string): ReadonlyMap<ObjectKey, T> {
    return this.#claims.get(key) ?? new Map<ObjectKey, T>();
  }

  /** Replaces what an owner claims; every key of before and after joins `touched`. */
  replace({ owner, before, after }: ClaimChange<T>, touched: Set<string>): void {
    for (const key of before.keys()) {
      touched.add(key);
      const claims = this.#claims.get(key);
      claims?.delete(owner);
      if (claims?.size === 0) this.#claims.delete(key);
    }
    for (const [key, claim] of after) {
      touched.add(key);
      const claims = this.#claims.get(key) ?? new Map<ObjectKey, T>();
      this.#claims.set(key, claims.set(owner, claim));
    }
  }
}

interface ClaimChange<T> {
  readonly owner: ObjectKey;
  readonly before: ReadonlyMap<string, T>;
  readonly after: ReadonlyMap<string, T>;
}
