/** The parts of Nunjucks 3.2.4 that are used: lexer and parser, both CommonJS. Positions count from 0. */
declare module 'nunjucks/src/lexer.js' {
  export interface Tokens {
    readonly lineno: number;
    readonly colno: number;
    /** Characters read so far. */
    readonly index: number;
  }
  const lexer: { lex(source: string, options: object): Tokens };
  export default lexer;
}

declare module 'nunjucks/src/parser.js' {
  import type { Tokens } from 'nunjucks/src/lexer.js';

  export interface Token {
    readonly type: string;
    readonly value: string;
    readonly lineno: number;
    readonly colno: number;
  }

  export interface TagExtension {
    readonly tags: readonly string[];
    parse(parser: Parser): unknown;
  }

  export interface Parser {
    extensions: readonly TagExtension[];
    peekToken(): Token;
    nextToken(): Token;
    skipSymbol(name: string): boolean;
    parseExpression(): unknown;
    parsePrimary(noPostfix?: boolean): unknown;
    parseUntilBlocks(...names: string[]): unknown;
    advanceAfterBlockEnd(name?: string): Token;
    parseAsRoot(): unknown;
    parseRaw(tag?: string): unknown;
    fail(message: string, lineno?: number, colno?: number): never;
  }

  const parser: { readonly Parser: new (tokens: Tokens) => Parser };
  export default parser;
}
