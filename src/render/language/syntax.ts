/** Syntax tree of a template as Nunjucks' parser makes it, with our own tags. Positions count from 0. */

interface Positioned {
  readonly lineno: number;
  readonly colno: number;
}

export interface NodeList extends Positioned {
  readonly typename: 'NodeList' | 'Root' | 'Output' | 'Group' | 'Array';
  readonly children: readonly Node[];
}

export interface Literal extends Positioned {
  readonly typename: 'Literal' | 'TemplateData';
  readonly value: string | number | boolean | null | RegExp;
}

export interface Name extends Positioned {
  readonly typename: 'Symbol';
  readonly value: string;
}

export interface Dict extends Positioned {
  readonly typename: 'Dict' | 'KeywordArgs';
  readonly children: readonly Pair[];
}

export interface Pair extends Positioned {
  readonly typename: 'Pair';
  readonly key: Node;
  readonly value: Node;
}

export interface LookupVal extends Positioned {
  readonly typename: 'LookupVal';
  readonly target: Node;
  readonly val: Node;
}

export interface Conditional extends Positioned {
  readonly typename: 'If' | 'InlineIf' | 'IfAsync';
  readonly cond: Node;
  readonly body: Node;
  readonly else_: Node | null;
}

export type BinaryType =
  | 'In'
  | 'Is'
  | 'Or'
  | 'And'
  | 'Add'
  | 'Concat'
  | 'Sub'
  | 'Mul'
  | 'Div'
  | 'FloorDiv'
  | 'Mod'
  | 'Pow';

export interface Binary extends Positioned {
  readonly typename: BinaryType;
  readonly left: Node;
  readonly right: Node;
}

export interface Unary extends Positioned {
  readonly typename: 'Not' | 'Neg' | 'Pos';
  readonly target: Node;
}

export interface Compare extends Positioned {
  readonly typename: 'Compare';
  readonly expr: Node;
  readonly ops: readonly { readonly expr: Node; readonly type: string }[];
}

export interface FunCall extends Positioned {
  readonly typename: 'FunCall';
  readonly name: Node;
  readonly args: NodeList;
}

export interface Filter extends Positioned {
  readonly typename: 'Filter';
  readonly name: Name;
  readonly args: NodeList;
}

export interface Macro extends Positioned {
  readonly typename: 'Macro' | 'Caller';
  readonly name: Name;
  readonly args: NodeList;
  readonly body: Node;
}

export interface Capture extends Positioned {
  readonly typename: 'Capture';
  readonly body: Node;
}

export interface For extends Positioned {
  readonly typename: 'For' | 'AsyncEach' | 'AsyncAll';
  readonly arr: Node;
  readonly name: Node;
  readonly body: Node;
  readonly else_: Node | null;
}

export interface SetNode extends Positioned {
  readonly typename: 'Set';
  readonly targets: readonly Node[];
  readonly value: Node | null;
  readonly body?: Capture;
}

export interface Include extends Positioned {
  readonly typename: 'Include';
  readonly template: Node;
  readonly ignoreMissing: boolean | null;
}

export interface Import extends Positioned {
  readonly typename: 'Import';
  readonly template: Node;
  readonly target: Node;
}

export interface FromImport extends Positioned {
  readonly typename: 'FromImport';
  readonly template: Node;
  readonly names: NodeList & { readonly children: readonly (Name | Pair)[] };
}

export interface Switch extends Positioned {
  readonly typename: 'Switch';
  readonly expr: Node;
  readonly cases: readonly { readonly cond: Node; readonly body: Node }[];
  readonly default: Node | null;
}

export interface Section extends Positioned {
  readonly typename: 'Section';
  readonly name: string;
  readonly body: Node;
}

export interface Cells extends Positioned {
  readonly typename: 'Cells';
  readonly name: string;
  readonly collection: Node;
  readonly key: Node | undefined;
  readonly body: Node;
}

/** Constructs that the parser knows and templates may not use. */
export interface Forbidden extends Positioned {
  readonly typename: 'Block' | 'Extends' | 'Super' | 'CallExtension' | 'FilterAsync';
}

export type Node =
  | NodeList
  | Literal
  | Name
  | Dict
  | Pair
  | LookupVal
  | Conditional
  | Binary
  | Unary
  | Compare
  | FunCall
  | Filter
  | Macro
  | Capture
  | For
  | SetNode
  | Include
  | Import
  | FromImport
  | Switch
  | Section
  | Cells
  | Forbidden;

const present = (nodes: readonly (Node | null | undefined)[]): Node[] =>
  nodes.filter((node): node is Node => node !== null && node !== undefined);

type Children = { readonly [Type in Node['typename']]?: (node: never) => readonly Node[] };

const binary = ({ left, right }: Binary): Node[] => [left, right];
const list = ({ children }: NodeList): readonly Node[] => children;
const unary = ({ target }: Unary): Node[] => [target];
const conditional = ({ cond, body, else_ }: Conditional): Node[] => present([cond, body, else_]);
const loop = ({ arr, name, body, else_ }: For): Node[] => present([arr, name, body, else_]);
const macro = ({ args, body }: Macro): Node[] => [args, body];

const CHILDREN: Children = {
  ...{ NodeList: list, Root: list, Output: list, Group: list, Array: list },
  ...{ In: binary, Is: binary, Or: binary, And: binary, Add: binary, Concat: binary, Sub: binary },
  ...{ Mul: binary, Div: binary, FloorDiv: binary, Mod: binary, Pow: binary },
  ...{ Not: unary, Neg: unary, Pos: unary, If: conditional, InlineIf: conditional },
  ...{
    IfAsync: conditional,
    For: loop,
    AsyncEach: loop,
    AsyncAll: loop,
    Macro: macro,
    Caller: macro,
  },
  Dict: ({ children }: Dict) => children,
  KeywordArgs: ({ children }: Dict) => children,
  Pair: ({ value }: Pair) => [value],
  LookupVal: ({ target, val }: LookupVal) => [target, val],
  Compare: ({ expr, ops }: Compare) => [expr, ...ops.map((op) => op.expr)],
  FunCall: ({ name, args }: FunCall) => [name, args],
  Filter: ({ args }: Filter) => [args],
  Capture: ({ body }: Capture) => [body],
  Set: ({ value, body }: SetNode) => present([value, body]),
  Include: ({ template }: Include) => [template],
  Import: ({ template }: Import) => [template],
  FromImport: ({ template }: FromImport) => [template],
  Switch: (node: Switch) =>
    present([node.expr, ...node.cases.flatMap((one) => [one.cond, one.body]), node.default]),
  Section: ({ body }: Section) => [body],
  Cells: ({ collection, key, body }: Cells) => present([collection, key, body]),
};

/** Direct children that are evaluated or printed; names that are only bound are left out. */
export const childrenOf = (node: Node): readonly Node[] =>
  CHILDREN[node.typename]?.(node as never) ?? [];

/** The node and everything below it, parents first. */
export function* walk(node: Node): Generator<Node> {
  yield node;
  for (const child of childrenOf(node)) yield* walk(child);
}

/** How an expression reads in a template, for messages: `b.metadata.annotations["x"]`. */
export const describe = (node: Node): string => {
  switch (node.typename) {
    case 'Symbol':
      return node.value;
    case 'Literal':
      return JSON.stringify(node.value);
    case 'LookupVal':
      return `${describe(node.target)}${describeMember(node.val)}`;
    case 'FunCall':
      return `${describe(node.name)}(${node.args.children.map(describe).join(', ')})`;
    case 'Filter':
      return `${node.args.children[0] ? describe(node.args.children[0]) : ''} | ${node.name.value}`;
    case 'Group':
      return `(${node.children.map(describe).join(', ')})`;
    default:
      return 'the expression';
  }
};

const describeMember = (member: Node): string => {
  if (member.typename !== 'Literal') return `[${describe(member)}]`;
  const { value } = member;
  const isName = typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value);
  return isName ? `.${value}` : `[${JSON.stringify(value)}]`;
};
