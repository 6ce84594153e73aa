import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';

/** What one side of a mutual TLS connection shows and trusts: `tls.crt`, `tls.key` and `ca.crt` of a Secret. */
export interface Credentials {
  /** Own certificate, then its intermediates, as PEM. */
  readonly cert: string;
  readonly key: string;
  /** Every authority that may have signed the other side's certificate, as PEM. */
  readonly ca: string;
  readonly authorities: readonly X509Certificate[];
  /** End of the own certificate in milliseconds since 1970. */
  readonly notAfterMs: number;
  /** Equal for equal bytes of the three files. Tells nothing of the key. */
  readonly fingerprint: string;
}

/** Names of the three files, as `kubernetes.io/tls` Secrets and cert-manager call them. */
const FILES = ['tls.crt', 'tls.key', 'ca.crt'] as const;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const BEGIN = /-----BEGIN CERTIFICATE-----/g;
const LOOKS = 3;

/**
 * Reads and checks the credentials in a directory: all certificates whole, the key that of the first one, all of it fit
 * for the TLS library. The files are read twice, so that a replacement in the middle does not mix old and new.
 *
 * @throws Error that names the file and what is wrong with it, never a word of the key
 */
export async function readCredentials(dir: string): Promise<Credentials> {
  let before = await readFiles(dir);
  for (let look = 1; look < LOOKS; look += 1) {
    const after = await readFiles(dir);
    if (after.every((text, index) => text === before[index])) return checked(after);
    before = after;
  }
  throw new Error('the files change while they are read');
}

/** Whether the certificate is for exactly this DNS name: no wildcards, no common name. */
export const isNamed = (certificate: X509Certificate, name: string): boolean =>
  certificate.checkHost(name, { subject: 'never', wildcards: false }) !== undefined;

/** Whether text can be a DNS name of a certificate; a leading dot would match everything below. */
export const isDnsName = (name: string): boolean =>
  name.length <= 253 && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*$/i.test(name);

/**
 * Whether the certificate, or one that its side sent to vouch for it, was signed by one of these authorities and is valid
 * now. For connections that are older than the authorities: the links of the chain itself were checked by the handshake.
 */
export function isTrusted(
  certificate: X509Certificate,
  { authorities }: Credentials,
  nowMs: number,
): boolean {
  const isOver = ({ validToDate }: X509Certificate): boolean => validToDate.getTime() < nowMs;
  if (isOver(certificate)) return false;
  const isSigned = (link: X509Certificate): boolean =>
    authorities.some((ca) => !isOver(ca) && link.checkIssued(ca) && link.verify(ca.publicKey));
  const seen = new Set<string>();
  let link: X509Certificate | undefined = certificate;
  while (link !== undefined && !seen.has(link.fingerprint256)) {
    if (isSigned(link)) return true;
    seen.add(link.fingerprint256);
    link = link.issuerCertificate;
  }
  return false;
}

const readFiles = (dir: string): Promise<readonly string[]> =>
  Promise.all(FILES.map((name) => readFile(join(dir, name), 'utf8')));

function checked(texts: readonly string[]): Credentials {
  const [certText = '', key = '', caText = ''] = texts;
  const chain = certificates(certText, 'tls.crt');
  const authorities = certificates(caText, 'ca.crt');
  const [leaf] = chain;
  if (leaf === undefined) throw new Error('tls.crt holds no whole certificate');
  const privateKey = attempt(() => createPrivateKey(key), 'tls.key holds no whole private key');
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new Error('tls.key does not belong to the first certificate of tls.crt');
  }
  const [cert, ca] = [textOf(chain), textOf(authorities)];
  attempt(() => createSecureContext({ cert, key, ca }), 'the TLS library refuses tls.crt');
  const fingerprint = createHash('sha256').update(JSON.stringify(texts)).digest('hex');
  return { cert, key, ca, authorities, notAfterMs: leaf.validToDate.getTime(), fingerprint };
}

/** As PEM of our own: the TLS library silently ignores a block that begins on the line where another ends. */
const textOf = (chain: readonly X509Certificate[]): string => chain.map(String).join('\n');

/** All certificates of a file; one that ends in the middle makes all of them unusable. */
function certificates(text: string, file: string): readonly X509Certificate[] {
  const blocks = text.match(CERTIFICATE) ?? [];
  if (blocks.length === 0) throw new Error(`${file} holds no whole certificate`);
  if (blocks.length !== (text.match(BEGIN) ?? []).length) {
    throw new Error(`${file} ends in the middle of a certificate`);
  }
  return blocks.map((pem) =>
    attempt(() => new X509Certificate(pem), `${file} holds a certificate that cannot be read`),
  );
}

/** The TLS library's own words may quote what it was given, so they are not handed on. */
function attempt<T>(read: () => T, complaint: string): T {
  try {
    return read();
  } catch (error: unknown) {
    throw new Error(complaint, { cause: error });
  }
}
