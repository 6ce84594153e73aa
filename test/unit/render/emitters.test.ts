import { describe, expect, test } from 'vitest';
import {
  EMITTERS,
  MAX_MAP_KEY,
  MAX_MAP_VALUE,
  MAX_VALUE,
} from '../../../src/render/language/emitters.ts';

const emitted = (name: string, value: string): string | undefined => {
  const emission = EMITTERS[name]?.(value);
  return emission?.ok === true ? emission.text : undefined;
};

const BUFFER = 16_384;

describe('emitters (P9)', () => {
  test.each([
    ['regex', '-f', 'a flag'],
    ['regex', '-i', 'a flag'],
    ['regex', '}', 'the end of an anonymous ACL'],
    ['regex', '{', 'a brace'],
    ['aclPattern', '-f', 'a flag'],
    ['aclPattern', '}', 'the end of an anonymous ACL'],
    ['path', 'opt@maps/a.map', 'a file that may be missing'],
    ['path', 'virt@a', 'no file at all'],
    ['path', '@store/a.pem', 'a certificate of a store'],
    ['path', '../a', 'a file elsewhere'],
    ['path', 'a/../b', 'a file elsewhere'],
    ['path', '/etc/passwd', 'a file elsewhere'],
    ['path', '-f', 'an option'],
    ['token', '-f', 'an option'],
    ['mapKey', '#a', 'a comment'],
    ['mapKey', 'a b', 'a key and a value'],
    ['mapValue', ' a', 'a value without its blank'],
  ])('%s refuses %s, which would be %s', (name, value) => {
    expect(emitted(name, value)).toBeUndefined();
  });

  test.each([
    ['regex', '[-]f'],
    ['regex', '^-f'],
    ['path', 'maps/a@b.map'],
    ['aclPattern', '{}'],
  ])('%s takes %s', (name, value) => {
    expect(emitted(name, value)).toBeDefined();
  });

  test('limits count bytes, as the buffers of HAProxy do', () => {
    const wide = '日';
    const fits = (limit: number): string => wide.repeat(Math.floor(limit / 3));
    expect(emitted('quoted', fits(MAX_VALUE))).toBeDefined();
    expect(emitted('quoted', `${fits(MAX_VALUE)}${wide}`)).toBeUndefined();
    expect(emitted('logFormat', '%'.repeat(MAX_VALUE))).toBeDefined();
    expect(emitted('mapKey', `${fits(MAX_MAP_KEY)}${wide}`)).toBeUndefined();
    expect(emitted('mapValue', `${fits(MAX_MAP_VALUE)}${wide}`)).toBeUndefined();
    const line = `${emitted('mapKey', fits(MAX_MAP_KEY)) ?? ''} ${emitted('mapValue', fits(MAX_MAP_VALUE)) ?? ''}`;
    expect(Buffer.byteLength(line)).toBeLessThan(BUFFER);
  });

  test.each([
    ['a b', "'a b'"],
    ['a  b', `'a%[str("  ")]b'`],
    [' a ', `'%[str(" ")]a%[str(" ")]'`],
    ['%  %', `'%%%[str("  ")]%%'`],
    ['%[str("  ")]', `'%%[str("%[str("  ")]")]'`],
  ])('logFormat keeps the blanks of "%s", which a log line would merge', (value, text) => {
    expect(emitted('logFormat', value)).toBe(text);
  });

  test('pem refuses a block that does not begin its line, which HAProxy would skip', () => {
    const block = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    expect(emitted('pem', `${block} \n\n${block}`)).toBeDefined();
    for (const between of [' ', '\t', '\u2028', '\n\u00a0']) {
      expect(emitted('pem', `${block}${between}${block}`)).toBeUndefined();
    }
  });

  test('comments end in front of half a character', () => {
    expect(emitted('comment', `${'a'.repeat(399)}😀`)?.isWellFormed()).toBe(true);
  });
});
