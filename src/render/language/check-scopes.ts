/**
 * What is wrong with a node because of where it stands: names that nobody binds there, cells inside what captures them,
 * assignments out of a cell. Includes are followed, each snippet in the places it is included from.
 */
import { boundIn, namesOf } from './bindings.ts';
import { callProblems } from './check-calls.ts';
import { placeOf } from './compile-context.ts';
import { TemplateFailure, nearest } from './failure.ts';
import { guardedPaths } from './guards.ts';
import {
  ANY,
  LOOP_SHAPE,
  elementShape,
  impossibleMember,
  loopShapes,
  shapeOf,
  type Shape,
  type Shapes,
} from './shapes.ts';
import {
  childrenOf,
  type Binary,
  type Cells,
  type Filter,
  type For,
  type FromImport,
  type FunCall,
  type Include,
  type LookupVal,
  type Macro,
  type Node,
  type Section,
  type SetNode,
} from './syntax.ts';
import type { ParsedTemplate, TemplateFacts } from './template-facts.ts';
import { namesWithin, undefinedImports } from './visible-names.ts';

/** What following a template from its root has shown. */
export interface ScopeFindings {
  readonly problems: TemplateFailure[];
  /** Ids of the `cells` tags whose bodies call `backend`. */
  readonly backendTags: Set<string>;
  /** Roots of all templates that were reached. */
  readonly reached: Set<Node>;
}

interface Place {
  readonly source: string;
  /** Names, and what they can have as far as it is known. */
  readonly visible: Shapes;
  /** A name that may be undefined stands here. */
  readonly lenient: boolean;
  /** Paths of members that this template, or one that includes it, asks for. */
  readonly guarded: ReadonlySet<string>;
  /** The tag whose cell this belongs to. */
  readonly cells: string | undefined;
  /** Tag or block that captures what is printed here. */
  readonly captured: string | undefined;
  readonly inSection: boolean;
  /** Whether sections and profiles can stand here: in the main template. */
  readonly isMain: boolean;
  /** Whether lines mean nothing here: in a template of files. */
  readonly isFile: boolean;
}

/** Follows one root template of a kind. */
export const checkScopes = (
  template: ParsedTemplate,
  facts: TemplateFacts,
  kind: 'config' | 'map' | 'file' | 'certificate',
): ScopeFindings => {
  const findings = {
    problems: [],
    backendTags: new Set<string>(),
    reached: new Set([template.root]),
  };
  new Follower(facts, findings).visit(template.root, {
    ...{ source: template.source, lenient: false, guarded: guardedPaths(template.root) },
    visible: namesWithin(template.root, { around: facts.globals }, facts.find),
    isMain: kind === 'config',
    isFile: kind === 'file',
    cells: undefined,
    captured: undefined,
    inSection: false,
  });
  return findings;
};

class Follower {
  readonly #facts: TemplateFacts;
  readonly #findings: ScopeFindings;
  /** Snippets already seen in an equal place; also ends recursion. */
  readonly #seen = new Set<string>();
  readonly #shapeIds = new Map<Shape, number>();

  constructor(facts: TemplateFacts, findings: ScopeFindings) {
    this.#facts = facts;
    this.#findings = findings;
  }

  visit(node: Node, place: Place): void {
    const visitor = (this.#visitors as Record<string, Visitor | undefined>)[node.typename];
    if (visitor === undefined) this.#visitChildren(node, { ...place, lenient: false });
    else visitor(node as never, place);
  }

  #visitChildren(node: Node, place: Place): void {
    for (const child of childrenOf(node)) this.visit(child, place);
  }

  #report(node: Node, place: Place, message: string): void {
    this.#findings.problems.push(
      new TemplateFailure(message, {
        place: placeOf(node, place.source),
        nextStep: 'Correct the template; docs/templates.md describes the language.',
      }),
    );
  }

  #reportAll(problems: readonly (readonly [Node, string])[], place: Place): void {
    for (const [node, message] of problems) this.#report(node, place, message);
  }

  /** The names inside a body. */
  #within(
    body: Node,
    around: Shapes,
    given?: Iterable<readonly [string, Shape]>,
  ): Pick<Place, 'visible'> {
    const names = given === undefined ? { around } : { around, given };
    return { visible: namesWithin(body, names, this.#facts.find) };
  }

  readonly #visitors = {
    Symbol: (node: Node & { value: string }, place: Place): void => {
      if (place.lenient || place.visible.has(node.value)) return;
      const hint = nearest(node.value, place.visible.keys());
      this.#report(node, place, `unknown name "${node.value}"${hint}`);
    },
    LookupVal: (node: LookupVal, place: Place): void => {
      this.visit(node.target, place);
      this.visit(node.val, { ...place, lenient: false });
      this.#checkMember(node, place);
    },
    Group: (node: Node, place: Place): void => this.#visitChildren(node, place),
    Filter: (node: Filter, place: Place): void => {
      const [first, ...rest] = node.args.children;
      const { value: name } = node.name;
      const lenient = name === 'default' || name === 'coalesce';
      if (name === 'text' && !place.isFile) {
        this.#report(node, place, 'the emitter "text" is for templates of files alone');
      }
      if (first !== undefined) this.visit(first, { ...place, lenient });
      for (const argument of rest) this.visit(argument, { ...place, lenient: name === 'coalesce' });
    },
    Is: (node: Binary, place: Place): void => {
      const test = node.right.typename === 'Symbol' ? node.right.value : '';
      this.visit(node.left, { ...place, lenient: test === 'defined' || test === 'undefined' });
      if (node.right.typename === 'FunCall') this.visit(node.right.args, place);
    },
    FunCall: (node: FunCall, place: Place): void => {
      this.#checkCall(node, place);
      this.visit(node.name, { ...place, lenient: false });
      this.visit(node.args, { ...place, lenient: false });
    },
    Set: (node: SetNode, place: Place): void => {
      for (const name of namesOf(node.targets)) {
        if (this.#facts.globals.has(name)) this.#report(node, place, `"${name}" is a global name`);
      }
      this.#visitChildren(node, place);
    },
    Capture: (node: Node, place: Place): void =>
      this.#visitChildren(node, { ...place, captured: place.captured ?? 'a captured block' }),
    For: (node: For, place: Place): void => this.#visitFor(node, place),
    Macro: (node: Macro, place: Place): void => this.#visitMacro(node, place),
    Caller: (node: Macro, place: Place): void => this.#visitMacro(node, place),
    Include: (node: Include, place: Place): void =>
      this.#visitSnippets(node, place, {
        ...place,
        optional: node.ignoreMissing === true,
      }),
    Import: (node: Node & { template: Node }, place: Place): void => this.#visitModule(node, place),
    FromImport: (node: FromImport, place: Place): void => {
      this.#visitModule(node, place);
      this.#reportAll(undefinedImports(node, this.#facts.find), place);
    },
    Section: (node: Section, place: Place): void => {
      const isInner = place.inSection || place.cells !== undefined || place.captured !== undefined;
      if (!place.isMain || isInner) {
        this.#report(node, place, 'a section can only stand at the top level of the main template');
      }
      this.#visitChildren(node, { ...place, inSection: true });
    },
    Cells: (node: Cells, place: Place): void => this.#visitCells(node, place),
  };

  #visitFor(node: For, place: Place): void {
    this.visit(node.arr, { ...place, lenient: false });
    const names = namesOf(node.name.typename === 'Array' ? node.name.children : [node.name]);
    const shapes = loopShapes(names, shapeOf(node.arr, place.visible));
    const bindings = [['loop', LOOP_SHAPE] as const, ...shapes];
    this.visit(node.body, { ...place, ...this.#within(node.body, place.visible, bindings) });
    if (node.else_ !== null) this.visit(node.else_, place);
  }

  #visitMacro(node: Macro, place: Place): void {
    const parameters = node.args.children.flatMap((argument) =>
      argument.typename === 'KeywordArgs'
        ? namesOf(argument.children.map(({ key }) => key))
        : namesOf([argument]),
    );
    const bindings = ['caller', ...parameters].map((name) => [name, ANY] as const);
    for (const argument of node.args.children) {
      if (argument.typename === 'KeywordArgs') this.visit(argument, place);
    }
    this.visit(node.body, {
      ...place,
      ...this.#within(node.body, place.visible, bindings),
      captured: place.captured ?? 'a macro',
    });
  }

  #visitCells(node: Cells, place: Place): void {
    const at = placeOf(node, place.source);
    this.visit(node.collection, { ...place, lenient: false });
    if (place.cells !== undefined) this.#report(node, place, 'cells cannot stand inside cells');
    else if (place.captured !== undefined) {
      this.#report(
        node,
        place,
        `cells cannot stand inside ${place.captured}: their text comes afterwards`,
      );
    }
    for (const name of boundIn(node.body)) {
      if (place.visible.has(name) && !this.#facts.globals.has(name) && name !== node.name) {
        this.#report(node, place, `a cell cannot set "${name}" of the template around it`);
      }
    }
    const element = [node.name, elementShape(shapeOf(node.collection, place.visible))] as const;
    if (node.key !== undefined) {
      this.visit(node.key, { ...place, visible: new Map([...place.visible, element]) });
    }
    this.visit(node.body, {
      ...place,
      ...this.#within(node.body, this.#facts.globals, [element]),
      cells: `${at.source}:${at.line}:${at.column}`,
    });
  }

  #visitModule(node: Node & { template: Node }, place: Place): void {
    const { globals: visible } = this.#facts;
    this.#visitSnippets(node, place, { ...place, visible, captured: 'an import', optional: false });
  }

  #visitSnippets(
    node: Node & { template: Node },
    place: Place,
    inside: Place & { optional: boolean },
  ): void {
    if (node.template.typename !== 'Literal') return;
    const name = String(node.template.value);
    const found = this.#facts.find(name);
    if (found === undefined && !inside.optional) {
      const hint = nearest(name, this.#facts.snippetNames);
      this.#report(node.template, place, `unknown snippet "${name}"${hint}`);
    }
    for (const { source, root } of found ?? []) {
      const { visible } = this.#within(root, inside.visible);
      const guarded = inside.guarded.union(guardedPaths(root));
      const at: Place = { ...inside, source, visible, guarded, lenient: false };
      const names = [...visible].map(([bound, shape]) => `${bound} ${String(this.#idOf(shape))}`);
      const seen = [source, at.cells, at.captured, at.inSection, ...names.sort(), ...guarded];
      if (this.#seen.has(seen.join('\n'))) continue;
      this.#seen.add(seen.join('\n'));
      this.#findings.reached.add(root);
      this.visit(root, at);
    }
  }

  #idOf(shape: Shape): number {
    const id = this.#shapeIds.get(shape) ?? this.#shapeIds.size;
    this.#shapeIds.set(shape, id);
    return id;
  }

  #checkCall(node: FunCall, place: Place): void {
    this.#reportAll(callProblems(node, place, this.#facts.maps), place);
    const isBackend = node.name.typename === 'Symbol' && node.name.value === 'backend';
    if (isBackend && place.cells !== undefined && place.isMain && !place.inSection) {
      this.#findings.backendTags.add(place.cells);
    }
  }

  #checkMember(node: LookupVal, place: Place): void {
    const message = place.lenient ? undefined : impossibleMember(node, place);
    if (message !== undefined) this.#report(node.val, place, message);
  }
}

type Visitor = (node: never, place: Place) => void;
