/** Where in a line of HAProxy's configuration an emitter can stand, and which emitters fit there. */

/**
 * What HAProxy makes of the text at one position. `unknown` is a word of a directive that nothing is known about, `lost` a
 * position of which not even the state of the line is known.
 */
export type LinePlace =
  | 'lineStart'
  | 'word'
  | 'logFormat'
  | 'expression'
  | 'pattern'
  | 'singleQuotes'
  | 'doubleQuotes'
  | 'comment'
  | 'escaped'
  | 'unknown'
  | 'lost';

interface PlaceFacts {
  /** Completes "the emitter … does not fit …". */
  readonly where: string;
  /** Emitters that fit, the one to advise first. */
  readonly fit: readonly string[];
}

/** Words without a character that means anything to HAProxy fit wherever text does. */
const PLAIN = ['token', 'path'];
/** All that make words of a line, whatever HAProxy reads in them. */
const WORDS = ['quoted', ...PLAIN, 'logFormat', 'header', 'regex', 'aclPattern'];

const PLACES: Readonly<Record<LinePlace, PlaceFacts>> = {
  lineStart: { where: 'at the start of a line, where HAProxy reads a keyword', fit: [] },
  word: {
    where: 'as a word that HAProxy takes as it is',
    fit: ['quoted', ...PLAIN, 'regex', 'aclPattern'],
  },
  logFormat: { where: 'in a log format', fit: ['logFormat', 'header', ...PLAIN] },
  expression: { where: 'inside a sample expression', fit: PLAIN },
  pattern: { where: 'as a pattern of an ACL', fit: ['aclPattern', 'regex', ...PLAIN] },
  singleQuotes: { where: 'inside single quotes', fit: PLAIN },
  doubleQuotes: { where: 'inside double quotes', fit: PLAIN },
  // A directive that is commented out harms nobody.
  comment: { where: 'in a comment', fit: ['comment', ...WORDS] },
  escaped: { where: 'directly behind a backslash', fit: [] },
  unknown: { where: 'in a line of the configuration', fit: WORDS },
  lost: { where: 'in a line of the configuration', fit: [...WORDS, 'comment'] },
};

/** Whether what the emitter prints means its value there. */
export const fits = (emitter: string, place: LinePlace): boolean =>
  PLACES[place].fit.includes(emitter);

/** `the emitter "quoted" does not fit inside double quotes; "token" does`. */
export const misfit = (emitter: string, place: LinePlace): string => {
  const { where, fit } = PLACES[place];
  const [advice] = fit;
  const does = advice === undefined ? 'no emitter does' : `"${advice}" does`;
  return `the emitter "${emitter}" does not fit ${where}; ${does}`;
};

/** What to do about it, in one sentence. */
export const mendMisfit = (place: LinePlace): string => {
  if (place === 'lineStart') return 'Write the keyword itself into the template.';
  if (place === 'escaped') return 'Write "\\\\" for a backslash, or move it elsewhere.';
  if (place === 'singleQuotes' || place === 'doubleQuotes') {
    return 'Use "token", or close the quotes before it: what follows a quote directly belongs to the same word.';
  }
  return `Use "${PLACES[place].fit[0] ?? ''}"; docs/templates.md tells which emitter fits where.`;
};
