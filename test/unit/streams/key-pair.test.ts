import { beforeAll, describe, expect, test } from 'vitest';
import { inspectKeyPair } from '../../../src/streams/key-pair.ts';
import { makeKeyPair, type TestKeyPair } from '../../support/key-pairs.ts';

let pair: TestKeyPair;
let other: TestKeyPair;
let weak: TestKeyPair;

beforeAll(async () => {
  [pair, other, weak] = await Promise.all([
    makeKeyPair(['Shop.example.com', '*.example.com']),
    makeKeyPair(['other.example.com']),
    makeKeyPair(['weak.example.com'], 1024),
  ]);
});

describe('inspectKeyPair', () => {
  test('says what a certificate is for and when it ends', () => {
    const report = inspectKeyPair(pair.certificate, pair.key);
    expect(report).toMatchObject({ ok: true, names: ['*.example.com', 'shop.example.com'] });
    expect(report.ok && Date.parse(report.notAfter)).toBeGreaterThan(0);
  });

  test('accepts a chain', () => {
    const chain = `${pair.certificate}\n${other.certificate}`;
    expect(inspectKeyPair(chain, pair.key)).toMatchObject({ ok: true });
  });

  test.each<[string, () => readonly [string, string], RegExp]>([
    ['a key of another certificate', () => [pair.certificate, other.key], /does not belong/],
    ['no certificate', () => ['', pair.key], /no certificate/],
    ['a certificate that is none', () => [fake('CERTIFICATE'), pair.key], /certificate in tls.crt/],
    [
      'a broken certificate further down the chain',
      () => [`${pair.certificate}\n${fake('CERTIFICATE')}`, pair.key],
      /certificate in tls.crt/,
    ],
    ['a key that is none', () => [pair.certificate, fake('PRIVATE KEY')], /key in tls.key/],
    ['a key too weak for the TLS library', () => [weak.certificate, weak.key], /refuses the pair/],
  ])('refuses %s, without a word of the key', (_name, input, message) => {
    const report = inspectKeyPair(...input());
    expect(report.ok).toBe(false);
    if (report.ok) return;
    expect(report.message).toMatch(message);
    expect(report.message).not.toMatch(/BEGIN|Tk9U/);
  });
});

const fake = (what: string): string =>
  `-----BEGIN ${what}-----\nTk9UIE9ORQ==\n-----END ${what}-----\n`;
