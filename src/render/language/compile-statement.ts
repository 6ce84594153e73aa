/** Tags of a template as closures that print to a writer. */
import { PersistentMap } from '../../cells/persistent-map.ts';
import {
  placeOf,
  type FindSnippets,
  type Statement,
  type StatementContext,
} from './compile-context.ts';
import { compileExpression } from './compile-expression.ts';
import { TemplateFailure, type Place } from './failure.ts';
import { compileFromImport, compileImport, compileInclude } from './includes.ts';
import { compileFor } from './loops.ts';
import { compileMacro } from './macros.ts';
import { equals } from './operators.ts';
import { Scope, type Run } from './run.ts';
import { settingOf, wrongSetting } from './settings.ts';
import type { CellsTag, SlotRequest } from './slots.ts';
import type {
  Cells,
  Conditional,
  Macro,
  Node,
  NodeList,
  Section,
  SetNode,
  Switch,
} from './syntax.ts';
import { LIBRARY } from '../config/template-config.ts';
import { Text, type Inclusion } from './text.ts';
import {
  TrackedCollection,
  WatchedObjects,
  entriesOf,
  isRecord,
  isTrue,
  kindOf,
} from './values.ts';
import { ItemWriter, Profile } from './writer.ts';

type Compile<N> = (node: N, context: StatementContext) => Statement;

/** Compiles the nodes of a whole template. */
export const compileTemplate = (root: Node, source: string, find: FindSnippets): Statement => {
  const context: StatementContext = {
    source,
    find,
    expression: (node, lenient = false) => compileExpression(node, context, lenient),
    body: (node) => compileStatement(node, context),
    macro: (node) => compileMacro(node, context),
  };
  return compileStatement(root, context);
};

const compileStatement: Compile<Node> = (node, context) => {
  const compile = (STATEMENTS as Record<string, Compile<never> | undefined>)[node.typename];
  if (compile !== undefined) return compile(node as never, context);
  throw new TemplateFailure(`a template cannot use ${node.typename}`, {
    place: placeOf(node, context.source),
    nextStep: 'See the tags in docs/templates.md.',
  });
};

const compileList: Compile<NodeList> = (node, context) => {
  const statements = node.children.map((child) => compileStatement(child, context));
  const [only] = statements;
  if (statements.length === 1 && only !== undefined) return only;
  return (run) => {
    for (const statement of statements) statement(run);
  };
};

const compileOutput: Compile<NodeList> = (node, context) => {
  const prints = node.children.map((child): Statement => {
    const place = placeOf(child, context.source);
    if (child.typename === 'TemplateData') {
      const data = String(child.value);
      return ({ out }) => out.write(data, place, true);
    }
    const value = context.expression(child);
    const setting = settingOf(child);
    const isOurs = context.source.startsWith(LIBRARY);
    return (run) => print(run, value(run), { place, setting, isOurs });
  });
  return (run) => {
    for (const one of prints) one(run);
  };
};

interface Printing {
  readonly place: Place;
  /** The setting that is printed, if it is one. */
  readonly setting: string | undefined;
  /** Whether a library prints it, which nobody has to correct. */
  readonly isOurs: boolean;
}

const print = ({ out }: Run, value: unknown, printing: Printing): void => {
  const { place, setting } = printing;
  if (value instanceof Text) out.writeText(value, place);
  else if (typeof value === 'boolean') out.write(String(value), place);
  else if (typeof value === 'number' && Number.isFinite(value)) out.write(String(value), place);
  else if (value instanceof Profile) out.profile(value, place);
  else if (setting === undefined) throw unprintable(value, place);
  else throw unprintableSetting(setting, value, printing.isOurs).at(place);
};

const unprintableSetting = (setting: string, value: unknown, isOurs: boolean): TemplateFailure =>
  wrongSetting({
    setting,
    value,
    expected: 'a number or a boolean as the template prints it',
    ...(typeof value === 'string' && !isOurs ? { or: 'print the string through an emitter' } : {}),
  });

const unprintable = (value: unknown, place: Place): TemplateFailure =>
  typeof value === 'string'
    ? new TemplateFailure('a string that comes from data is printed without an emitter', {
        place,
        nextStep:
          'Add the emitter for this place: | token, | quoted, | logFormat, …, in a template of files | text.',
      })
    : new TemplateFailure(`${kindOf(value)} cannot be printed`, {
        place,
        nextStep: 'Print a number, a boolean, a literal, or what an emitter made.',
      });

const compileIf: Compile<Conditional> = (node, context) => {
  const condition = context.expression(node.cond);
  const yes = compileStatement(node.body, context);
  const no = node.else_ === null ? undefined : compileStatement(node.else_, context);
  return (run) => {
    if (isTrue(condition(run))) yes(run);
    else no?.(run);
  };
};

const compileSwitch: Compile<Switch> = (node, context) => {
  const subject = context.expression(node.expr);
  const cases = node.cases.map(({ cond, body }) => ({
    matches: context.expression(cond),
    run: compileStatement(body, context),
  }));
  const otherwise = node.default === null ? undefined : compileStatement(node.default, context);
  return (run) => {
    const value = subject(run);
    const found = cases.find((one) => equals(one.matches(run), value));
    if (found === undefined) otherwise?.(run);
    else found.run(run);
  };
};

const compileSet: Compile<SetNode> = (node, context) => {
  const names = node.targets.map((target) => (target.typename === 'Symbol' ? target.value : ''));
  const value = context.expression((node.value ?? node.body) as Node);
  return (run) => {
    const assigned = value(run);
    for (const name of names) run.scope.assign(name, assigned);
  };
};

const compileMacroTag: Compile<Macro> = (node, context) => {
  const make = compileMacro(node, context);
  return (run) => run.scope.bind(node.name.value, make(run));
};

const compileSection: Compile<Section> = (node, context) => {
  const body = compileStatement(node.body, context);
  return (run) => {
    if (!(run.out instanceof ItemWriter)) return;
    const out = new ItemWriter<SlotRequest>(run.out.via);
    body({ ...run, out });
    (run.out as ItemWriter<SlotRequest>).add({
      type: 'section',
      name: node.name,
      items: out.items(),
    });
  };
};

/** A tag whose cells know the includes that lead to it, which they are evaluated without. */
const reachedBy = (via: Inclusion | undefined, tag: CellsTag): CellsTag =>
  via === undefined
    ? tag
    : {
        ...tag,
        body: (run) => {
          run.out.within(via, () => {
            tag.body(run);
          });
        },
      };

const compileCells: Compile<Cells> = (node, context) => {
  const place = placeOf(node, context.source);
  const collection = context.expression(node.collection);
  const key = node.key === undefined ? undefined : context.expression(node.key);
  const tag = {
    id: `${context.source}:${place.line}:${place.column}`,
    place,
    name: node.name,
    body: compileStatement(node.body, context),
  };
  const refuse = (message: string): never => {
    const nextStep =
      'Go over resources.NAME, a collection of routes, a mapping, or a list with "key EXPRESSION".';
    throw new TemplateFailure(message, { place, nextStep });
  };
  const keyed = (elements: readonly unknown[], run: Run): PersistentMap<unknown> => {
    const entries = new Map<string, unknown>();
    for (const element of elements) {
      const scope = new Scope(run.scope);
      scope.bind(node.name, element);
      const name = key?.({ ...run, scope });
      const text = typeof name === 'number' || name instanceof Text ? String(name) : name;
      if (typeof text !== 'string') return refuse('the key of a cell is not a string');
      if (entries.has(text)) return refuse('two cells have the same key');
      entries.set(text, element);
    }
    return PersistentMap.from(entries);
  };
  const overOf = (value: unknown, run: Run): SlotRequest['over'] => {
    if (key !== undefined && Array.isArray(value)) return keyed(value, run);
    if (key === undefined) {
      if (value instanceof TrackedCollection) return value.name;
      if (value instanceof WatchedObjects) return value.collection;
      if (isRecord(value)) {
        return PersistentMap.from((entriesOf(value) ?? []) as [string, unknown][]);
      }
    }
    return refuse(`there can be no cells over ${kindOf(value)} like this`);
  };
  return (run) => {
    const over = overOf(collection(run), run);
    if (run.out instanceof ItemWriter) {
      (run.out as ItemWriter<SlotRequest>).add({
        type: 'slot',
        slot: { tag: reachedBy(run.out.via, tag), over },
      });
    }
  };
};

const STATEMENTS = {
  Root: compileList,
  NodeList: compileList,
  Output: compileOutput,
  If: compileIf,
  For: compileFor,
  Switch: compileSwitch,
  Set: compileSet,
  Macro: compileMacroTag,
  Include: compileInclude,
  Import: compileImport,
  FromImport: compileFromImport,
  Section: compileSection,
  Cells: compileCells,
};
