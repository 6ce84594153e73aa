/**
 * Emitters that do not fit where they print. The literal text around them is read as HAProxy reads it, along every way
 * through the main template and what it includes. An emitter is refused when it fits on none of the ways that lead to it: where
 * the state of a line depends on data, nothing is told.
 */
import { placeOf } from './compile-context.ts';
import type { Problem } from '../../snapshot/problem.ts';
import { StepBudget } from './step-budget.ts';
import type { ParsedTemplate, TemplateFacts } from './template-facts.ts';
import type { TemplateFailure } from './failure.ts';
import {
  isLineStart,
  throughLineEnd,
  throughText,
  widened,
  type LineContext,
} from './line-steps.ts';
import { LINE_START, LOST, keyOfStates, united, type LineStates } from './line-state.ts';
import { PRINTED_EXPRESSIONS } from './printed-expressions.ts';
import {
  ANY,
  DATA,
  assignedIn,
  bound,
  elementOf,
  isData,
  joined,
  type Binding,
  type Bindings,
} from './printed-names.ts';
import { namesOf } from './bindings.ts';
import type {
  Cells,
  Conditional,
  For,
  FromImport,
  Import,
  Include,
  Literal,
  Macro,
  Node,
  NodeList,
  Section,
  SetNode,
  Switch,
} from './syntax.ts';

const MAX_DEPTH = 40;
/** Passes through a loop to find the states it begins with. */
const MAX_PASSES = 4;

/** What the following of the main template has shown. */
export interface PlaceFindings {
  readonly failures: readonly TemplateFailure[];
  /** One for each node of the top level that is too much to follow. */
  readonly warnings: readonly Problem[];
}

/** All misplaced emitters and open quotes of what the main template prints. */
export const checkPlaces = (main: ParsedTemplate, find: TemplateFacts['find']): PlaceFindings => {
  const failures: TemplateFailure[] = [];
  const budget = new StepBudget(main);
  const context: LineContext = {
    ...{ source: main.source, names: { bindings: new Map() }, quiet: false, depth: 0, find },
    tell: (failure) => failures.push(failure),
    follow: (node, states, inside) => {
      if (!budget.take(node) || inside.depth > MAX_DEPTH) return [LOST];
      const follow = (FOLLOWED as Record<string, Follow<never> | undefined>)[node.typename];
      return follow?.(node as never, states, inside) ?? states;
    },
  };
  throughLineEnd(context.follow(main.root, [LINE_START], context), context);
  return { failures, warnings: budget.warnings() };
};

type Follow<N> = (node: N, states: LineStates, context: LineContext) => LineStates;

const list: Follow<NodeList> = ({ children }, states, context) =>
  children.reduce((before, child) => context.follow(child, before, context), states);

const data: Follow<Literal> = (node, states, context) =>
  throughText(String(node.value), placeOf(node, context.source), { before: states, context });

/** Each body on its own, with what it assigns; undefined is a way that prints nothing. */
const ways = (
  bodies: readonly (Node | null)[],
  states: LineStates,
  context: LineContext,
): LineStates => {
  const { names } = context;
  const { bindings } = names;
  const ends = bodies.map((body) => {
    names.bindings = bindings;
    const after = body === null ? states : context.follow(body, states, context);
    return { after, bindings: names.bindings };
  });
  names.bindings = joined(ends.map((end) => end.bindings));
  return united(...ends.map(({ after }) => after));
};

/** What a body leads to that runs at least once, and perhaps again and again. */
const repeat: Follow<Node> = (body, before, context) => {
  const { names } = context;
  // What an earlier pass assigned is not known.
  const bindings = bound(names.bindings, assignedIn(body), ANY);
  const pass = (states: LineStates, quiet: boolean): LineStates => {
    names.bindings = bindings;
    return context.follow(body, states, { ...context, quiet });
  };
  let states = before;
  let isStable = false;
  for (let passes = 0; passes < MAX_PASSES && !isStable; passes += 1) {
    const next = united(states, pass(states, true));
    isStable = keyOfStates(next) === keyOfStates(states);
    states = next;
  }
  const after = pass(states, context.quiet);
  names.bindings = bindings;
  return isStable ? after : united(after, widened(after));
};

const loop: Follow<For> = ({ arr, name, body, else_ }, states, context) => {
  const { names, source } = context;
  const outer = names.bindings;
  const variables = namesOf(name.typename === 'Array' ? name.children : [name]);
  const element = elementOf(arr, source, outer);
  const inside = bound(bound(outer, variables, element), ['loop'], DATA);
  const runs = repeat(body, states, { ...context, names: { bindings: inside } });
  names.bindings = bound(outer, assignedIn(body), ANY);
  if (arr.typename === 'Array' && arr.children.length > 0) return runs;
  return united(runs, else_ === null ? states : context.follow(else_, states, context));
};

/** A cell sees its variable and the globals. */
const cells: Follow<Cells> = ({ name, collection, body }, states, context) => {
  const element = isData(collection, context.names.bindings) ? DATA : ANY;
  const names = { bindings: new Map([[name, element]]) };
  return united(states, repeat(body, states, { ...context, names }));
};

const include: Follow<Include> = ({ template }, states, context) => {
  const name = template.typename === 'Literal' ? String(template.value) : '';
  const { bindings } = context.names;
  return (context.find(name) ?? []).reduce<LineStates>((before, { source, root }) => {
    const inside = { ...context, source, names: { bindings }, depth: context.depth + 1 };
    const after = context.follow(root, before, inside);
    // A snippet of a hook gets the line feed that it forgets.
    const begins = name.includes('*') && before.every(isLineStart);
    return begins && !after.every(isLineStart) ? throughLineEnd(after, inside) : after;
  }, states);
};

/** What binds names prints nothing. */
const binds =
  <N extends Node>(bindingsOf: (node: N, context: LineContext) => Bindings): Follow<N> =>
  (node, states, context) => {
    context.names.bindings = bindingsOf(node, context);
    return states;
  };

const assign = binds(({ targets, value, body }: SetNode, { names, source }) => {
  const { bindings } = names;
  const node = value ?? body;
  const assigned = node === undefined ? ANY : assignedBinding(node, source, bindings);
  return bound(bindings, namesOf(targets), assigned);
});

const assignedBinding = (node: Node, source: string, bindings: Bindings): Binding =>
  isData(node, bindings) ? DATA : { type: 'text', node, source, bindings };

const define = binds((node: Macro, { names: { bindings }, source }) =>
  bound(bindings, [node.name.value], { type: 'macro', node, source, bindings }),
);

const importAs = binds(({ template, target }: Import, context) =>
  bound(context.names.bindings, namesOf([target]), {
    type: 'module',
    bindings: exportsOf(template, context),
  }),
);

const importFrom = binds(({ template, names }: FromImport, context) => {
  const exported = exportsOf(template, context);
  let { bindings } = context.names;
  for (const name of names.children) {
    const [from, to] = name.typename === 'Pair' ? [name.key, name.value] : [name, name];
    const [source = ''] = namesOf([from]);
    bindings = bound(bindings, namesOf([to]), exported.get(source) ?? ANY);
  }
  return bindings;
});

/** Names that a snippet binds when it runs on its own. */
const exportsOf = (template: Node, context: LineContext): Bindings => {
  const name = template.typename === 'Literal' ? String(template.value) : '';
  const [snippet] = context.find(name) ?? [];
  if (snippet === undefined) return new Map();
  const { source, root } = snippet;
  const names: LineContext['names'] = { bindings: new Map() };
  context.follow(root, [LOST], {
    ...context,
    source,
    names,
    quiet: true,
    depth: context.depth + 1,
  });
  return names.bindings;
};

const FOLLOWED = {
  ...PRINTED_EXPRESSIONS,
  ...{ Root: list, NodeList: list, Output: list, TemplateData: data, For: loop, Cells: cells },
  ...{ Include: include, Set: assign, Macro: define, Import: importAs, FromImport: importFrom },
  If: (({ body, else_ }, states, context) =>
    ways([body, else_], states, context)) satisfies Follow<Conditional>,
  Switch: (({ cases, default: otherwise }, states, context) =>
    ways([...cases.map(({ body }) => body), otherwise], states, context)) satisfies Follow<Switch>,
  Section: (({ body }, states, context) =>
    context.follow(body, states, context)) satisfies Follow<Section>,
};
