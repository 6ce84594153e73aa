import { isAwaited } from '../snapshot/content.ts';
import { objectRef, type ObjectKey } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Store } from '../snapshot/snapshot.ts';
import { keyPairReader, type KeyPair } from './certificate.ts';
import { ClaimTable, recomputed } from './claim-table.ts';
import { problemOf } from './complaint.ts';
import {
  byRuleAndAge,
  DEFAULT_CERTIFICATE,
  type CertificateClaim,
  type Contribution,
  type ServerNameClaim,
} from './contribution.ts';
import type { CertificateModel, InspectKeyPair, NamedSecret, RouteModel } from './model.ts';
import { readHost } from './names.ts';
import type { ProblemIndex } from './problem-index.ts';
import { certificateName } from './read-tls.ts';

type TlsModel = Pick<RouteModel, 'certificates' | 'secrets' | 'awaited'>;

/** Certificates as all contributions together ask for them, and who is served with which. */
export class CertificateState {
  readonly #claims = new ClaimTable<CertificateClaim>();
  readonly #serverNames = new ClaimTable<ServerNameClaim>();
  /** Host → certificate that won it. */
  readonly #winners = new Map<string, string>();
  /** Certificates that somebody serves without naming hosts → the hosts they name themselves. */
  readonly #ownHosts = new Map<string, readonly string[]>();
  /** The other way round. */
  readonly #ownedBy = new Map<string, Set<string>>();
  /** Certificates whose Secret is there without its content. */
  readonly #awaited = new Set<string>();
  readonly #problems: ProblemIndex;
  readonly #readKeyPair: ReturnType<typeof keyPairReader>;

  constructor(problems: ProblemIndex, inspectKeyPair: InspectKeyPair) {
    this.#problems = problems;
    this.#readKeyPair = keyPairReader(inspectKeyPair);
  }

  replace(
    owner: ObjectKey,
    before: Contribution | undefined,
    after: Contribution | undefined,
  ): void {
    this.#claims.replace({ owner, before: before?.certificates, after: after?.certificates });
    this.#serverNames.replace({ owner, before: before?.serverNames, after: after?.serverNames });
  }

  touchSecret(namespace: string, name: string): void {
    const certificate = certificateName(namespace, name);
    if (this.#claims.has(certificate)) this.#claims.touch(certificate);
  }

  *update(before: TlsModel, store: Store): Generator<void, TlsModel> {
    const hosts = this.#serverNames.takeTouched();
    for (const host of hosts) {
      this.#decide(host);
      for (const name of this.#ownedBy.get(host) ?? []) this.#claims.touch(name);
    }
    const touched = this.#claims.takeTouched();
    const secrets = yield* recomputed(before.secrets, touched, (name) => this.#named(name));
    const certificates = yield* recomputed(before.certificates, touched, (name) =>
      this.#compute(name, store),
    );
    return { secrets, certificates, awaited: this.#awaited.size };
  }

  #named(name: string): NamedSecret | undefined {
    const [first] = this.#claims.of(name);
    return first === undefined ? undefined : { namespace: first.namespace, secret: first.secret };
  }

  /** Decides which certificate a host is served with. */
  #decide(host: string): void {
    const [winner, ...others] = [...this.#serverNames.of(host)].sort(byRuleAndAge);
    for (const certificate of [this.#winners.get(host), winner?.certificate]) {
      if (certificate !== undefined && certificate !== DEFAULT_CERTIFICATE) {
        this.#claims.touch(certificate);
      }
    }
    if (winner === undefined) this.#winners.delete(host);
    else this.#winners.set(host, winner.certificate);
    const problems =
      winner === undefined ? [] : others.flatMap((claim) => lostServerName(host, claim, winner));
    this.#problems.replace(`server name ${host}`, problems);
  }

  #compute(name: string, secrets: Store): CertificateModel | undefined {
    const claims = this.#claims.of(name);
    const source = `certificate ${name}`;
    this.#awaited.delete(name);
    const [first] = claims;
    if (first === undefined) {
      this.#problems.replace(source, []);
      this.#own(name, []);
      return undefined;
    }
    const { namespace, secret } = first;
    const object = secrets.get(namespace, secret);
    if (object !== undefined && isAwaited(object)) this.#awaited.add(name);
    const pair = this.#readKeyPair(`Secret ${namespace}/${secret}`, object);
    this.#problems.replace(source, unusable(claims, pair));
    const hosts = this.#hostsOf(name, claims, pair.ok ? pair.names : []);
    if (!pair.ok || object === undefined || hosts.length === 0) return undefined;
    return { name, hosts, pem: pair.pem, object: objectRef(object) };
  }

  /**
   * Hosts that a certificate has won. Whoever names no hosts gets those of the certificate that nobody else has, so that
   * what a certificate says about itself takes no host away.
   */
  #hostsOf(
    name: string,
    claims: readonly CertificateClaim[],
    names: readonly string[],
  ): readonly string[] {
    const unnamed = claims.some(({ hosts }) => hosts.length === 0);
    const ownHosts = (unnamed ? names : [])
      .map((host) => readHost(host))
      .filter((host) => host !== undefined);
    this.#own(name, ownHosts);
    const asked = claims.flatMap(({ hosts }) => hosts);
    const won = asked.filter((host) => this.#winners.get(host) === name);
    const own = ownHosts.filter((host) => this.#winners.get(host) === undefined);
    return [...new Set([...won, ...own])].sort();
  }

  /** Remembers which hosts a certificate may be served for because it names them. */
  #own(name: string, hosts: readonly string[]): void {
    for (const host of this.#ownHosts.get(name) ?? []) {
      const names = this.#ownedBy.get(host);
      names?.delete(name);
      if (names?.size === 0) this.#ownedBy.delete(host);
    }
    if (hosts.length === 0) this.#ownHosts.delete(name);
    else this.#ownHosts.set(name, hosts);
    for (const host of hosts) {
      this.#ownedBy.set(host, (this.#ownedBy.get(host) ?? new Set()).add(name));
    }
  }
}

const unusable = (claims: readonly CertificateClaim[], pair: KeyPair): Problem[] =>
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
