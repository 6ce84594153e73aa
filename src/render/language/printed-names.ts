/** What the names of a template stand for where they print: captured blocks, macros, expressions, data. */
import { namesOf } from './bindings.ts';
import { nameOfKey } from './compile-context.ts';
import { EMITTERS } from './emitters.ts';
import { childrenOf, type FunCall, type Macro, type Node } from './syntax.ts';

/** Names that a template binds at some point. */
export type Bindings = ReadonlyMap<string, Binding>;

export type Binding =
  | Piece<'text', Node>
  | Piece<'macro', Macro>
  | { readonly type: 'module'; readonly bindings: Bindings }
  /** Comes from objects or settings: only numbers and booleans of it print. */
  | { readonly type: 'data' }
  /** Nothing is known about it. */
  | { readonly type: 'any' }
  | { readonly type: 'either'; readonly options: readonly Binding[] };

/** Part of a template, and the names it sees. */
interface Piece<Type extends string, N extends Node> {
  readonly type: Type;
  readonly node: N;
  readonly source: string;
  readonly bindings: Bindings;
}

export const ANY: Binding = { type: 'any' };
export const DATA: Binding = { type: 'data' };

const GLOBAL_DATA = new Set(['routes', 'resources', 'extraContext', 'dataplane', 'capabilities']);

/** The bindings with some names bound to something else. */
export const bound = (bindings: Bindings, names: readonly string[], binding: Binding): Bindings =>
  names.length === 0
    ? bindings
    : new Map([...bindings, ...names.map((name) => [name, binding] as const)]);

/** What is bound behind several ways, one of which was taken. */
export const joined = (ways: readonly Bindings[]): Bindings => {
  const [first, ...others] = ways;
  if (first === undefined || others.every((other) => other === first)) return first ?? new Map();
  const names = new Set(ways.flatMap((way) => [...way.keys()]));
  return new Map(
    [...names].map((name) => {
      const options = [...new Set(ways.map((way) => way.get(name) ?? ANY))];
      const [only] = options;
      return [name, options.length === 1 && only ? only : { type: 'either', options }] as const;
    }),
  );
};

/** Names that a body assigns to, however deep. */
export const assignedIn = (node: Node): readonly string[] => {
  const own = node.typename === 'Set' ? namesOf(node.targets) : [];
  return [...own, ...childrenOf(node).flatMap(assignedIn)];
};

/** What a name is bound to; undefined for one that only the run time knows. */
export const bindingOf = (name: string, bindings: Bindings): Binding | undefined =>
  bindings.get(name) ?? (GLOBAL_DATA.has(name) ? DATA : undefined);

/** Whether a value comes from objects or settings, so that its strings do not print. */
export const isData = (node: Node | undefined, bindings: Bindings): boolean => {
  switch (node?.typename) {
    case 'Symbol':
      return bindingOf(node.value, bindings)?.type === 'data';
    case 'LookupVal':
      return isData(node.target, bindings);
    case 'FunCall':
      return isData(node.name, bindings);
    case 'Filter':
      return !Object.hasOwn(EMITTERS, node.name.value) && isData(node.args.children[0], bindings);
    case 'Group':
      return isData(node.children[0], bindings);
    default:
      return false;
  }
};

/** What the variables of a loop over a value are. */
export const elementOf = (list: Node, source: string, bindings: Bindings): Binding => {
  if (isData(list, bindings)) return DATA;
  const literals = list.typename === 'Array' ? list.children : [];
  return literals.length > 0 && literals.every(({ typename }) => typename === 'Literal')
    ? {
        type: 'either',
        options: literals.map((node) => ({ type: 'text', node, source, bindings }) as const),
      }
    : ANY;
};

/** The member of the mapping that a function is called with, such as the body of a backend. */
export const memberArgument = (call: FunCall, member: string): Node | undefined => {
  const [members] = call.args.children;
  if (members?.typename !== 'Dict') return undefined;
  return members.children.find(({ key }) => nameOfKey(key) === member)?.value;
};

/** What a macro that is called sees: its parameters, itself, and what it was defined among. */
export const insideMacro = (
  macro: Extract<Binding, { readonly type: 'macro' }>,
  call: FunCall,
  caller: { readonly source: string; readonly bindings: Bindings },
): Bindings => {
  const given = (node: Node): Binding =>
    node.typename === 'Caller'
      ? { type: 'macro', node, ...caller }
      : { type: 'text', node, ...caller };
  const positional = call.args.children.filter(({ typename }) => typename !== 'KeywordArgs');
  let inside = bound(macro.bindings, [macro.node.name.value], macro);
  for (const [index, name] of parametersOf(macro.node).entries()) {
    const node = positional[index];
    inside = bound(inside, [name], node === undefined ? ANY : given(node));
  }
  for (const argument of call.args.children) {
    if (argument.typename !== 'KeywordArgs') continue;
    for (const { key, value } of argument.children) {
      inside = bound(inside, [nameOfKey(key)], given(value));
    }
  }
  return inside;
};

const parametersOf = ({ args }: Macro): readonly string[] =>
  args.children.flatMap((parameter) =>
    parameter.typename === 'KeywordArgs'
      ? parameter.children.map(({ key }) => nameOfKey(key))
      : namesOf([parameter]),
  );
