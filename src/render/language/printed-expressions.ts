/** What expressions print, as far as the template tells: the states of a line behind `{{ … }}`. */
import { placeOf } from './compile-context.ts';
import { EMITTERS } from './emitters.ts';
import {
  throughEmitter,
  throughHole,
  throughLineEnd,
  throughText,
  type LineContext,
} from './line-steps.ts';
import { LINE_START, LOST, united, type LineStates } from './line-state.ts';
import { bindingOf, insideMacro, isData, memberArgument, type Binding } from './printed-names.ts';
import type {
  Binary,
  Capture,
  Filter,
  FunCall,
  Literal,
  LookupVal,
  Name,
  Node,
  NodeList,
} from './syntax.ts';

type Follow<N> = (node: N, states: LineStates, context: LineContext) => LineStates;

const characters: Follow<Node> = (_node, states) => throughHole(states);

const both: Follow<Binary> = ({ left, right }, states, context) =>
  context.follow(right, context.follow(left, states, context), context);

const oneOf = (
  nodes: readonly (Node | null)[],
  states: LineStates,
  context: LineContext,
): LineStates =>
  united(...nodes.map((node) => (node === null ? states : context.follow(node, states, context))));

const eitherSide: Follow<Binary> = ({ left, right }, states, context) =>
  oneOf([left, right], states, context);

const literal: Follow<Literal> = (node, states, context) => {
  if (typeof node.value !== 'string') return throughHole(states);
  const { column, ...at } = placeOf(node, context.source);
  // Its first character stands behind the quote.
  return throughText(node.value, { ...at, column: column + 1 }, { before: states, context });
};

/** Filters whose result may hold any text that prints. */
const UNFOLLOWED = new Set(['join', 'first', 'last', 'dig']);

const filter: Follow<Filter> = (node, states, context) => {
  const { value: name } = node.name;
  const [first, ...others] = node.args.children;
  // "text" is for files alone, which is checked wherever it stands.
  if (name === 'text') return throughHole(states);
  if (Object.hasOwn(EMITTERS, name)) return throughEmitter(node, name, { before: states, context });
  if (first === undefined || UNFOLLOWED.has(name)) return [LOST];
  if (name === 'indent') return context.follow(first, states, context);
  const isFallback = name === 'default' || name === 'coalesce';
  return isFallback ? oneOf([first, ...others], states, context) : throughHole(states);
};

const lookup: Follow<LookupVal> = (node, states, { names }) =>
  isData(node, names.bindings) ? throughHole(states) : [LOST];

const symbol: Follow<Name> = ({ value }, states, context) =>
  named(bindingOf(value, context.names.bindings), states, context);

const named = (
  binding: Binding | undefined,
  states: LineStates,
  context: LineContext,
): LineStates => {
  switch (binding?.type) {
    case 'data':
      return throughHole(states);
    case 'either':
      return united(...binding.options.map((option) => named(option, states, context)));
    case 'text': {
      const { node, source, bindings } = binding;
      const inside = { ...context, source, names: { bindings }, depth: context.depth + 1 };
      return context.follow(node, states, inside);
    }
    default:
      return [LOST];
  }
};

/** Functions that print nothing, but do something. */
const SILENT = new Set(['map_entry', 'file', 'certificate', 'crt_list', 'status', 'event', 'fail']);

const call: Follow<FunCall> = (node, states, context) => {
  const macro = calledMacro(node.name, context);
  if (macro !== undefined) {
    const bindings = insideMacro(macro, node, {
      source: context.source,
      bindings: context.names.bindings,
    });
    const { source } = macro;
    const inside = { ...context, source, names: { bindings }, depth: context.depth + 1 };
    return context.follow(macro.node.body, states, inside);
  }
  const name = node.name.typename === 'Symbol' ? node.name.value : '';
  if (name === 'path') return throughHole(states);
  if (SILENT.has(name)) return states;
  if (name !== 'backend' && name !== 'profile') return [LOST];
  const body = memberArgument(node, 'body');
  if (body !== undefined) throughLineEnd(context.follow(body, [LINE_START], context), context);
  return name === 'profile' ? [LINE_START] : states;
};

const calledMacro = (
  callee: Node,
  { names }: LineContext,
): Extract<Binding, { readonly type: 'macro' }> | undefined => {
  const binding =
    callee.typename === 'LookupVal'
      ? memberOf(callee, names.bindings)
      : callee.typename === 'Symbol'
        ? names.bindings.get(callee.value)
        : undefined;
  return binding?.type === 'macro' ? binding : undefined;
};

const memberOf = (
  { target, val }: LookupVal,
  bindings: LineContext['names']['bindings'],
): Binding | undefined => {
  const module = target.typename === 'Symbol' ? bindings.get(target.value) : undefined;
  return module?.type === 'module' && val.typename === 'Literal'
    ? module.bindings.get(String(val.value))
    : undefined;
};

/** By type of node; what prints a number or a boolean is characters of a word. */
export const PRINTED_EXPRESSIONS = {
  Literal: literal,
  Symbol: symbol,
  LookupVal: lookup,
  Filter: filter,
  FunCall: call,
  Capture: (({ body }, states, context) =>
    context.follow(body, states, context)) satisfies Follow<Capture>,
  Group: (({ children: [inner] }, states, context) =>
    inner === undefined
      ? states
      : context.follow(inner, states, context)) satisfies Follow<NodeList>,
  InlineIf: (({ body, else_ }, states, context) =>
    oneOf([body, else_], states, context)) satisfies Follow<{ body: Node; else_: Node | null }>,
  Concat: both,
  // Numbers are added to characters of a word too, and strings one after the other.
  Add: both,
  And: eitherSide,
  Or: eitherSide,
  ...{ Sub: characters, Mul: characters, Div: characters, FloorDiv: characters, Mod: characters },
  ...{ Pow: characters, Neg: characters, Pos: characters, Not: characters, In: characters },
  ...{ Is: characters, Compare: characters },
};
