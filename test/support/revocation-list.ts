/** What a revocation list says, and who signs it. */
interface Revocations {
  /** Common name of the authority. */
  readonly issuer: string;
  /** Hexadecimal serial numbers. */
  readonly serials: readonly string[];
  /** ECDSA with SHA-256. */
  readonly sign: (bytes: Buffer) => Buffer;
}

const SEQUENCE = 0x30;

/** A revocation list of version 2 (RFC 5280, section 5) that holds from an hour ago for two hours, as PEM. */
export function revocationList({ issuer, serials, sign }: Revocations): string {
  const now = Date.now();
  const [from, to] = [time(now - 3_600_000), time(now + 3_600_000)];
  const ecdsaWithSha256 = der(SEQUENCE, der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
  const commonName = der(SEQUENCE, der(0x06, Buffer.from('550403', 'hex')), utf8(issuer));
  const entries = serials.map((serial) => der(SEQUENCE, integer(serial), from));
  const list = der(
    SEQUENCE,
    ...[integer('01'), ecdsaWithSha256, der(SEQUENCE, der(0x31, commonName)), from, to],
    ...(entries.length === 0 ? [] : [der(SEQUENCE, ...entries)]),
  );
  const signature = der(0x03, Buffer.from([0]), sign(list));
  const text = der(SEQUENCE, list, ecdsaWithSha256, signature).toString('base64');
  const lines = text.match(/.{1,64}/g) ?? [];
  return ['-----BEGIN X509 CRL-----', ...lines, '-----END X509 CRL-----', ''].join('\n');
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const utf8 = (text: string): Buffer => der(0x0c, Buffer.from(text));

/** Positive: a high first bit would mean the opposite. */
function integer(hex: string): Buffer {
  const bytes = Buffer.from(hex, 'hex');
  return (bytes[0] ?? 0) > 127 ? der(0x02, Buffer.from([0]), bytes) : der(0x02, bytes);
}

const time = (ms: number): Buffer =>
  der(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));
