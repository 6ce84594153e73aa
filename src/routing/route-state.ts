import { PersistentMap } from '../cells/persistent-map.ts';
import { objectRef, type ObjectKey } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Store } from '../snapshot/snapshot.ts';
import { keyPairReader, type KeyPair } from './certificate.ts';
import { problemOf, type Complaint } from './complaint.ts';
import {
  byRuleAndAge,
  ClaimTable,
  DEFAULT_CERTIFICATE,
  type BackendClaim,
  type CertificateClaim,
  type Contribution,
  type HostClaim,
  type ServerNameClaim,
} from './contribution.ts';
import { deepEqual } from './fields.ts';
import { hostTable } from './host-table.ts';
import type {
  BackendModel,
  CertificateModel,
  HostRoutes,
  InspectKeyPair,
  RouteModel,
} from './model.ts';
import { ProblemIndex } from './problem-index.ts';
import { certificateName } from './read-tls.ts';
import { serviceBackend, type BackendSources } from './service-backend.ts';

/** Keys whose records must be computed anew. */
interface Dirty {
  readonly hosts: Set<string>;
  readonly backends: Set<string>;
  readonly certificates: Set<string>;
  readonly serverNames: Set<string>;
}

/** What records are made of besides claims. */
export interface RouteSources extends BackendSources {
  readonly secrets: Store;
}

const nothingDirty = (): Dirty => ({
  hosts: new Set(),
  backends: new Set(),
  certificates: new Set(),
  serverNames: new Set(),
});

type Claims = Pick<Contribution, 'hosts' | 'backends' | 'certificates' | 'serverNames'>;

const UNCLAIMED: Claims = {
  hosts: new Map(),
  backends: new Map(),
  certificates: new Map(),
  serverNames: new Map(),
};

const pick = <K extends keyof Claims>(
  { owner, before, after }: { owner: ObjectKey; before: Claims; after: Claims },
  part: K,
): { owner: ObjectKey; before: Claims[K]; after: Claims[K] } => ({
  owner,
  before: before[part],
  after: after[part],
});

const place = (namespace: string, name: string): string => `${namespace}/${name}`;

/**
 * What all contributions together ask for, and the records made of it. Contributions and changed objects mark keys;
 * {@link update} computes the marked ones alone.
 */
export class RouteState {
  readonly #contributions = new Map<ObjectKey, Contribution>();
  readonly #hosts = new ClaimTable<HostClaim>();
  readonly #backends = new ClaimTable<BackendClaim>();
  readonly #certificates = new ClaimTable<CertificateClaim>();
  readonly #serverNames = new ClaimTable<ServerNameClaim>();
  /** `namespace/name` of a Service → backends made of it. */
  readonly #backendsOf = new Map<string, Set<string>>();
  /** Host → certificate that won it. */
  readonly #winners = new Map<string, string>();
  readonly #problems = new ProblemIndex();
  readonly #readKeyPair: ReturnType<typeof keyPairReader>;
  #dirty = nothingDirty();
  #model: RouteModel;

  constructor(inspectKeyPair: InspectKeyPair, defaultCertificate: CertificateModel | undefined) {
    this.#readKeyPair = keyPairReader(inspectKeyPair);
    const certificates = defaultCertificate === undefined ? [] : [defaultCertificate];
    this.#model = {
      hosts: PersistentMap.from<HostRoutes>([]),
      backends: PersistentMap.from<BackendModel>([]),
      certificates: PersistentMap.from(certificates.map((record) => [record.name, record])),
      problems: [],
    };
  }

  /** Replaces what one object asks for; undefined when it is gone or not ours. */
  contribute(key: ObjectKey, after: Contribution | undefined): void {
    const before = this.#contributions.get(key);
    if (before === undefined && after === undefined) return;
    if (after === undefined) this.#contributions.delete(key);
    else this.#contributions.set(key, after);
    this.#problems.replace(`object ${key}`, after?.problems ?? []);
    const claims = { owner: key, before: before ?? UNCLAIMED, after: after ?? UNCLAIMED };
    this.#hosts.replace(pick(claims, 'hosts'), this.#dirty.hosts);
    this.#backends.replace(pick(claims, 'backends'), this.#dirty.backends);
    this.#certificates.replace(pick(claims, 'certificates'), this.#dirty.certificates);
    this.#serverNames.replace(pick(claims, 'serverNames'), this.#dirty.serverNames);
  }

  /** A Service or one of its EndpointSlices changed. */
  touchService(namespace: string, name: string): void {
    for (const backend of this.#backendsOf.get(place(namespace, name)) ?? []) {
      this.#dirty.backends.add(backend);
    }
  }

  touchSecret(namespace: string, name: string): void {
    const certificate = certificateName(namespace, name);
    if (this.#certificates.of(certificate).size > 0) this.#dirty.certificates.add(certificate);
  }

  /** Computes what is marked; records and collections that come out equal keep their identity. */
  update(sources: RouteSources): RouteModel {
    const dirty = this.#dirty;
    this.#dirty = nothingDirty();
    for (const host of dirty.serverNames) this.#updateServerName(host, dirty.certificates);
    const before = this.#model;
    const model: RouteModel = {
      hosts: replaced(before.hosts, dirty.hosts, (host) => this.#host(host)),
      backends: replaced(before.backends, dirty.backends, (name) => this.#backend(name, sources)),
      certificates: replaced(before.certificates, dirty.certificates, (name) =>
        this.#certificate(name, sources.secrets),
      ),
      problems: this.#problems.list(),
    };
    if (!sameParts(before, model)) this.#model = model;
    return this.#model;
  }

  #host(host: string): HostRoutes | undefined {
    const { routes, problems } = hostTable(host, this.#hosts.of(host).values());
    this.#problems.replace(`host ${host}`, problems);
    return routes;
  }

  #backend(name: string, sources: BackendSources): BackendModel | undefined {
    const claims = [...this.#backends.of(name).values()];
    const [first] = claims;
    if (first === undefined) {
      this.#problems.replace(`backend ${name}`, []);
      this.#forgetBackend(name);
      return undefined;
    }
    const { namespace, service } = first.reference;
    const backends = this.#backendsOf.get(place(namespace, service)) ?? new Set<string>();
    this.#backendsOf.set(place(namespace, service), backends.add(name));
    const { model, complaints } = serviceBackend(first.reference, sources);
    const problems = claims.flatMap((claim) => backendProblems(claim, complaints));
    this.#problems.replace(`backend ${name}`, problems);
    return model;
  }

  #forgetBackend(name: string): void {
    const reference = this.#model.backends.get(name)?.object;
    if (reference === undefined) return;
    const service = place(reference.namespace, reference.name);
    const backends = this.#backendsOf.get(service);
    backends?.delete(name);
    if (backends?.size === 0) this.#backendsOf.delete(service);
  }

  /** Decides which certificate a host is served with. */
  #updateServerName(host: string, certificates: Set<string>): void {
    const [winner, ...others] = [...this.#serverNames.of(host).values()].sort(byRuleAndAge);
    const decided = [this.#winners.get(host), winner?.certificate];
    for (const certificate of decided) {
      if (certificate !== undefined && certificate !== DEFAULT_CERTIFICATE) {
        certificates.add(certificate);
      }
    }
    if (winner === undefined) this.#winners.delete(host);
    else this.#winners.set(host, winner.certificate);
    const problems =
      winner === undefined ? [] : others.flatMap((claim) => lostServerName(host, claim, winner));
    this.#problems.replace(`server name ${host}`, problems);
  }

  #certificate(name: string, secrets: Store): CertificateModel | undefined {
    const claims = [...this.#certificates.of(name).values()];
    const [first] = claims;
    const source = `certificate ${name}`;
    if (first === undefined) {
      this.#problems.replace(source, []);
      return undefined;
    }
    const { namespace, secret } = first;
    const object = secrets.get(namespace, secret);
    const pair = this.#readKeyPair(`Secret ${namespace}/${secret}`, object);
    this.#problems.replace(source, certificateProblems(claims, pair));
    const hosts = this.#certificateHosts(name, claims);
    if (!pair.ok || hosts === undefined) return undefined;
    return {
      name,
      hosts,
      pem: pair.pem,
      object: object === undefined ? undefined : objectRef(object),
    };
  }

  /** Hosts that a certificate has won; undefined when it lost all it asked for. */
  #certificateHosts(name: string, claims: readonly CertificateClaim[]): string[] | undefined {
    const asked = new Set(claims.flatMap((claim) => claim.hosts));
    const won = [...asked].filter((host) => this.#winners.get(host) === name).sort();
    const unnamed = claims.some((claim) => claim.hosts.length === 0);
    return won.length === 0 && !unnamed ? undefined : won;
  }
}

const backendProblems = (claim: BackendClaim, complaints: readonly Complaint[]): Problem[] =>
  complaints.flatMap((complaint) =>
    claim.fields.map((field) =>
      problemOf(claim.owner.object, { ...complaint, field: `${field}.${complaint.field}` }),
    ),
  );

const certificateProblems = (claims: readonly CertificateClaim[], pair: KeyPair): Problem[] =>
  pair.ok
    ? []
    : claims.map(({ owner, field }) => problemOf(owner.object, { ...pair.complaint, field }));

/** A claim that named a Secret which is not served for the host. */
const lostServerName = (
  host: string,
  claim: ServerNameClaim,
  winner: ServerNameClaim,
): readonly Problem[] => {
  if ([winner.certificate, DEFAULT_CERTIFICATE].includes(claim.certificate)) return [];
  const { kind, namespace, name } = winner.owner.object;
  const problem = problemOf(claim.owner.object, {
    reason: 'CertificateConflict',
    field: claim.field,
    message: `${kind} ${namespace}/${name} decides which certificate host ${host} is served with; this Secret is not used for it.`,
    nextStep: 'Name the same Secret in both, or remove the host from one of them.',
  });
  return [problem];
};

/** The map with the records of `keys` computed anew; records that come out equal keep their identity. */
const replaced = <V>(
  map: PersistentMap<V>,
  keys: ReadonlySet<string>,
  compute: (key: string) => V | undefined,
): PersistentMap<V> => {
  const changes = new Map<string, V | undefined>();
  for (const key of keys) {
    const [before, after] = [map.get(key), compute(key)];
    changes.set(key, deepEqual(before, after) ? before : after);
  }
  return map.with(changes);
};

const sameParts = (left: RouteModel, right: RouteModel): boolean =>
  left.hosts === right.hosts &&
  left.backends === right.backends &&
  left.certificates === right.certificates &&
  left.problems === right.problems;
