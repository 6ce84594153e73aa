/** Expressions of a template as closures. Look-ups are strict unless the operand may be undefined. */
import {
  located,
  nameOfKey,
  placeOf,
  type Compile,
  type Expression,
  type ExpressionContext,
} from './compile-context.ts';
import { OPERATORS } from './compile-operators.ts';
import type { ObjectRef } from '../../snapshot/objects.ts';
import { TemplateFailure, nearest, type Place } from './failure.ts';
import { FILTERS } from './filters.ts';
import { objectOf } from './object-of.ts';
import type { Run } from './run.ts';
import {
  blaming,
  rootOf,
  settingOf,
  settingsOf,
  wrongSetting,
  type SettingNames,
} from './settings.ts';
import {
  describe,
  type Binary,
  type Capture,
  type Dict,
  type Filter,
  type FunCall,
  type LookupVal,
  type Macro,
  type Name,
  type Node,
  type NodeList,
} from './syntax.ts';
import { TESTS } from './tests.ts';
import { EMPTY_TEXT, Text, plain } from './text.ts';
import {
  TemplateFunction,
  emptyRecord,
  isRecord,
  isTrue,
  kindOf,
  memberNames,
  memberOf,
  type Arguments,
} from './values.ts';
import { Writer } from './writer.ts';

/** Filters whose operands may be undefined. */
const LENIENT_FILTERS = new Set(['default', 'coalesce']);
const LENIENT_TESTS = new Set(['defined', 'undefined']);

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
    if (value !== undefined) return value;
    throw missing(node, { object, key: plain(key), place }).about(seenBy(node, object, run));
  };
};

/** The object of Kubernetes that a look-up went through. */
const seenBy = (node: LookupVal, target: unknown, { scope }: Run): ObjectRef | undefined => {
  const root = rootOf(node);
  return objectOf(target, 0) ?? (root === undefined ? undefined : objectOf(scope.get(root)));
};

const missing = (
  node: LookupVal,
  { object, key, place }: { object: unknown; key: unknown; place: Place },
): TemplateFailure => {
  const setting = settingOf(node.target);
  if (setting !== undefined && !isRecord(object)) {
    return wrongSetting({ setting, value: object, expected: 'a mapping' }).at(place);
  }
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

const compileCall: Compile<FunCall> = (node, context, lenient) => {
  const callee = compileExpression(node.name, context);
  const args = compileArguments(node.args.children, context);
  const place = placeOf(node, context.source);
  const field = describe(node.name);
  const settings = settingsOf(node);
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
      return blaming(settings, () => called.call(given, run));
    });
    if (value !== undefined || lenient) return value;
    throw new TemplateFailure(`${describe(node)} finds nothing`, {
      place,
      field,
      nextStep: 'Give it a default, or ask "is defined" before.',
    });
  };
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
  const setting = settingOf(first as Node);
  const settings: SettingNames = new Map(setting === undefined ? [] : [['the value', setting]]);
  const field = setting ?? describe(first as Node);
  return (run) => {
    const value = input(run);
    const given = args(run);
    return located(place, field, () => blaming(settings, () => filter(value, given, run)));
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
    const out = new Writer(run.out.via);
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
  Capture: compileCapture,
  ...OPERATORS,
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
};
