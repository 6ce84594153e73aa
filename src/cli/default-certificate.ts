import { readFile, writeFile } from 'node:fs/promises';

const YEAR_MS = 365 * 24 * 3_600_000;

/**
 * PEM of a self-signed certificate and its key, served where no Ingress brought a certificate. Made once per state
 * directory, so that clients who accepted it are not asked again; readable for this user alone.
 */
export const defaultCertificate = async (file: string): Promise<string> => {
  const known = await readFile(file, 'utf8').catch(() => '');
  if (known.includes('PRIVATE KEY') && known.includes('CERTIFICATE')) return known;
  // Imported here: making a certificate is rare, the library is large.
  const { generate } = await import('selfsigned');
  const now = Date.now();
  const pair = await generate([{ name: 'commonName', value: 'haptic default certificate' }], {
    // Made in a millisecond, where RSA takes a tenth of a second of the first start.
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(now - 60_000),
    notAfterDate: new Date(now + 10 * YEAR_MS),
  });
  const pem = `${pair.cert.trim()}\n${pair.private.trim()}\n`;
  await writeFile(file, pem, { mode: 0o600 });
  return pem;
};
