import type { PersistentMap } from '../cells/persistent-map.ts';
import type { Server } from '../plan/plan.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';

/**
 * Routes as templates see them (`routes.…`): what Kubernetes specifications mean, without HAProxy text. A record keeps its
 * identity while nothing it depends on changes, so cells over these collections follow the change.
 */
export interface RouteModel {
  /** By host: `shop.example.com`, `*.example.com`, or `*` for rules without a host. */
  readonly hosts: PersistentMap<HostRoutes>;
  /** By backend name. */
  readonly backends: PersistentMap<BackendModel>;
  /** By certificate name (`namespace_secret`, and `default` for the default certificate). */
  readonly certificates: PersistentMap<CertificateModel>;
  /** Secrets that routes name, by certificate name. */
  readonly secrets: PersistentMap<NamedSecret>;
  /** How many of them are there without their content, which is on its way. */
  readonly awaited: number;
  /** Everything refused or ignored, sorted by object; one list for the whole snapshot. */
  readonly problems: readonly Problem[];
}

export interface HostRoutes {
  readonly host: string;
  /** Exact path → backend name, sorted by path. */
  readonly exact: readonly PathRoute[];
  /** Prefix (without trailing slash, `` for the root) → backend name, sorted by path. Longest wins. */
  readonly prefix: readonly PathRoute[];
  /** Backend for requests of this host that no path matches. */
  readonly defaultBackend: string | undefined;
  /** The Ingress that the default backend comes from. */
  readonly defaultObject: ObjectRef | undefined;
  /** Plain HTTP requests are redirected to HTTPS. */
  readonly httpsRedirect: boolean;
}

export interface PathRoute {
  readonly path: string;
  readonly backend: string;
  /** The Ingress it comes from. */
  readonly object: ObjectRef;
}

export interface BackendModel {
  /** Name of the HAProxy backend, injective over namespace, Service and port. */
  readonly name: string;
  readonly mode: 'http' | 'tcp';
  readonly object: ObjectRef;
  /** Sorted by name; empty when no endpoint is ready (requests get 503). */
  readonly servers: readonly Server[];
}

export interface CertificateModel {
  readonly name: string;
  /** Server names it is served for, sorted; empty only for the default certificate. */
  readonly hosts: readonly string[];
  /** PEM of certificate chain and key. Secret: never logged, never published. */
  readonly pem: string;
  readonly object: ObjectRef | undefined;
}

/** A Secret that a route names, whether it exists or not. */
export interface NamedSecret {
  readonly namespace: string;
  readonly secret: string;
}

/** What routing needs to know of a key pair; an implementation over `node:crypto` is passed in. */
export type InspectKeyPair = (certificate: string, key: string) => KeyPairReport;

export type KeyPairReport =
  | { readonly ok: true; readonly names: readonly string[]; readonly notAfter: string }
  | { readonly ok: false; readonly message: string };
