import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { InspectKeyPair, KeyPairReport } from '../routing/model.ts';

const refuse = (message: string): KeyPairReport => ({ ok: false, message });

/** Alternative names of type DNS, else the common name. */
const namesOf = (certificate: X509Certificate): readonly string[] => {
  const names = (certificate.subjectAltName ?? '')
    .split(', ')
    .filter((entry) => entry.startsWith('DNS:'))
    .map((entry) => entry.slice('DNS:'.length).toLowerCase());
  const [, commonName] = /^CN=(.*)$/m.exec(certificate.subject) ?? [];
  return [...new Set(names.length > 0 || commonName === undefined ? names : [commonName])].sort();
};

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** What the TLS library says, without anything of the key: its code words only. */
const reasonOf = (error: unknown): string => {
  const reason: unknown = error instanceof Error && 'reason' in error ? error.reason : undefined;
  return typeof reason === 'string' && /^[\w ,/-]{1,80}$/.test(reason) ? reason : 'unreadable';
};

const attempt = <T>(read: () => T, what: string): T | string => {
  try {
    return read();
  } catch (error: unknown) {
    return `${what} (${reasonOf(error)})`;
  }
};

/**
 * Inspects a key pair as HAProxy's TLS library will: every certificate of the chain must parse, the key must belong to
 * the first one, and both must be strong enough for the default security level, else loading them would fail.
 *
 * @returns the names that the certificate is for and its end (ISO 8601), or what is wrong, without Secret values
 */
export const inspectKeyPair: InspectKeyPair = (certificate, key) => {
  const chain = attempt(
    () => (certificate.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem)),
    'a certificate in tls.crt cannot be read',
  );
  if (typeof chain === 'string') return refuse(chain);
  const [leaf] = chain;
  if (leaf === undefined) return refuse('tls.crt has no certificate');
  const privateKey = attempt(() => createPrivateKey(key), 'the key in tls.key cannot be read');
  if (typeof privateKey === 'string') return refuse(privateKey);
  if (!leaf.checkPrivateKey(privateKey))
    return refuse('the key does not belong to the certificate');
  const loaded = attempt(
    () => createSecureContext({ cert: certificate, key }),
    'the TLS library refuses the pair',
  );
  if (typeof loaded === 'string') return refuse(loaded);
  return { ok: true, names: namesOf(leaf), notAfter: new Date(leaf.validTo).toISOString() };
};
