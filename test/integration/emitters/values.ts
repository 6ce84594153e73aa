/** Strings that emitters are tried with on a real HAProxy. */
import fc from 'fast-check';
import { EMITTERS, MAX_VALUE } from '../../../src/render/language/emitters.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
/** Random strings tried for each emitter. */
const CASES = LONG ? 3000 : 250;
/** The same strings in every run, others in each long one. */
export const SEED = LONG ? fc.sample(fc.maxSafeNat(), 1)[0] : 7;

/** Strings that hurt, and strings made of characters that HAProxy gives a meaning to. */
const NASTY = [
  ...[
    '%',
    '%%',
    '%[env(HOME)]',
    '%{+Q}r',
    '%ci',
    '"',
    "'",
    '\\',
    '\\\\',
    "\\'",
    '#',
    'a#b',
    '$HOME',
  ],
  ...[
    '${HOME}',
    '"$HOME"',
    'a b',
    ' a',
    'a ',
    '}',
    '{',
    '-f',
    '-i x',
    '--',
    '||',
    'if',
    'unless',
    '!',
  ],
  ...[
    '*',
    'a;b',
    'ünïcödé',
    '日本',
    '😀',
    'constructor',
    '__proto__',
    '[*]',
    '(',
    ')',
    ',',
    'a,lower',
  ],
  ...['\u00a0', 'x'.repeat(MAX_VALUE), '%'.repeat(MAX_VALUE), "'".repeat(MAX_VALUE)],
  ...[
    '日'.repeat(Math.floor(MAX_VALUE / 3)),
    'str(a)',
    ']',
    '%]',
    '<LF>',
    '\\n',
    '\\x41',
    'a  b',
    '  a',
    'a  ',
    '   ',
    '%  %',
    '%[str("  ")]',
    '\\ ',
  ],
];

const character = fc.oneof(
  fc.constantFrom(...Array.from('%"\'\\#$ {}[]()-,;!|~`a1é日😀')),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
);
const text = fc.oneof(
  { arbitrary: fc.string({ unit: character, minLength: 1, maxLength: 30 }), weight: 3 },
  { arbitrary: fc.stringMatching(/^[A-Za-z0-9_.:/@+=*~-]{1,20}$/), weight: 1 },
);

/** What the emitter lets through, each once. */
export const acceptedBy = (emitter: string): readonly string[] => {
  const random = fc.sample(text, { numRuns: CASES, ...(SEED === undefined ? {} : { seed: SEED }) });
  return [...new Set([...NASTY, ...random])].filter((one) => EMITTERS[emitter]?.(one).ok === true);
};

const distinct = (pattern: RegExp, count: number): readonly string[] => [
  ...new Set(
    fc.sample(fc.stringMatching(pattern), {
      numRuns: count,
      ...(SEED === undefined ? {} : { seed: SEED }),
    }),
  ),
];

/** Names that HAProxy allows for backends and servers, all of which `token` lets through. */
export const NAMES = [
  ...['a', 'ns_app-1.x_80', 'A:b', 'x'.repeat(127)],
  ...distinct(/^[A-Za-z0-9_.:][A-Za-z0-9_.:-]{2,60}$/, 60),
].filter((name) => EMITTERS['token']?.(name).ok === true);

/** Paths of files that can stand beside each other. */
export const PATHS = distinct(/^[a-z0-9_+=~][A-Za-z0-9_.+=@~-]{3,40}$/, 60)
  .filter((path) => EMITTERS['path']?.(`values/${path}`).ok === true)
  .map((path) => `values/${path}`);

/** Regular expressions, what they match, and what they do not. */
export const REGEXES: readonly (readonly [string, string, string])[] = [
  ['^a|b$', 'ab', 'bc'],
  ['^[\\w\'"]+$', 'it\'s"', 'a b'],
  ['^(?:a|%){2}\\\\$', '%a\\', '%a'],
  ['^\\{"a#b": \\$\\d+\\}$', '{"a#b": $12}', '{"a#b": $}'],
  ['^[-]f$', '-f', 'f'],
  ['^ +$', '   ', 'x'],
  ['^日{2}.$', '日日😀', '日'],
];
