import { X509Certificate, sign as signBytes } from 'node:crypto';
import { generate } from 'selfsigned';
import { revocationList } from './revocation-list.ts';
import type { TestKeyPair } from './key-pairs.ts';

/** What a certificate says that an authority signs. */
export interface Issued {
  /** DNS names. */
  readonly names: readonly string[];
  /** Milliseconds from now. Default: an hour ago. */
  readonly fromMs?: number;
  /** Milliseconds from now. Default: in an hour. */
  readonly toMs?: number;
  /** May itself sign certificates. Default: no. */
  readonly authority?: boolean;
}

const HOUR_MS = 3_600_000;

/** A certificate authority that signs whatever a test wants. */
export class Authority {
  readonly certificate: string;
  readonly #key: string;

  private constructor({ certificate, key }: TestKeyPair) {
    this.certificate = certificate;
    this.#key = key;
  }

  /** One that signed itself. */
  static async root(name: string): Promise<Authority> {
    return new Authority(await sign({ names: [name], authority: true }));
  }

  async intermediate(name: string): Promise<Authority> {
    return new Authority(await this.issue({ names: [name], authority: true }));
  }

  issue(issued: Issued): Promise<TestKeyPair> {
    return sign(issued, { cert: this.certificate, key: this.#key });
  }

  /** A revocation list (PEM) of the authority that names these certificates. */
  revocations(revoked: readonly TestKeyPair[]): string {
    const { subject } = new X509Certificate(this.certificate);
    return revocationList({
      issuer: subject.replace(/^CN=/, ''),
      serials: revoked.map(({ certificate }) => new X509Certificate(certificate).serialNumber),
      sign: (bytes) => signBytes('sha256', bytes, this.#key),
    });
  }
}

async function sign(
  { names, fromMs = -HOUR_MS, toMs = HOUR_MS, authority = false }: Issued,
  ca?: { readonly cert: string; readonly key: string },
): Promise<TestKeyPair> {
  const now = Date.now();
  const pems = await generate([{ name: 'commonName', value: names[0] ?? 'nobody' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(now + fromMs),
    notAfterDate: new Date(now + toMs),
    ...(ca === undefined ? {} : { ca }),
    extensions: authority
      ? [
          { name: 'basicConstraints', cA: true, critical: true },
          { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
        ]
      : [
          { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
          { name: 'subjectAltName', altNames: names.map((value) => ({ type: 2, value })) },
        ],
  });
  return { certificate: pems.cert, key: pems.private };
}
