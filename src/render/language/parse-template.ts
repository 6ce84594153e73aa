/** From template text to its syntax tree: Nunjucks' own lexer and parser, with the tags `section` and `cells`. */
import lexer, { type Tokens } from 'nunjucks/src/lexer.js';
import syntax, { type TagExtension } from 'nunjucks/src/parser.js';
import { TemplateFailure } from './failure.ts';
import type { Cells, Node, Section } from './syntax.ts';

const OPTIONS = { trimBlocks: true, lstripBlocks: true };

const sectionTag: TagExtension = {
  tags: ['section'],
  parse: (parser): Section => {
    const tag = parser.nextToken();
    const name = parser.parsePrimary() as Node;
    if (name.typename !== 'Literal' || typeof name.value !== 'string') {
      return parser.fail('section needs a name in quotes', tag.lineno, tag.colno);
    }
    parser.advanceAfterBlockEnd('section');
    const body = parser.parseUntilBlocks('endsection') as Node;
    parser.advanceAfterBlockEnd();
    return { typename: 'Section', lineno: tag.lineno, colno: tag.colno, name: name.value, body };
  },
};

const cellsTag: TagExtension = {
  tags: ['cells'],
  parse: (parser): Cells => {
    const tag = parser.nextToken();
    const name = parser.parsePrimary(true) as Node;
    if (name.typename !== 'Symbol' || !parser.skipSymbol('in')) {
      return parser.fail('cells reads: cells NAME in COLLECTION', tag.lineno, tag.colno);
    }
    const collection = parser.parseExpression() as Node;
    const key = parser.skipSymbol('key') ? (parser.parseExpression() as Node) : undefined;
    parser.advanceAfterBlockEnd('cells');
    const body = parser.parseUntilBlocks('endcells') as Node;
    parser.advanceAfterBlockEnd();
    const { lineno, colno } = tag;
    return { typename: 'Cells', lineno, colno, name: name.value, collection, key, body };
  },
};

/** @throws TemplateFailure with line and column for text that is no template */
export const parseTemplate = (text: string, source: string): Node => {
  const tokens = lexer.lex(text, OPTIONS);
  const parser = new syntax.Parser(tokens);
  parser.extensions = [sectionTag, cellsTag];
  const parseRaw = parser.parseRaw.bind(parser);
  // Nunjucks ignores a raw tag that nothing ends.
  parser.parseRaw = (tag = 'raw') => {
    const node = parseRaw(tag) as Node;
    if (END_OF_RAW.test(text.slice(0, tokens.index))) return node;
    return parser.fail(`${tag} has no end${tag}`, node.lineno, node.colno);
  };
  try {
    const root = parser.parseAsRoot() as Node;
    return root;
  } catch (error: unknown) {
    throw new TemplateFailure(`syntax error: ${messageOf(error)}`, {
      place: { source, ...(positionOf(error) ?? unpositioned(text, tokens)) },
      nextStep: 'Correct the template.',
      reason: 'TemplateSyntax',
    });
  }
};

const END_OF_RAW = /\{%\s*end(?:raw|verbatim)\s*%\}$/;

const messageOf = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error);
  // Where the text ends inside a tag, the parser trips over the token that is not there.
  return message.startsWith('Cannot read prop') ? 'unexpected end of the template' : message;
};

interface Position {
  readonly line: number;
  readonly column: number;
}

const positionOf = (error: unknown): Position | undefined => {
  if (typeof error !== 'object' || error === null) return undefined;
  const { lineno: line, colno: column } = error as { lineno?: unknown; colno?: unknown };
  return typeof line === 'number' && typeof column === 'number' ? { line, column } : undefined;
};

/** The lexer's own errors have no position: a comment without end starts somewhere, else it stands where it stopped. */
const unpositioned = (text: string, { lineno, colno }: Tokens): Position => {
  const start = text.lastIndexOf('{#');
  if (start === -1 || text.includes('#}', start)) return { line: lineno + 1, column: colno + 1 };
  const before = text.slice(0, start).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
};
