/** What compiling a template is about: closures that run, and what making them needs to know. */
import { TemplateFailure, asFailure, type Place } from './failure.ts';
import type { Run } from './run.ts';
import type { Macro, Node } from './syntax.ts';
import type { TemplateFunction } from './values.ts';

export type Expression = (run: Run) => unknown;
export type Statement = (run: Run) => void;

export interface ExpressionContext {
  /** Name of the template in messages. */
  readonly source: string;
  /** With `lenient`, undefined names and members give undefined; else they fail with their place. */
  readonly expression: (node: Node, lenient?: boolean) => Expression;
  /** Compiles the body of a block. */
  readonly body: (node: Node) => Statement;
  /** Compiles a macro, or the block of a `call`, to what makes the function. */
  readonly macro: (node: Macro) => (run: Run) => TemplateFunction;
}

/** Compiled snippets by name or glob, found when they are first included. */
export type FindSnippets = (name: string) => readonly { readonly run: Statement }[] | undefined;

/** What a tag is compiled with. */
export interface StatementContext extends ExpressionContext {
  readonly find: FindSnippets;
}

export type Compile<N> = (node: N, context: ExpressionContext, lenient: boolean) => Expression;

export const placeOf = (node: Node, source: string): Place => {
  const at = node.typename === 'FunCall' ? node.name : node;
  return { source, line: at.lineno + 1, column: at.colno + 1 };
};

/** Runs something that may fail without knowing where it stands. */
export const located = <T>(place: Place, field: string, inside: () => T): T => {
  try {
    return inside();
  } catch (error: unknown) {
    throw error instanceof TemplateFailure ? error.at(place, field) : asFailure(error, place);
  }
};

/** The name that a key of a mapping or a named argument stands for. */
export const nameOfKey = (key: Node): string =>
  key.typename === 'Symbol' || key.typename === 'Literal' ? String(key.value) : '';
