/** What is wrong with a node wherever it stands: unknown filters and tests, constructs that are not part of the language. */
import { placeOf } from './compile-context.ts';
import { TemplateFailure, nearest } from './failure.ts';
import { FILTERS } from './filters.ts';
import {
  walk,
  type Binary,
  type Dict,
  type Filter,
  type For,
  type FromImport,
  type Import,
  type Include,
  type Literal,
  type Node,
  type NodeList,
  type SetNode,
} from './syntax.ts';
import { TESTS } from './tests.ts';

const FORBIDDEN: Readonly<Record<string, string>> = {
  AsyncEach: 'asyncEach does not exist here: use for',
  AsyncAll: 'asyncAll does not exist here: use for',
  IfAsync: 'ifAsync does not exist here: use if',
  Block: 'blocks do not exist here: use include',
  Extends: 'extends does not exist here: use include',
  Super: 'blocks do not exist here: use include',
  FilterAsync: 'asynchronous filters do not exist here',
  CallExtension: 'this tag does not exist here',
};

/** All such problems of one template. */
export function* checkNodes(root: Node, source: string): Generator<TemplateFailure> {
  for (const node of walk(root)) {
    for (const problem of problemsOf(node)) {
      const nextStep = 'See the language in docs/templates.md.';
      yield new TemplateFailure(problem, { place: placeOf(node, source), nextStep });
    }
  }
}

const problemsOf = (node: Node): readonly string[] => {
  const forbidden = FORBIDDEN[node.typename];
  if (forbidden !== undefined) return [forbidden];
  const check = (CHECKS as Record<string, ((node: never) => readonly string[]) | undefined>)[
    node.typename
  ];
  return check?.(node as never) ?? [];
};

type Check<N extends Node> = (node: N) => readonly string[];

const when = (wrong: boolean, problem: string): readonly string[] => (wrong ? [problem] : []);

const unknown = (
  what: string,
  name: string,
  known: ReadonlyMap<string, unknown>,
): readonly string[] =>
  known.has(name) ? [] : [`unknown ${what} "${name}"${nearest(name, known.keys())}`];

const isName = (node: Node): boolean => node.typename === 'Symbol';
const isText = (node: Node): boolean =>
  node.typename === 'Literal' && typeof node.value === 'string';

const checkFilter: Check<Filter> = ({ name }) => unknown('filter', name.value, FILTERS);

const checkTest: Check<Binary> = ({ right }) => {
  const callee = right.typename === 'FunCall' ? right.name : right;
  if (callee.typename === 'Literal' && callee.value === null) return [];
  if (callee.typename !== 'Symbol') return ['"is" takes the name of a test'];
  return unknown('test', callee.value, TESTS);
};

const checkNames: Check<For> = ({ name }) => {
  const names = name.typename === 'Array' ? name.children : [name];
  return when(!names.every(isName), 'for takes plain names');
};

const CHECKS = {
  Filter: checkFilter,
  Is: checkTest,
  For: checkNames,
  Literal: (({ value }) =>
    when(
      value instanceof RegExp,
      'regular expression literals do not exist here: use regex_match',
    )) satisfies Check<Literal>,
  Group: (({ children }) =>
    when(children.length !== 1, 'parentheses hold one expression')) satisfies Check<NodeList>,
  Set: (({ targets }) =>
    when(!targets.every(isName), 'set assigns to plain names only')) satisfies Check<SetNode>,
  Dict: (({ children }) =>
    when(
      !children.every(({ key }) => isName(key) || isText(key)),
      'the keys of a mapping are names or strings in quotes',
    )) satisfies Check<Dict>,
  Include: (({ template }) =>
    when(!isText(template), 'include takes a name in quotes')) satisfies Check<Include>,
  Import: (({ template, target }) =>
    when(
      !isText(template) || !isName(target),
      'import takes a name in quotes and a plain name after "as"',
    )) satisfies Check<Import>,
  FromImport: (({ template }) =>
    when(!isText(template), 'from takes a name in quotes')) satisfies Check<FromImport>,
};
