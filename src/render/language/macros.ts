import type { Expression, ExpressionContext } from './compile-context.ts';
import { TemplateFailure, nearest } from './failure.ts';
import { Scope, nested, type Run } from './run.ts';
import type { Macro, Node } from './syntax.ts';
import { TemplateFunction, type Arguments } from './values.ts';
import { Writer } from './writer.ts';

interface Parameter {
  readonly name: string;
  readonly fallback: Expression | undefined;
}

/** A macro sees the variables of the place that defines it, and gives what it prints as branded text. */
export const compileMacro = (
  node: Macro,
  context: ExpressionContext,
): ((run: Run) => TemplateFunction) => {
  const name = node.name.value;
  const parameters = node.args.children.flatMap((child) => parametersOf(child, context));
  const body = context.body(node.body);
  return ({ scope: outer }) =>
    new TemplateFunction(name, (args, run) => {
      const { source, line } = run.cell.callPlace;
      const out = new Writer({ source, line, around: run.out.via });
      const inner = { ...run, scope: new Scope(outer, true), out };
      bindArguments(parameters, args, inner);
      nested(run, undefined, () => body(inner));
      return inner.out.text();
    });
};

const parametersOf = (node: Node, context: ExpressionContext): Parameter[] => {
  if (node.typename === 'Symbol') return [{ name: node.value, fallback: undefined }];
  if (node.typename !== 'KeywordArgs') return [];
  return node.children.map(({ key, value }) => ({
    name: key.typename === 'Symbol' ? key.value : '',
    fallback: context.expression(value),
  }));
};

const bindArguments = (
  parameters: readonly Parameter[],
  { positional, named }: Arguments,
  run: Run,
): void => {
  const known = new Set(['caller', ...parameters.map(({ name }) => name)]);
  const unknown = [...named.keys()].find((name) => !known.has(name));
  if (unknown !== undefined || positional.length > parameters.length) {
    throw new TemplateFailure(
      unknown === undefined
        ? `the macro takes ${parameters.length} arguments`
        : `the macro has no argument "${unknown}"${nearest(unknown, known)}`,
      { nextStep: 'Correct the call.' },
    );
  }
  if (named.has('caller')) run.scope.bind('caller', named.get('caller'));
  for (const [index, { name, fallback }] of parameters.entries()) {
    const given = index < positional.length ? positional[index] : named.get(name);
    run.scope.bind(name, given === undefined ? fallback?.(run) : given);
  }
};
