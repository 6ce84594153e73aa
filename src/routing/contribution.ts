import type { ObjectRef } from '../snapshot/objects.ts';
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
  /** Empty: served for what the certificate itself names, as far as nobody else claims it. */
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
