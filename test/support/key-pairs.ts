import { generate } from 'selfsigned';

/** A certificate that signed itself, and its key, as PEM. For tests alone. */
export interface TestKeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** Makes a key pair for these server names, 2048 bits unless said otherwise. */
export const makeKeyPair = async (
  names: readonly string[],
  keySize: 1024 | 2048 = 2048,
): Promise<TestKeyPair> => {
  const altNames = names.map((value) => ({ type: 2 as const, value }));
  const pems = await generate([{ name: 'commonName', value: names[0] ?? 'test' }], {
    keySize,
    algorithm: 'sha256',
    extensions: [{ name: 'subjectAltName', altNames }],
  });
  return { certificate: pems.cert, key: pems.private };
};
