/** Expressions of a template as closures. Look-ups are strict unless the operand may be undefined. */
import { TemplateFailure, asFailure, nearest, type Place } from './failure.ts';
import { FILTERS } from './filters.ts';
import { compare, concatenate, contains, equals, plus, toNumber } from './operators.ts';
import type { Run } from './run.ts';
import {
  describe,
  type Binary,
  type Capture,
  type Compare,
  type Dict,
  type Filter,
  type FunCall,
  type LookupVal,
  type Macro,
  type Name,
  type Node,
  type NodeList,
  type Unary,
} from './syntax.ts';
import { TESTS } from './tests.ts';
import { EMPTY_TEXT, Text, plain } from './text.ts';
import {
  TemplateFunction,
  emptyRecord,
  isTrue,
  kindOf,
  memberNames,
  memberOf,
  type Arguments,
} from './values.ts';
import { Writer } from './writer.ts';

export type Expression = (run: Run) => unknown;
export type Statement = (run: Run) => void;

/** What compiling an expression needs to know. */
export interface ExpressionContext {
  /** Name of the template in messages. */
  readonly source: string;
  /** Compiles the body of a block. */
  readonly body: (node: Node) => Statement;
  /** Compiles a macro, or the block of a `call`, to what makes the function. */
  readonly macro: (node: Macro) => (run: Run) => TemplateFunction;
}

/** Filters whose operands may be undefined. */
const LENIENT_FILTERS = new Set(['default', 'coalesce']);
const LENIENT_TESTS = new Set(['defined', 'undefined']);

export const placeOf = (node: Node, source: string): Place => {
  const at = node.typename === 'FunCall' ? node.name : node;
  return { source, line: at.lineno + 1, column: at.colno + 1 };
};

type Compile<N> = (node: N, context: ExpressionContext, lenient: boolean) => Expression;

/** With `lenient`, undefined names and members give undefined; else they fail with their place. */
export const compileExpression = (
  node: Node,
  context: ExpressionContext,
  lenient = false,
): Expression => {
  const compile = (EXPRESSIONS as Record<string, Compile<never> | undefined>)[node.typename];
  if (compile === undefined) {
    throw new TemplateFailure(`a template cannot use ${node.typename} here`, {
      place: placeOf(node, context.source),
      nextStep: 'Write it another way.',
    });
  }
  return compile(node as never, context, lenient);
};

const compileName: Compile<Name> = ({ value: name, ...node }, { source }, lenient) => {
  const place = { source, line: node.lineno + 1, column: node.colno + 1 };
  if (lenient) return ({ scope }) => scope.get(name);
  return ({ scope }) => {
    const value = scope.get(name);
    if (value !== undefined) return value;
    const known = scope.has(name);
    throw new TemplateFailure(
      known ? `"${name}" is undefined` : `unknown name "${name}"${nearest(name, scope.names())}`,
      { place, field: name, nextStep: 'Correct the name, or give it a default.' },
    );
  };
};

const compileLookup: Compile<LookupVal> = (node, context, lenient) => {
  const target = compileExpression(node.target, context, lenient);
  const member = compileExpression(node.val, context);
  if (lenient) return (run) => memberOf(target(run), member(run), run);
  const place = placeOf(node.val, context.source);
  return (run) => {
    const object = target(run);
    const key = member(run);
    const value = memberOf(object, key, run);
    if (value === undefined) throw missing(node, { object, key: plain(key), place });
    return value;
  };
};

const missing = (
  node: LookupVal,
  { object, key, place }: { object: unknown; key: unknown; place: Place },
): TemplateFailure => {
  const names = memberNames(object);
  const isLiteral = node.val.typename === 'Literal';
  const name = isLiteral ? ` "${String(key)}"` : '';
  const hint = isLiteral ? nearest(String(key), names) : '';
  return new TemplateFailure(
    `${describe(node)} is undefined: ${kindOf(object)} has no member${name}${hint}`,
    {
      place,
      field: describe(node),
      nextStep: 'Correct the name, or give it a default: {{ … | default("…") }}.',
    },
  );
};

const NO_NAMED: ReadonlyMap<string, unknown> = new Map();

const compileArguments = (
  args: readonly Node[],
  context: ExpressionContext,
  lenient = false,
): ((run: Run) => Arguments) => {
  const last = args.at(-1);
  const keywords = last?.typename === 'KeywordArgs' ? last.children : [];
  const positional = args.filter((arg) => arg.typename !== 'KeywordArgs');
  const expressions = positional.map((arg) => compileExpression(arg, context, lenient));
  const named = keywords.map(
    ({ key, value }) => [nameOfKey(key), compileExpression(value, context, lenient)] as const,
  );
  return (run) => ({
    positional: expressions.map((expression) => expression(run)),
    named:
      named.length === 0
        ? NO_NAMED
        : new Map(named.map(([name, expression]) => [name, expression(run)])),
  });
};

const nameOfKey = (key: Node): string =>
  key.typename === 'Symbol' || key.typename === 'Literal' ? String(key.value) : '';

const compileCall: Compile<FunCall> = (node, context, lenient) => {
  const callee = compileExpression(node.name, context);
  const args = compileArguments(node.args.children, context);
  const place = placeOf(node, context.source);
  const field = describe(node.name);
  return (run) => {
    const called = callee(run);
    if (!(called instanceof TemplateFunction)) {
      const nextStep = 'Call only the functions in docs/templates.md and your own macros.';
      throw new TemplateFailure(`${field} is ${kindOf(called)} and cannot be called`, {
        place,
        field,
        nextStep,
      });
    }
    const value = located(place, field, () => {
      const given = args(run);
      run.cell.callPlace = place;
      return called.call(given, run);
    });
    if (value !== undefined || lenient) return value;
    throw new TemplateFailure(`${describe(node)} finds nothing`, {
      place,
      field,
      nextStep: 'Give it a default, or ask "is defined" before.',
    });
  };
};

const located = <T>(place: Place, field: string, inside: () => T): T => {
  try {
    return inside();
  } catch (error: unknown) {
    throw error instanceof TemplateFailure ? error.at(place, field) : asFailure(error, place);
  }
};

const compileFilter: Compile<Filter> = (node, context) => {
  const name = node.name.value;
  const filter = FILTERS.get(name);
  const place = placeOf(node, context.source);
  if (filter === undefined) {
    const message = `unknown filter "${name}"${nearest(name, FILTERS.keys())}`;
    throw new TemplateFailure(message, {
      place,
      nextStep: 'See the filters in docs/templates.md.',
    });
  }
  const [first, ...rest] = node.args.children;
  const lenient = LENIENT_FILTERS.has(name);
  const input = compileExpression(first as Node, context, lenient);
  const args = compileArguments(rest, context, name === 'coalesce');
  const field = describe(first as Node);
  return (run) => {
    const value = input(run);
    const given = args(run);
    return located(place, field, () => filter(value, given, run));
  };
};

const compileIs: Compile<Binary> = (node, context) => {
  const { right } = node;
  const callee = right.typename === 'FunCall' ? right.name : right;
  const name = callee.typename === 'Literal' ? 'none' : nameOfKey(callee);
  const test = TESTS.get(name);
  if (test === undefined) {
    throw new TemplateFailure(`unknown test "${name}"${nearest(name, TESTS.keys())}`, {
      place: placeOf(right, context.source),
      nextStep: 'See the tests in docs/templates.md.',
    });
  }
  const left = compileExpression(node.left, context, LENIENT_TESTS.has(name));
  const args = compileArguments(right.typename === 'FunCall' ? right.args.children : [], context);
  return (run) => test(left(run), args(run).positional.map(plain));
};

type Operator = (left: unknown, right: unknown, run: Run) => unknown;

const operator =
  (operate: Operator): Compile<Binary> =>
  (node, context) => {
    const left = compileExpression(node.left, context);
    const right = compileExpression(node.right, context);
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
    const target = compileExpression(node.target, context);
    const place = placeOf(node, context.source);
    return (run) => located(place, describe(node.target), () => factor * toNumber(target(run)));
  };

const compileCompare: Compile<Compare> = (node, context) => {
  const operands = [node.expr, ...node.ops.map((op) => op.expr)].map((operand) =>
    compileExpression(operand, context),
  );
  const place = placeOf(node, context.source);
  return (run) => {
    const values = operands.map((operand) => operand(run));
    return node.ops.every(({ type }, index) =>
      located(place, describe(node.expr), () => holds(type, values[index], values[index + 1])),
    );
  };
};

const holds = (type: string, left: unknown, right: unknown): boolean => {
  if (type === '==' || type === '===') return equals(left, right);
  if (type === '!=' || type === '!==') return !equals(left, right);
  const order = compare(left, right);
  if (type === '<') return order < 0;
  if (type === '>') return order > 0;
  return type === '<=' ? order <= 0 : order >= 0;
};

const compileDict: Compile<Dict> = (node, context) => {
  const pairs = node.children.map(
    ({ key, value }) => [nameOfKey(key), compileExpression(value, context)] as const,
  );
  return (run) => {
    const record = emptyRecord();
    for (const [key, value] of pairs) record[key] = value(run);
    return record;
  };
};

const compileCapture: Compile<Capture> = (node, context) => {
  const body = context.body(node.body);
  return (run) => {
    const out = new Writer();
    body({ ...run, out });
    return out.text();
  };
};

const EXPRESSIONS = {
  Symbol: compileName,
  LookupVal: compileLookup,
  FunCall: compileCall,
  Filter: compileFilter,
  Is: compileIs,
  Dict: compileDict,
  Compare: compileCompare,
  Capture: compileCapture,
  Caller: ((node, context) => context.macro(node)) satisfies Compile<Macro>,
  Literal: (({ value }) => {
    const constant: unknown = typeof value === 'string' ? new Text(value) : value;
    return () => constant;
  }) satisfies Compile<{ value: unknown }>,
  Group: ((node, context, lenient) =>
    compileExpression(node.children[0] as Node, context, lenient)) satisfies Compile<NodeList>,
  Array: ((node, context) => {
    const elements = node.children.map((child) => compileExpression(child, context));
    return (run) => elements.map((element) => element(run));
  }) satisfies Compile<NodeList>,
  InlineIf: ((node, context, lenient) => {
    const condition = compileExpression(node.cond, context);
    const yes = compileExpression(node.body, context, lenient);
    const no = node.else_ === null ? undefined : compileExpression(node.else_, context, lenient);
    return (run) => (isTrue(condition(run)) ? yes(run) : no === undefined ? EMPTY_TEXT : no(run));
  }) satisfies Compile<{ cond: Node; body: Node; else_: Node | null }>,
  And: ((node, context) => {
    const left = compileExpression(node.left, context);
    const right = compileExpression(node.right, context);
    return (run) => {
      const value = left(run);
      return isTrue(value) ? right(run) : value;
    };
  }) satisfies Compile<Binary>,
  Or: ((node, context) => {
    const left = compileExpression(node.left, context);
    const right = compileExpression(node.right, context);
    return (run) => {
      const value = left(run);
      return isTrue(value) ? value : right(run);
    };
  }) satisfies Compile<Binary>,
  Not: ((node, context) => {
    const target = compileExpression(node.target, context);
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
