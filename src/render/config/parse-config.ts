import { byCodeUnits } from '../../cells/persistent-map.ts';
import type { DigestFunction } from '../../plan/plan.ts';
import type { KubeObject } from '../../snapshot/objects.ts';
import type { Problem } from '../../snapshot/problem.ts';
import type { WatchedResource } from '../../snapshot/watch.ts';
import { controllerSettings } from './controller-settings.ts';
import { dataplaneSettings } from './dataplane.ts';
import {
  type ConfigOverrides,
  type Layer,
  type Library,
  libraryLayers,
  type MergedTemplate,
  mergeMain,
  mergeTemplates,
  nearest,
  userLayer,
} from './layers.ts';
import { mergeWatched } from './watched.ts';
import { isMembers } from './field-checks.ts';
import type { TemplateConfig, TemplateSource } from './template-config.ts';

export interface ParseConfigOptions {
  readonly libraries: readonly Library[];
  /** Gives the generation its digest. */
  readonly digest: DigestFunction;
  readonly overrides?: ConfigOverrides;
}

export type ParsedConfig =
  | { readonly ok: true; readonly config: TemplateConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Reads a `HAProxyTemplateConfig` (or none) and merges it over the libraries that are on: libraries in their order, then
 * the user's content, by name; `extraContext` and `watchedResources` member by member. Pure, and the same for every
 * order of members.
 *
 * Refused with all problems at once: unknown fields (with the nearest known one), wrong types, libraries that do not
 * exist or lack what they need, missing templates, names that are no file names.
 */
export const parseConfig = (
  object: KubeObject | undefined,
  options: ParseConfigOptions,
): ParsedConfig => {
  const problems: Problem[] = [];
  const user = userLayer(object, problems);
  const layers = [...libraryLayers(options.libraries, user, problems), user];
  const content = mergeLayers(layers, options.overrides ?? {}, nameOf(object));
  if (problems.length > 0 || content === undefined) return { ok: false, problems };
  return { ok: true, config: { generation: options.digest(canonical(content)), ...content } };
};

type Content = Omit<TemplateConfig, 'generation'>;

const mergeLayers = (
  layers: readonly Layer[],
  overrides: ConfigOverrides,
  configName: string,
): Content | undefined => {
  const watched = mergeWatched(layers, overrides);
  const main = mainTemplate(layers, watched);
  const templates = templatesOf(layers, watched);
  const dataplane = dataplaneSettings(layers, overrides);
  const controller = controllerSettings(layers, configName);
  if (main === undefined || dataplane === undefined || controller === undefined) return undefined;
  return {
    podSelector: Object.fromEntries(newest(layers, (spec) => spec.podSelector) ?? []),
    watched,
    main,
    ...templates,
    extraContext: [
      ...layers.map(({ spec }) => spec.templatingSettings?.extraContext ?? {}),
      overrides.extraContext ?? {},
    ].reduce<Readonly<Record<string, unknown>>>(mergeMembers, {}),
    dataplane,
    controller,
    validationTests: new Map(layers.flatMap(({ spec }) => [...(spec.validationTests ?? [])])),
    logLevel: newest(layers, (spec) => spec.logging?.level) ?? 'info',
  };
};

/** What a Lease is called where there is no configuration object, as in a directory. */
const DEFAULT_NAME = 'haptic';

const nameOf = (object: KubeObject | undefined): string => object?.metadata.name ?? DEFAULT_NAME;

const newest = <T>(
  layers: readonly Layer[],
  member: (spec: Layer['spec']) => T | undefined,
): T | undefined =>
  layers
    .map(({ spec }) => member(spec))
    .filter((value) => value !== undefined)
    .at(-1);

const mainTemplate = (
  layers: readonly Layer[],
  watched: readonly WatchedResource[],
): TemplateSource | undefined => {
  const main = mergeMain(layers);
  if (main !== undefined) return templateSource('haproxyConfig', main, watched);
  layers
    .at(-1)
    ?.report(
      'spec.haproxyConfig.template',
      'is missing, and no enabled library has one',
      'Enable the library base, or write a template.',
    );
  return undefined;
};

const templatesOf = (
  layers: readonly Layer[],
  watched: readonly WatchedResource[],
): Pick<Content, 'snippets' | 'maps' | 'files' | 'certificates'> => {
  const sources = <E>(
    field: 'templateSnippets' | 'maps' | 'files' | 'sslCertificates',
    extra: (entry: MergedTemplate) => E,
  ): ReadonlyMap<string, TemplateSource & E> =>
    new Map(
      [...mergeTemplates(layers, field)].flatMap(
        ([name, entry]): [string, TemplateSource & E][] => {
          if (!hasGoodName(name, field, entry)) return [];
          const source = templateSource(name, entry, watched);
          return source === undefined ? [] : [[name, { ...source, ...extra(entry) }]];
        },
      ),
    );
  return {
    snippets: sources('templateSnippets', ({ protective }) =>
      protective === true ? { protective } : {},
    ),
    maps: sources('maps', ({ ordered = true }) => ({ ordered })),
    files: sources('files', ({ reloadOnPush = true }) => ({ reloadOnPush })),
    certificates: sources('sslCertificates', () => ({})),
  };
};

/** Snippets are named in `include`, where `*` stands for many; all others name files in the pod. */
const hasGoodName = (
  name: string,
  field: string,
  { layer, field: path }: MergedTemplate,
): boolean => {
  const isSnippet = field === 'templateSnippets';
  const pattern = isSnippet ? /^[\w.:/-]{1,253}$/ : /^[A-Za-z0-9_][\w.-]{0,127}$/;
  if (pattern.test(name)) return true;
  layer.report(
    path,
    `is not a name for a ${isSnippet ? 'snippet' : 'file'}`,
    `Use letters, digits, "-", "_"${isSnippet ? ', ":", "/"' : ''} and ".".`,
  );
  return false;
};

const templateSource = (
  name: string,
  entry: MergedTemplate,
  watched: readonly WatchedResource[],
): TemplateSource | undefined => {
  const { layer, field, requires = [] } = entry;
  const names = watched.map((resource) => resource.name);
  for (const needed of requires.filter((required) => !names.includes(required))) {
    layer.report(
      `${field}.requires`,
      `names ${JSON.stringify(needed)}, which is not watched; ${nearest(needed, names)}`,
      'Add it to watchedResources, or remove it.',
    );
  }
  const text = templateText(entry);
  return text === undefined
    ? undefined
    : { source: sourceName(name, entry), text, requires: requires.toSorted(byCodeUnits) };
};

const sourceName = (name: string, { layer, field, file }: MergedTemplate): string =>
  layer.library === undefined
    ? `${layer.name}: ${field.replace(/^spec\./, '')}.template`
    : `${layer.name}: ${file ?? name}`;

const templateText = ({ template, file, layer, field }: MergedTemplate): string | undefined => {
  if (template !== undefined && file === undefined) return template;
  if (template !== undefined) {
    layer.report(field, 'has both template and file', 'Keep one of them.');
  } else if (file === undefined) {
    layer.report(`${field}.template`, 'is missing', 'Write a template, or correct the name.');
  } else {
    const files = layer.library?.files ?? new Map<string, string>();
    const text = files.get(file);
    if (text !== undefined) return text;
    const hint = nearest(file, [...files.keys()]);
    layer.report(`${field}.file`, `names no file of the library; ${hint}`, 'Correct the name.');
  }
  return undefined;
};

/** Members of mappings one by one, everything else as a whole; what is later wins. */
export const mergeMembers = (
  earlier: Readonly<Record<string, unknown>>,
  later: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> => {
  const merged = new Map(Object.entries(earlier));
  for (const [name, value] of Object.entries(later)) {
    const before = merged.get(name);
    merged.set(name, isMembers(before) && isMembers(value) ? mergeMembers(before, value) : value);
  }
  return Object.fromEntries(merged);
};

/** Text that is equal for equal content: members and maps in order of their names. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const members: [string, unknown][] =
    value instanceof Map ? [...(value as ReadonlyMap<string, unknown>)] : Object.entries(value);
  return `{${members
    .sort(([left], [right]) => byCodeUnits(left, right))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
    .join(',')}}`;
};
