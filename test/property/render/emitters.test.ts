import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { EMITTERS } from '../../../src/render/language/emitters.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
const RUNS = LONG ? 1_000_000 : 10_000;
const TIMEOUT_MS = LONG ? 3_600_000 : 60_000;

const special = fc.constantFrom(
  ...Array.from('%"\'\\#$ {}[]()-,;!|~`\t\n\r\0\u007f\u0085\u2028\ud800a1./_:*@+=é日😀'),
);
const value = fc.oneof(
  fc.string({ unit: special, maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('__proto__', 'constructor', '../../etc/passwd', '%[env(HOME)]', '}', '--', '\\'),
);

/**
 * Words of a line as HAProxy splits it: quotes, backslashes, comments and white space. Written after its manual, not
 * after the emitters.
 */
const words = (line: string): string[] => {
  const piece =
    /'([^']*)'|\\(.)|"((?:[^"\\$]|\\.)*)"|([^\s'"\\#]+)|(?<space>[ \t]+)|(?<comment>#.*)/suy;
  const found: string[] = [];
  let word: string | undefined;
  while (piece.lastIndex < line.length) {
    const match = piece.exec(line);
    if (match === null) throw new Error('an open quote, or an environment variable');
    const { space, comment } = match.groups ?? {};
    if (comment !== undefined) break;
    if (space === undefined) word = (word ?? '') + match.slice(1, 5).join('');
    else if (word !== undefined) {
      found.push(word);
      word = undefined;
    }
  }
  return word === undefined ? found : [...found, word];
};

const unlogged = (word: string): string => {
  if (/(?:^|[^%])(?:%%)*%(?!%)/.test(word.replaceAll('%%', ''))) throw new Error('a log format');
  return word.replaceAll('%%', '%');
};

const WORDS: Readonly<Record<string, (word: string) => string>> = {
  token: (word) => word,
  quoted: (word) => word,
  regex: (word) => word,
  aclPattern: (word) => word,
  path: (word) => word,
  logFormat: unlogged,
  header: unlogged,
};

const broken = /[\p{Cc}\u2028\u2029]/u;

describe('an emitter gives exactly one word that means the value, or refuses (P9)', () => {
  for (const [name, meaning] of Object.entries(WORDS)) {
    test.prop([value], { numRuns: RUNS })(
      name,
      (text) => {
        const emitted = EMITTERS[name]?.(text);
        if (emitted?.ok !== true) return;
        const line = `before ${emitted.text} after`;
        expect(words(line).map((word, index) => (index === 1 ? meaning(word) : word))).toEqual([
          'before',
          text,
          'after',
        ]);
        expect(broken.test(emitted.text)).toBe(false);
      },
      TIMEOUT_MS,
    );
  }

  test.prop([value], { numRuns: RUNS })(
    'mapKey and mapValue: one line of one entry',
    (text) => {
      const [key, content] = [EMITTERS['mapKey']?.(text), EMITTERS['mapValue']?.(text)];
      if (key?.ok === true) {
        expect(/^(\S+) (.*)$/.exec(`${key.text} v`)?.slice(1)).toEqual([text, 'v']);
        expect(key.text.startsWith('#')).toBe(false);
      }
      if (content?.ok === true) {
        expect(/^(\S+)\s+(.*?)\s*$/.exec(`k ${content.text}`)?.slice(1)).toEqual(['k', text]);
        expect(broken.test(content.text)).toBe(false);
      }
    },
    TIMEOUT_MS,
  );

  test.prop([value], { numRuns: RUNS })(
    'comment: never ends its line',
    (text) => {
      const emitted = EMITTERS['comment']?.(text);
      expect(
        emitted?.ok === true && !broken.test(emitted.text) && emitted.text.isWellFormed(),
      ).toBe(true);
    },
    TIMEOUT_MS,
  );

  test.prop([value], { numRuns: RUNS })(
    'nothing but pem, comment and text takes control characters',
    (text) => {
      if (!broken.test(text) && text.isWellFormed()) return;
      for (const [name, emitter] of Object.entries(EMITTERS)) {
        if (!['comment', 'pem', 'text'].includes(name))
          expect([name, emitter(text).ok]).toEqual([name, false]);
      }
    },
  );

  test.prop([value], { numRuns: RUNS })(
    'text gives the value itself, or refuses what is neither printable nor line feed nor tab',
    (text) => {
      const isFine = text.isWellFormed() && !broken.test(text.replace(/[\n\t]/g, ''));
      const emitted = EMITTERS['text']?.(text);
      expect(emitted?.ok === true ? emitted.text : undefined).toBe(isFine ? text : undefined);
    },
  );
});

test.prop([
  fc.string({
    unit: fc.constantFrom('a', ' ', "'", '%', '-', '}', 'é'),
    minLength: 1,
    maxLength: 6,
  }),
])('quoted and logFormat refuse nothing that can be printed', (text) => {
  expect([EMITTERS['quoted']?.(text).ok, EMITTERS['logFormat']?.(text).ok]).toEqual([true, true]);
});
