/** All templates of a configuration: parsed, checked and compiled, or refused with everything that is wrong. */
import { byCodeUnits } from '../../cells/persistent-map.ts';
import type { Problem } from '../../snapshot/problem.ts';
import { checkNodes } from './check-nodes.ts';
import { checkPlaces } from './check-places.ts';
import { literalText } from './bindings.ts';
import { checkScopes } from './check-scopes.ts';
import { compileTemplate } from './compile-statement.ts';
import type { Statement } from './compile-context.ts';
import { TemplateFailure, asFailure } from './failure.ts';
import { protectiveSources } from './protective.ts';
import { parseTemplate } from './parse-template.ts';
import { globMatches } from './patterns.ts';
import type { Scope } from './run.ts';
import {
  ANY,
  ROUTES_SHAPE,
  resourcesShape,
  withMembers,
  type Shape,
  type Shapes,
} from './shapes.ts';
import type { Node } from './syntax.ts';
import type { ParsedTemplate, TemplateFacts } from './template-facts.ts';
import { isRecord } from './values.ts';
import { unusedSnippets } from './unused-snippets.ts';
import type { TemplateConfig, TemplateSource } from '../config/template-config.ts';

export type RootKind = 'config' | 'map' | 'file' | 'certificate';

/** One template that makes a file (or a map). */
export interface RootTemplate {
  /** Unique: kind and name. */
  readonly id: string;
  readonly kind: RootKind;
  /** As in the configuration; empty for the main template. */
  readonly name: string;
  readonly source: string;
  readonly run: Statement;
}

export interface TemplateSet {
  /** The main template first, then maps, files and certificates, each by name. */
  readonly roots: readonly RootTemplate[];
  /** The `cells` tag that declares backends. */
  readonly backendTag: string | undefined;
  /** Sources of the protective snippets and of everything they include. */
  readonly protective: ReadonlySet<string>;
  /** What is no error and most likely not meant: snippets that print nowhere, templates that are too much to check. */
  readonly warnings: readonly Problem[];
}

export type CompiledSet =
  | { readonly ok: true; readonly set: TemplateSet }
  | { readonly ok: false; readonly problems: readonly Problem[] };

interface ParsedRoot extends ParsedTemplate {
  readonly kind: RootKind;
  readonly name: string;
}

export const compileTemplates = (config: TemplateConfig, globals: Scope): CompiledSet => {
  const failures: TemplateFailure[] = [];
  const parse = ({ text, source }: TemplateSource): ParsedTemplate => {
    try {
      return { source, root: parseTemplate(text, source) };
    } catch (error: unknown) {
      failures.push(asFailure(error, { source, line: 1, column: 1 }));
      return { source, root: { typename: 'Root', lineno: 0, colno: 0, children: [] } };
    }
  };
  const snippets = parseSnippets(config, parse);
  const roots = rootSources(config).map(({ kind, name, template }): ParsedRoot => ({
    kind,
    name,
    ...parse(template),
  }));
  const syntaxIsGood = failures.length === 0;
  for (const { root, source } of [...roots, ...snippets.values()]) {
    if (root !== undefined) failures.push(...checkNodes(root, source));
  }
  const found = checkRoots({ config, globals, snippets, roots, syntaxIsGood }, failures);
  if (failures.length > 0) return { ok: false, problems: sorted(failures) };
  const { backendTag, reached } = found;
  const named = [...snippets].map(([name, snippet]) => ({ name, ...snippet }));
  const warnings = [...found.warnings, ...unusedSnippets(named, reached)];
  const protective = protectiveSources(config, finder(snippets));
  return compile({ roots, snippets, backendTag, protective, warnings });
};

interface Parsed {
  readonly config: TemplateConfig;
  readonly globals: Scope;
  readonly snippets: Snippets;
  readonly roots: readonly ParsedRoot[];
  readonly syntaxIsGood: boolean;
}

/** By name; a snippet whose resources are not watched is there without content. */
type Snippets = ReadonlyMap<string, Snippet>;

interface Snippet {
  readonly source: string;
  readonly root: Node | undefined;
}

const isUsable = ({ requires }: TemplateSource, config: TemplateConfig): boolean =>
  requires.every((name) => config.watched.some((resource) => resource.name === name));

const parseSnippets = (
  config: TemplateConfig,
  parse: (template: TemplateSource) => ParsedTemplate,
): Snippets =>
  new Map(
    [...config.snippets]
      .sort(([left], [right]) => byCodeUnits(left, right))
      .map(([name, template]): [string, Snippet] => {
        if (isUsable(template, config)) return [name, parse(template)];
        return [name, { source: template.source, root: undefined }];
      }),
  );

const rootSources = (
  config: TemplateConfig,
): readonly { kind: RootKind; name: string; template: TemplateSource }[] => {
  const kinds = [
    ['map', config.maps as ReadonlyMap<string, TemplateSource>],
    ['file', config.files as ReadonlyMap<string, TemplateSource>],
    ['certificate', config.certificates],
  ] as const;
  const others = kinds.flatMap(([kind, templates]) =>
    [...templates]
      .filter(([, template]) => isUsable(template, config))
      .sort(([left], [right]) => byCodeUnits(left, right))
      .map(([name, template]) => ({ kind, name, template })),
  );
  return [{ kind: 'config', name: '', template: config.main }, ...others];
};

/** Snippets by exact name, or all that a name with `*` matches, in the order of their names. */
const finder =
  (snippets: Snippets) =>
  (name: string): readonly ParsedTemplate[] | undefined => {
    if (!name.includes('*')) {
      const snippet = snippets.get(name);
      return snippet === undefined ? undefined : withContent([snippet]);
    }
    return withContent(
      [...snippets].filter(([key]) => globMatches(name, key)).map(([, one]) => one),
    );
  };

const withContent = (
  found: readonly { source: string; root: ParsedTemplate['root'] | undefined }[],
): ParsedTemplate[] =>
  found.flatMap(({ source, root }) => (root === undefined ? [] : [{ source, root }]));

interface Found {
  readonly backendTag: string | undefined;
  /** Roots of all templates that print somewhere. */
  readonly reached: ReadonlySet<Node>;
  readonly warnings: readonly Problem[];
}

const checkRoots = (
  { config, globals, snippets, roots, syntaxIsGood }: Parsed,
  failures: TemplateFailure[],
): Found => {
  const facts: TemplateFacts = {
    globals: knownMembers(config, globals),
    find: finder(snippets),
    snippetNames: [...snippets.keys()],
    maps: [...config.maps.keys()],
  };
  const backendTags = new Set<string>();
  const reached = new Set<Node>();
  const warnings: Problem[] = [];
  for (const template of roots) {
    const findings = checkScopes(template, facts, template.kind);
    failures.push(...findings.problems);
    for (const tag of findings.backendTags) backendTags.add(tag);
    for (const root of findings.reached) reached.add(root);
    // What a broken template would print is not known.
    if (template.kind !== 'config' || !syntaxIsGood) continue;
    const places = checkPlaces(template, facts.find);
    failures.push(...places.failures);
    warnings.push(...places.warnings);
    const text = [...findings.reached].map(literalText);
    if (!/\bdefault-path\s+origin\b/.test(text.join('\n'))) {
      failures.push(missingDefaultPath(config.main.source));
    }
  }
  if (backendTags.size > 1) failures.push(severalBackendTags([...backendTags].sort()));
  return { backendTag: [...backendTags][0], reached, warnings };
};

const missingDefaultPath = (source: string): TemplateFailure =>
  new TemplateFailure('the configuration does not say "default-path origin"', {
    place: { source, line: 1, column: 1 },
    nextStep:
      'Write "default-path origin {{ dataplane.baseDir | token }}" into its global section.',
    reason: 'DefaultPathMissing',
  });

const severalBackendTags = (tags: readonly string[]): TemplateFailure => {
  const [, source = '', line = '1', column = '1'] = /^(.*):(\d+):(\d+)$/.exec(tags[1] ?? '') ?? [];
  return new TemplateFailure(`two cells tags declare backends: ${tags.join(' and ')}`, {
    place: { source, line: Number(line), column: Number(column) },
    nextStep: 'Declare all backends in the cells of one tag.',
  });
};

const knownMembers = (config: TemplateConfig, globals: Scope): Shapes => {
  const capabilities = globals.get('capabilities');
  return new Map<string, Shape>([
    ...globals.names().map((name) => [name, ANY] as const),
    ['resources', resourcesShape(config.watched.map(({ name }) => name))],
    ['routes', ROUTES_SHAPE],
    ['dataplane', withMembers(Object.keys(config.dataplane))],
    ['extraContext', withMembers(Object.keys(config.extraContext))],
    ['capabilities', isRecord(capabilities) ? withMembers(Object.keys(capabilities)) : ANY],
  ]);
};

const compile = ({
  roots,
  snippets,
  ...facts
}: {
  readonly roots: readonly ParsedRoot[];
  readonly snippets: Snippets;
} & Pick<TemplateSet, 'backendTag' | 'protective' | 'warnings'>): CompiledSet => {
  const compiled = new Map<Node, { readonly run: Statement }>();
  const find = finder(snippets);
  const findCompiled = (name: string): readonly { readonly run: Statement }[] | undefined =>
    find(name)?.map(({ source, root }) => {
      const known = compiled.get(root);
      if (known !== undefined) return known;
      const snippet = { run: compileTemplate(root, source, findCompiled) };
      compiled.set(root, snippet);
      return snippet;
    });
  try {
    for (const name of snippets.keys()) findCompiled(name);
    const set = roots.map(({ kind, name, source, root }) => ({
      ...{ id: `${kind}:${name}`, kind, name, source },
      run: compileTemplate(root, source, findCompiled),
    }));
    return { ok: true, set: { roots: set, ...facts } };
  } catch (error: unknown) {
    const failure = asFailure(error, { source: roots[0]?.source ?? '', line: 1, column: 1 });
    return { ok: false, problems: [failure.toProblem()] };
  }
};

/** By template, line and column, each once. */
const sorted = (failures: readonly TemplateFailure[]): readonly Problem[] => {
  const problems = new Map<string, Problem>();
  for (const failure of failures) {
    const problem = failure.toProblem();
    const { source = '', line = 0, column = 0 } = problem.place ?? {};
    const position = [line, column].map((number) => String(number).padStart(6, '0')).join(':');
    problems.set(`${source}:${position}:${problem.message}`, problem);
  }
  return [...problems]
    .sort(([left], [right]) => byCodeUnits(left, right))
    .map(([, problem]) => problem);
};
