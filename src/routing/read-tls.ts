import {
  DEFAULT_CERTIFICATE,
  type CertificateClaim,
  type Owner,
  type ServerNameClaim,
} from './contribution.ts';
import type { Report } from './complaint.ts';
import { shown } from './complaint.ts';
import { at, listAt } from './fields.ts';
import { ANY_HOST, coversHost, isSubdomain, readHost } from './names.ts';

/** What `spec.tls` of one Ingress asks for. */
export interface ReadTls {
  /** Whether an entry covers a host of the rules. */
  readonly covers: (host: string) => boolean;
  readonly certificates: ReadonlyMap<string, CertificateClaim>;
  readonly serverNames: ReadonlyMap<string, ServerNameClaim>;
}

/** What the readers of one object share. */
export interface ReadContext {
  readonly owner: Owner;
  readonly report: Report;
}

interface Entry {
  /** Undefined: all hosts of the rules. */
  readonly hosts: readonly string[] | undefined;
  readonly secret: string | undefined;
  readonly field: string;
}

/** `certs/<namespace>_<secret>.pem` must stay a file name and below 255 bytes of path. */
const MAX_CERTIFICATE_NAME = 240;

/** Name of the certificate for a Secret; injective, as neither name has an underscore. */
export const certificateName = (namespace: string, secret: string): string =>
  `${namespace}_${secret}`;

const readEntry = (entry: unknown, field: string, { owner, report }: ReadContext): Entry => {
  const hosts: string[] = [];
  listAt(entry, 'hosts').forEach((host, index) => {
    const name = typeof host === 'string' ? readHost(host) : undefined;
    if (name !== undefined) hosts.push(name);
    else {
      report({
        reason: 'InvalidHost',
        field: `${field}.hosts[${index}]`,
        message: `${shown(host)} is not a DNS name; it is left out.`,
        nextStep: 'Write a DNS name, or *. followed by one.',
      });
    }
  });
  const given = listAt(entry, 'hosts').length > 0;
  const secret = at(entry, 'secretName');
  const base = { hosts: given ? hosts : undefined, field };
  if (secret === undefined || secret === '') return { ...base, secret: undefined };
  const fits =
    typeof secret === 'string' &&
    isSubdomain(secret) &&
    certificateName(owner.object.namespace, secret).length <= MAX_CERTIFICATE_NAME;
  if (!fits) {
    report({
      reason: 'InvalidSecretName',
      field: `${field}.secretName`,
      message: `No Secret can be called ${shown(secret)}; the default certificate is served.`,
      nextStep: 'Name a Secret of type kubernetes.io/tls of the same namespace.',
    });
  }
  return { ...base, secret: fits ? secret : undefined };
};

class TlsClaims {
  readonly certificates = new Map<string, CertificateClaim>();
  readonly serverNames = new Map<string, ServerNameClaim>();
  readonly #owner: Owner;
  readonly #ruleHosts: readonly string[];

  constructor(owner: Owner, ruleHosts: readonly string[]) {
    this.#owner = owner;
    this.#ruleHosts = ruleHosts;
  }

  add(secret: string | undefined, hosts: readonly string[], field: string): void {
    const { namespace } = this.#owner.object;
    const certificate =
      secret === undefined ? DEFAULT_CERTIFICATE : certificateName(namespace, secret);
    if (secret !== undefined) this.#addCertificate(secret, hosts, field);
    for (const host of hosts) {
      const claimed = this.serverNames.get(host)?.certificate ?? DEFAULT_CERTIFICATE;
      if (claimed !== DEFAULT_CERTIFICATE) continue;
      const hasRule = this.#ruleHosts.some((rule) => coversHost(host, rule));
      this.serverNames.set(host, { owner: this.#owner, certificate, hasRule, field });
    }
  }

  #addCertificate(secret: string, hosts: readonly string[], field: string): void {
    const owner = this.#owner;
    const { namespace } = owner.object;
    const certificate = certificateName(namespace, secret);
    const before = this.certificates.get(certificate);
    const names = [...new Set([...(before?.hosts ?? []), ...hosts])].sort();
    const claim = { owner, namespace, secret, hosts: names, field: before?.field ?? field };
    this.certificates.set(certificate, claim);
  }
}

const NO_TLS: ReadTls = { covers: () => false, certificates: new Map(), serverNames: new Map() };

/**
 * Reads `spec.tls`.
 *
 * @param ruleHosts hosts of the rules, which an entry without hosts stands for
 */
export const readTls = (
  ingress: unknown,
  ruleHosts: readonly string[],
  context: ReadContext,
): ReadTls => {
  if (listAt(ingress, 'spec', 'tls').length === 0) return NO_TLS;
  const entries = listAt(ingress, 'spec', 'tls').map((entry, index) =>
    readEntry(entry, `spec.tls[${index}]`, context),
  );
  const claims = new TlsClaims(context.owner, ruleHosts);
  for (const { hosts, secret, field } of entries) {
    if (hosts?.length === 0) continue; // none of them was a host, and it was told
    const names = (hosts ?? ruleHosts).filter((host) => host !== ANY_HOST);
    claims.add(secret, names, `${field}.secretName`);
  }
  const covers = (host: string): boolean =>
    entries.some(({ hosts }) => hosts?.some((name) => coversHost(name, host)) ?? true);
  return { covers, certificates: claims.certificates, serverNames: claims.serverNames };
};
