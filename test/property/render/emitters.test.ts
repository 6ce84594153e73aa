import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { EMITTERS, type Emission } from '../../../src/render/language/emitters.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
const RUNS = LONG ? 1_000_000 : 10_000;
const TIMEOUT_MS = LONG ? 3_600_000 : 60_000;

const special = fc.constantFrom(
  ...Array.from(
    '%"\'\\#$ {}[]()-,;!|~`\t\n\r\0\u007f\u0085\u2028\ud800a1./_:*@+=é日😀\udc00\ufeff\u00a0',
  ),
);
const plain = fc.constantFrom(...Array.from('ab1_./-:@+=*~'));
/** Few of them: up to the limits, and beyond. */
const long = fc
  .tuple(
    fc.oneof(special, plain),
    fc.integer({ min: 200, max: 10_000 }),
    fc.string({ maxLength: 3 }),
  )
  .map(([unit, count, end]) => `${unit.repeat(count)}${end}`);
const hostile = fc.constantFrom(
  ...[
    '__proto__',
    'constructor',
    '../../etc/passwd',
    '%[env(HOME)]',
    '}',
    '--',
    '\\',
    '-f',
    '$HOME',
  ],
  ...[
    "'\\''",
    '"',
    '%%',
    '%',
    '#',
    ' ',
    '\u00a0',
    'opt@a',
    '-----BEGIN A-----\nQQ==\n-----END A-----\n',
  ],
);
const value = fc.oneof(
  { arbitrary: fc.string({ unit: special, maxLength: 12 }), weight: 40 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 20 }), weight: 40 },
  { arbitrary: fc.string({ unit: plain, maxLength: 12 }), weight: 20 },
  { arbitrary: fc.string({ unit: 'grapheme', maxLength: 8 }), weight: 10 },
  { arbitrary: hostile, weight: 10 },
  { arbitrary: long, weight: 1 },
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

/** The only word between two others. */
const oneWord = (text: string): string => {
  const [before, word = '', after, ...more] = words(`before ${text} after`);
  if (before !== 'before' || after !== 'after' || more.length > 0) throw new Error('not one word');
  return word;
};

/** What a log format prints: text, doubled percent signs, and constants. Text loses blanks beside blanks in a log line. */
const logged = (text: string, mergesBlanks = true): string => {
  const pieces = logPieces(oneWord(text));
  const merged = pieces.map(({ text: one, isConstant }) => (isConstant ? '_' : one)).join('');
  if (mergesBlanks && ` ${merged} `.includes('  ')) throw new Error('blanks are merged');
  return pieces.map(({ text: one }) => one).join('');
};

interface LogPiece {
  readonly text: string;
  readonly isConstant: boolean;
}

const logPieces = (word: string): readonly LogPiece[] => {
  const piece = /(?<percent>%%)|%\[str\("(?<blanks> +)"\)\]|(?<plain>[^%]+)/sy;
  const found: LogPiece[] = [];
  while (piece.lastIndex < word.length) {
    const groups = piece.exec(word)?.groups;
    if (groups === undefined) throw new Error('something is evaluated');
    const { percent, blanks, plain: text = '' } = groups;
    if (blanks !== undefined) found.push({ text: blanks, isConstant: true });
    else found.push({ text: percent === undefined ? text : '%', isConstant: false });
  }
  return found;
};

const pattern = (text: string): string => {
  const word = oneWord(text);
  if (word.startsWith('-') || word === '}' || word === '{') throw new Error('no pattern');
  return word;
};

const fileName = (text: string): string => {
  const parts = oneWord(text).split('/');
  if (parts.some((part) => part === '' || part.startsWith('.'))) throw new Error('elsewhere');
  if (parts[0]?.includes('@') === true) throw new Error('a prefix');
  return oneWord(text);
};

const matched = (line: string, expression: RegExp): string => {
  const found = expression.exec(line)?.[1];
  if (found === undefined || line.startsWith('#')) throw new Error('not one entry');
  return found;
};

const BROKEN = /[\p{Cc}\u2028\u2029]/u;

const oneLine = (text: string): string => {
  if (BROKEN.test(text) || !text.isWellFormed()) throw new Error('a control character');
  return text;
};

/** What HAProxy, or whoever reads the file, makes of the text in its place. */
const MEANINGS: Readonly<Record<string, (text: string) => string>> = {
  token: oneWord,
  quoted: oneWord,
  regex: pattern,
  aclPattern: pattern,
  path: fileName,
  logFormat: (text) => logged(text),
  header: (text) => logged(text, false),
  mapKey: (text) => matched(`${text} v`, /^(\S+) v$/),
  mapValue: (text) => matched(`k ${text}`, /^k\s+(.*?)\s*$/),
};

const emit = (name: string, text: string): Emission => {
  const emitter = EMITTERS[name];
  if (emitter === undefined) throw new Error(`no emitter ${name}`);
  return emitter(text);
};

describe('an emitter refuses, or gives exactly one word, value or line that means the value (P9)', () => {
  for (const [name, meaning] of Object.entries(MEANINGS)) {
    test.prop([value], { numRuns: RUNS })(
      name,
      (text) => {
        const emitted = emit(name, text);
        if (!emitted.ok) expect(emitted.reason).not.toBe('');
        // A function from the text back to the value: the emitter is injective.
        else expect(meaning(oneLine(emitted.text))).toBe(text);
      },
      TIMEOUT_MS,
    );
  }

  test.prop([value], { numRuns: RUNS })(
    'comment: never ends its line',
    (text) => {
      const emitted = emit('comment', text);
      expect(emitted.ok && words(`before # ${oneLine(emitted.text)}`)).toEqual(['before']);
    },
    TIMEOUT_MS,
  );

  test.prop([value], { numRuns: RUNS })(
    'text: the value itself, or refuses what is neither printable nor line feed nor tab',
    (text) => {
      const isFine = text.isWellFormed() && !BROKEN.test(text.replace(/[\n\t]/g, ''));
      const emitted = emit('text', text);
      expect(emitted.ok ? emitted.text : undefined).toBe(isFine ? text : undefined);
    },
    TIMEOUT_MS,
  );

  const block = fc
    .tuple(
      fc.constantFrom('CERTIFICATE', 'RSA PRIVATE KEY', 'A'),
      fc.base64String({ minLength: 4 }),
    )
    .map(([label, body]) => `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`);
  const pemLike = fc
    .array(fc.oneof(block, value, fc.constantFrom('\n', '\r\n', '-----BEGIN A-----\n')), {
      maxLength: 3,
    })
    .map((parts) => parts.join(''));

  test.prop([pemLike], { numRuns: RUNS })(
    'pem: lines of PEM blocks, the same but for line ends, or refuses',
    (text) => {
      const emitted = emit('pem', text);
      if (!emitted.ok) return;
      const lines = emitted.text.split('\n');
      expect(
        lines.filter(
          (line) => !/^(?:-----(?:BEGIN|END) [A-Z0-9 ]+-----|[A-Za-z0-9+/=]*|\s*)$/.test(line),
        ),
      ).toEqual([]);
      expect(emitted.text.trimEnd()).toBe(text.replaceAll('\r\n', '\n').trimEnd());
    },
    TIMEOUT_MS,
  );

  test('every emitter there is', () => {
    const proven = [...Object.keys(MEANINGS), 'comment', 'text', 'pem'];
    expect(proven.sort()).toEqual(Object.keys(EMITTERS).sort());
  });
});

test.prop([
  fc.string({
    unit: fc.constantFrom('a', ' ', "'", '%', '-', '}', 'é', '"', '\\', '#', '$', '日', '😀'),
    minLength: 1,
    maxLength: 6,
  }),
])('quoted and logFormat refuse nothing that can be printed (P9)', (text) => {
  expect([emit('quoted', text).ok, emit('logFormat', text).ok]).toEqual([true, true]);
});
