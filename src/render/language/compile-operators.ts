/** Operators of the template language as closures. */
import { located, placeOf, type Compile } from './compile-context.ts';
import { concatenate, contains, holds, plus, toNumber } from './operators.ts';
import type { Run } from './run.ts';
import { describe, type Binary, type Compare, type Unary } from './syntax.ts';
import { isTrue } from './values.ts';

type Operator = (left: unknown, right: unknown, run: Run) => unknown;

const operator =
  (operate: Operator): Compile<Binary> =>
  (node, context) => {
    const left = context.expression(node.left);
    const right = context.expression(node.right);
    const place = placeOf(node, context.source);
    return (run) => {
      const [one, two] = [left(run), right(run)];
      return located(place, describe(node), () => operate(one, two, run));
    };
  };

const arithmetic = (calculate: (left: number, right: number) => number): Compile<Binary> =>
  operator((left, right) => calculate(toNumber(left), toNumber(right)));

const sign =
  (factor: 1 | -1): Compile<Unary> =>
  (node, context) => {
    const target = context.expression(node.target);
    const place = placeOf(node, context.source);
    return (run) => located(place, describe(node.target), () => factor * toNumber(target(run)));
  };

const compileCompare: Compile<Compare> = (node, context) => {
  const operands = [node.expr, ...node.ops.map((op) => op.expr)].map((operand) =>
    context.expression(operand),
  );
  const place = placeOf(node, context.source);
  return (run) => {
    const values = operands.map((operand) => operand(run));
    return node.ops.every(({ type }, index) =>
      located(place, describe(node.expr), () => holds(type, values[index], values[index + 1])),
    );
  };
};

/** By type of node. */
export const OPERATORS = {
  Compare: compileCompare,
  And: ((node, context) => {
    const left = context.expression(node.left);
    const right = context.expression(node.right);
    return (run) => {
      const value = left(run);
      return isTrue(value) ? right(run) : value;
    };
  }) satisfies Compile<Binary>,
  Or: ((node, context) => {
    const left = context.expression(node.left);
    const right = context.expression(node.right);
    return (run) => {
      const value = left(run);
      return isTrue(value) ? value : right(run);
    };
  }) satisfies Compile<Binary>,
  Not: ((node, context) => {
    const target = context.expression(node.target);
    return (run) => !isTrue(target(run));
  }) satisfies Compile<Unary>,
  In: operator(contains),
  Add: operator(plus),
  Concat: operator(concatenate),
  Sub: arithmetic((left, right) => left - right),
  Mul: arithmetic((left, right) => left * right),
  Div: arithmetic((left, right) => left / right),
  FloorDiv: arithmetic((left, right) => Math.floor(left / right)),
  Mod: arithmetic((left, right) => left % right),
  Pow: arithmetic((left, right) => left ** right),
  Neg: sign(-1),
  Pos: sign(1),
};
