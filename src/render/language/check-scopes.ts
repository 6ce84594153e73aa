/**
 * What is wrong with a node because of where it stands: names that nobody binds there, cells inside what captures them,
 * assignments out of a cell. Includes are followed, each snippet in the places it is included from.
 */
import { boundIn, namesOf } from './bindings.ts';
import { placeOf } from './compile-context.ts';
import { TemplateFailure, nearest } from './failure.ts';
import {
  childrenOf,
  type Binary,
  type Cells,
  type Filter,
  type For,
  type FunCall,
  type Include,
  type LookupVal,
  type Macro,
  type Node,
  type Section,
  type SetNode,
} from './syntax.ts';

export interface ParsedTemplate {
  readonly source: string;
  readonly root: Node;
}

/** What the checks know about the whole set. */
export interface TemplateFacts {
  /** Names of globals; for those whose members are known, the members. */
  readonly globals: ReadonlyMap<string, readonly string[] | undefined>;
  /** Snippets by name or glob; undefined for a name that does not exist. */
  readonly find: (name: string) => readonly ParsedTemplate[] | undefined;
  readonly snippetNames: readonly string[];
}

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
  readonly visible: ReadonlySet<string>;
  /** A name that may be undefined stands here. */
  readonly lenient: boolean;
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
  const visible = new Set([...facts.globals.keys(), ...boundIn(template.root)]);
  const place = { source: template.source, visible, lenient: false };
  new Follower(facts, findings).visit(template.root, {
    ...place,
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

  readonly #visitors = {
    Symbol: (node: Node & { value: string }, place: Place): void => {
      if (place.lenient || place.visible.has(node.value)) return;
      const hint = nearest(node.value, place.visible);
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
      if (node.name.typename === 'Symbol') this.#checkCall(node.name.value, node, place);
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
    FromImport: (node: Node & { template: Node }, place: Place): void =>
      this.#visitModule(node, place),
    Section: (node: Section, place: Place): void => {
      if (
        !place.isMain ||
        place.inSection ||
        place.cells !== undefined ||
        place.captured !== undefined
      ) {
        this.#report(node, place, 'a section can only stand at the top level of the main template');
      }
      this.#visitChildren(node, { ...place, inSection: true });
    },
    Cells: (node: Cells, place: Place): void => this.#visitCells(node, place),
  };

  #visitFor(node: For, place: Place): void {
    this.visit(node.arr, { ...place, lenient: false });
    const names = namesOf(node.name.typename === 'Array' ? node.name.children : [node.name]);
    const bound = ['loop', ...names, ...boundIn(node.body)];
    this.visit(node.body, { ...place, visible: new Set([...place.visible, ...bound]) });
    if (node.else_ !== null) this.visit(node.else_, place);
  }

  #visitMacro(node: Macro, place: Place): void {
    const parameters = node.args.children.flatMap((argument) =>
      argument.typename === 'KeywordArgs'
        ? namesOf(argument.children.map(({ key }) => key))
        : namesOf([argument]),
    );
    const bound = ['caller', ...parameters, ...boundIn(node.body)];
    for (const argument of node.args.children) {
      if (argument.typename === 'KeywordArgs') this.visit(argument, place);
    }
    this.visit(node.body, {
      ...place,
      visible: new Set([...place.visible, ...bound]),
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
    const globals = [...this.#facts.globals.keys()];
    const own = boundIn(node.body);
    for (const name of own) {
      if (place.visible.has(name) && !this.#facts.globals.has(name) && name !== node.name) {
        this.#report(node, place, `a cell cannot set "${name}" of the template around it`);
      }
    }
    if (node.key !== undefined) {
      this.visit(node.key, { ...place, visible: new Set([...place.visible, node.name]) });
    }
    this.visit(node.body, {
      ...place,
      visible: new Set([...globals, node.name, ...own]),
      cells: `${at.source}:${at.line}:${at.column}`,
    });
  }

  #visitModule(node: Node & { template: Node }, place: Place): void {
    const visible = new Set(this.#facts.globals.keys());
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
      const bound = new Set([...inside.visible, ...boundIn(root)]);
      const at: Place = { ...inside, source, visible: bound, lenient: false };
      const seen = [source, at.cells, at.captured, at.inSection, ...[...bound].sort()].join('\n');
      if (this.#seen.has(seen)) continue;
      this.#seen.add(seen);
      this.#findings.reached.add(root);
      this.visit(root, at);
    }
  }

  #checkCall(name: string, node: Node, place: Place): void {
    if (name === 'backend') {
      if (place.cells === undefined) {
        this.#report(node, place, 'backend() can only be called by cells');
      } else if (!place.isMain || place.inSection) {
        const where = 'at the top level of the main template';
        this.#report(node, place, `cells that declare backends can only stand ${where}`);
      } else this.#findings.backendTags.add(place.cells);
    }
    if (name === 'profile' && (!place.isMain || place.cells !== undefined || place.inSection)) {
      this.#report(
        node,
        place,
        'profile() can only be printed at the top level of the main template',
      );
    }
  }

  #checkMember({ target, val }: LookupVal, place: Place): void {
    if (place.lenient || target.typename !== 'Symbol' || val.typename !== 'Literal') return;
    const members = this.#facts.globals.get(target.value);
    const name = String(val.value);
    if (members === undefined || members.includes(name)) return;
    this.#report(val, place, `${target.value} has no member "${name}"${nearest(name, members)}`);
  }
}

type Visitor = (node: never, place: Place) => void;
