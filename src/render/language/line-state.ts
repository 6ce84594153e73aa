/**
 * The state of HAProxy's line reader behind some literal text: words, quotes, backslashes and comments as section 2.2 of its
 * configuration manual describes them. A line ends with its line feed, whatever is open.
 */
import type { Place } from './failure.ts';

/** Stands in a word for what an expression prints. */
export const HOLE = '\0';

/** Where a line has got to. */
export interface LineState {
  /** What is open: a quote, or `#` for a comment. */
  readonly open: '' | "'" | '"' | '#';
  /** Where the quote was opened, in the template. */
  readonly openedAt: Place | undefined;
  /** The text ends with a backslash, which may concern what follows. */
  readonly escaped: boolean;
  /** Complete words, without quotes and backslashes. */
  readonly words: readonly string[];
  /** The word that is being read; undefined between words. */
  readonly word: string | undefined;
}

/** Nothing is known about the line any more, until it ends. */
export const LOST = 'lost';

export type LineStates = readonly (LineState | typeof LOST)[];

export const LINE_START: LineState = {
  open: '',
  openedAt: undefined,
  escaped: false,
  words: [],
  word: undefined,
};

/** More alternatives than this are no longer told apart. */
const MAX_STATES = 12;
/** A line of more words is not read by HAProxy either. */
const MAX_WORDS = 80;
const MAX_WORD = 4000;

/** The states that a line can be in when it came from several places; LOST when they are too many. */
export const united = (...all: readonly LineStates[]): LineStates => {
  const found = new Map<string, LineState | typeof LOST>();
  for (const state of all.flat()) found.set(keyOf(state), state);
  return found.size > MAX_STATES || found.has(LOST) ? [LOST] : [...found.values()];
};

/** Equal keys, equal states. */
export const keyOfStates = (states: LineStates): string => states.map(keyOf).sort().join('\n');

const keyOf = (state: LineState | typeof LOST): string =>
  state === LOST ? LOST : JSON.stringify([state.open, state.escaped, state.words, state.word]);

/**
 * The state behind text without line feeds.
 *
 * @param placeAt place of a character of the text in the template
 */
export const afterText = (
  state: LineState | typeof LOST,
  text: string,
  placeAt: (index: number) => Place,
): LineState | typeof LOST => {
  if (state === LOST || text.includes('\r') || state.words.length > MAX_WORDS) return LOST;
  const reader = new Reader(state, placeAt);
  const all = state.escaped ? `\\${text}` : text;
  let index = 0;
  while (index < all.length) {
    const step = reader.read(all, index);
    if (step === 0) return LOST;
    index += step;
  }
  return reader.state();
};

/** The state behind what an expression prints: some characters of a word. */
export const afterHole = (state: LineState | typeof LOST): LineState | typeof LOST => {
  if (state === LOST || state.escaped) return LOST;
  if (state.open === '#') return state;
  return { ...state, word: `${state.word ?? ''}${HOLE}` };
};

const BLANK = /[ \t\v\f]/;
/** What a backslash takes literally; inside double quotes the dollar too. */
const ESCAPED: Readonly<Record<string, string>> = {
  ...{ ' ': ' ', '\\': '\\', '#': '#', "'": "'", '"': '"' },
  ...{ t: '\t', n: '\n', r: '\r' },
};

class Reader {
  readonly #placeAt: (index: number) => Place;
  readonly #words: string[];
  #word: string | undefined;
  #open: LineState['open'];
  #openedAt: Place | undefined;
  #escaped = false;

  constructor(state: LineState, placeAt: (index: number) => Place) {
    this.#placeAt = placeAt;
    this.#words = [...state.words];
    ({ word: this.#word, open: this.#open, openedAt: this.#openedAt } = state);
  }

  state(): LineState {
    return {
      ...{ open: this.#open, openedAt: this.#openedAt, escaped: this.#escaped },
      ...{ words: this.#words, word: this.#word },
    };
  }

  /** Reads one character or escape; how long it was, 0 for something that cannot be followed. */
  read(text: string, index: number): number {
    const character = text.charAt(index);
    if (this.#open === '#') return text.length - index;
    if (character === this.#open) return this.#toggle('', index);
    if (this.#open === "'") return this.#append(character);
    if (character === '\\') return this.#escape(text.slice(index + 1, index + 4));
    if (this.#open === '"') return this.#inDoubleQuotes(text, index);
    return this.#outside(character, index);
  }

  #outside(character: string, index: number): number {
    if (character === '"' || character === "'") return this.#toggle(character, index);
    if (character !== '#' && !BLANK.test(character)) return this.#append(character);
    if (this.#word !== undefined) this.#words.push(this.#word);
    this.#word = undefined;
    if (character === '#') this.#open = '#';
    return 1;
  }

  /** Variables may become several words, or none. */
  #inDoubleQuotes(text: string, index: number): number {
    const character = text.charAt(index);
    if (character === '$' && /^\$\{\.?\w+\[/.test(text.slice(index, index + 80))) return 0;
    return this.#append(character);
  }

  #toggle(open: LineState['open'], index: number): number {
    this.#open = open;
    this.#openedAt = open === '' ? undefined : this.#placeAt(index);
    return this.#append('');
  }

  #append(characters: string, length = 1): number {
    this.#word = `${this.#word ?? ''}${characters}`;
    return this.#word.length > MAX_WORD ? 0 : length;
  }

  #escape(next: string): number {
    const character = next.charAt(0);
    if (character === '') {
      this.#escaped = true;
      return 1;
    }
    if (character === 'x') return 0;
    if (character === '$' && this.#open === '"') return this.#append('$', 2);
    const meant = ESCAPED[character];
    return meant === undefined ? this.#append('\\') : this.#append(meant, 2);
  }
}
