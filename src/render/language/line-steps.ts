/** What text, emitters and line ends do to the states that a line can be in, and what is wrong with them there. */
import type { TemplateFacts } from './template-facts.ts';
import { placeOf } from './compile-context.ts';
import { placeInLine } from './directives.ts';
import { TemplateFailure, type Place } from './failure.ts';
import {
  HOLE,
  LINE_START,
  LOST,
  afterHole,
  afterText,
  united,
  type LineState,
  type LineStates,
} from './line-state.ts';
import { fits, mendMisfit, misfit, type LinePlace } from './places.ts';
import type { Bindings } from './printed-names.ts';
import type { Node } from './syntax.ts';

/** Where the following of a template has got to. */
export interface LineContext {
  readonly source: string;
  /** Changes with every assignment. */
  readonly names: { bindings: Bindings };
  /** Only the states are wanted. */
  readonly quiet: boolean;
  /** Nesting of includes, macros and captured blocks. */
  readonly depth: number;
  readonly find: TemplateFacts['find'];
  readonly tell: (failure: TemplateFailure) => void;
  /** The states behind what a node prints. */
  readonly follow: (node: Node, states: LineStates, context: LineContext) => LineStates;
}

/** Literal text, which begins at a place of the template. */
export const throughText = (
  text: string,
  at: Place,
  { before, context }: { readonly before: LineStates; readonly context: LineContext },
): LineStates => {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  return lines.reduce<LineStates>((states, line, index) => {
    const start = index === 0 ? states : throughLineEnd(states, context);
    const placeAt = (offset: number): Place => ({
      source: at.source,
      line: at.line + index,
      column: offset + (index === 0 ? at.column : 1),
    });
    return united(start.map((state) => afterText(state, line, placeAt)));
  }, before);
};

/** Something that prints characters of a word. */
export const throughHole = (states: LineStates): LineStates => united(states.map(afterHole));

/** A line ends; a quote that is open whatever way was taken is told. */
export const throughLineEnd = (states: LineStates, { quiet, tell }: LineContext): LineStates => {
  const [first] = states;
  if (!quiet && states.every(isQuoted) && first !== undefined && first !== LOST) {
    const { open, openedAt: place } = first;
    const quote = open === '"' ? 'double quote' : 'single quote';
    if (place !== undefined) {
      tell(
        new TemplateFailure(`the ${quote} that opens here is still open at the end of its line`, {
          place,
          nextStep: 'Close it on the same line: HAProxy reads every line by itself.',
          reason: 'QuoteNotClosed',
        }),
      );
    }
  }
  return [LINE_START];
};

/** An emitter prints; it is told when it fits in none of the states. */
export const throughEmitter = (
  node: Node,
  name: string,
  { before, context }: { readonly before: LineStates; readonly context: LineContext },
): LineStates => {
  const places = before.map(placeOfState);
  const [place] = places;
  if (!context.quiet && place !== undefined && places.every((one) => !fits(name, one))) {
    context.tell(
      new TemplateFailure(misfit(name, place), {
        place: placeOf(node, context.source),
        nextStep: mendMisfit(place),
        reason: 'EmitterMisplaced',
      }),
    );
  }
  return throughHole(before);
};

/** What is certain of a line that a loop may have made longer: what is open, not which word it is. */
export const widened = (states: LineStates): LineStates =>
  united(states.map((state) => (state === LOST ? LOST : { ...LINE_START, ...lengthened(state) })));

const lengthened = ({ open, openedAt, word }: LineState): Partial<LineState> => ({
  ...{ open, openedAt, words: [HOLE] },
  ...(word === undefined ? {} : { word: HOLE }),
});

export const isLineStart = (state: LineState | typeof LOST): boolean =>
  state !== LOST && state.open === '' && state.words.length === 0 && state.word === undefined;

const isQuoted = (state: LineState | typeof LOST): boolean =>
  state !== LOST && (state.open === '"' || state.open === "'");

const placeOfState = (state: LineState | typeof LOST): LinePlace => {
  if (state === LOST) return 'lost';
  if (state.escaped) return 'escaped';
  switch (state.open) {
    case '#':
      return 'comment';
    case '"':
      return 'doubleQuotes';
    case "'":
      return 'singleQuotes';
    default:
      return placeInLine(state.words, state.word);
  }
};
