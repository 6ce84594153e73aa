import { PersistentMap } from '../cells/persistent-map.ts';
import type { ObjectKey } from '../snapshot/objects.ts';
import type { Store } from '../snapshot/snapshot.ts';
import { BackendState } from './backend-state.ts';
import { CertificateState } from './certificate-state.ts';
import { ClaimTable, recomputed } from './claim-table.ts';
import type { Contribution, HostClaim } from './contribution.ts';
import { hostTable } from './host-table.ts';
import type {
  BackendModel,
  CertificateModel,
  HostRoutes,
  InspectKeyPair,
  NamedSecret,
  RouteModel,
} from './model.ts';
import { ProblemIndex } from './problem-index.ts';
import type { BackendSources } from './service-backend.ts';

/** What records are made of besides claims. */
export interface RouteSources extends BackendSources {
  readonly secrets: Store;
}

/**
 * What all contributions together ask for, and the records made of it. Contributions and changed objects touch keys;
 * {@link update} computes the touched ones alone.
 */
export class RouteState {
  readonly #contributions = new Map<ObjectKey, Contribution>();
  readonly #problems = new ProblemIndex();
  readonly #hosts = new ClaimTable<HostClaim>();
  readonly #backends = new BackendState(this.#problems);
  readonly #certificates: CertificateState;
  #model: RouteModel;

  constructor(inspectKeyPair: InspectKeyPair, defaultCertificate: CertificateModel | undefined) {
    this.#certificates = new CertificateState(this.#problems, inspectKeyPair);
    const certificates = defaultCertificate === undefined ? [] : [defaultCertificate];
    this.#model = {
      hosts: PersistentMap.from<HostRoutes>([]),
      backends: PersistentMap.from<BackendModel>([]),
      certificates: PersistentMap.from(certificates.map((record) => [record.name, record])),
      secrets: PersistentMap.from<NamedSecret>([]),
      awaited: 0,
      problems: [],
    };
  }

  /** Replaces what one object asks for; undefined when it is gone or not ours. */
  contribute(owner: ObjectKey, after: Contribution | undefined): void {
    const before = this.#contributions.get(owner);
    if (before === undefined && after === undefined) return;
    if (after === undefined) this.#contributions.delete(owner);
    else this.#contributions.set(owner, after);
    this.#problems.replace(`object ${owner}`, after?.problems ?? []);
    this.#hosts.replace({ owner, before: before?.hosts, after: after?.hosts });
    this.#backends.replace({ owner, before: before?.backends, after: after?.backends });
    this.#certificates.replace(owner, before, after);
  }

  /** A Service or one of its EndpointSlices changed. */
  touchService(namespace: string, name: string): void {
    this.#backends.touchService(namespace, name);
  }

  touchSecret(namespace: string, name: string): void {
    this.#certificates.touchSecret(namespace, name);
  }

  /** Computes what is touched, in steps; records and collections that come out equal keep their identity. */
  *update(sources: RouteSources): Generator<void, RouteModel> {
    const before = this.#model;
    const hosts = yield* recomputed(before.hosts, this.#hosts.takeTouched(), (host) =>
      this.#host(host),
    );
    const backends = yield* this.#backends.update(before.backends, sources);
    const tls = yield* this.#certificates.update(before, sources.secrets);
    const model = { hosts, backends, ...tls, problems: this.#problems.list() };
    if (!sameParts(before, model)) this.#model = model;
    return this.#model;
  }

  #host(host: string): HostRoutes | undefined {
    const { routes, problems } = hostTable(host, this.#hosts.of(host));
    this.#problems.replace(`host ${host}`, problems);
    return routes;
  }
}

const sameParts = (left: RouteModel, right: RouteModel): boolean =>
  left.hosts === right.hosts &&
  left.backends === right.backends &&
  left.certificates === right.certificates &&
  left.secrets === right.secrets &&
  left.awaited === right.awaited &&
  left.problems === right.problems;
