import { byCodeUnits } from '../../cells/persistent-map.ts';
import { type KubeObject, objectRef } from '../../snapshot/objects.ts';
import type { Problem } from '../../snapshot/problem.ts';
import { checkSpec, type Spec, type TemplateSpec } from './spec.ts';
import { lastMember, memberPath, type Report } from './field-checks.ts';
import { nearestName } from '../nearest-name.ts';
import type { DataplaneSettings } from '../render.ts';

/** A library: a folder with a `library.yaml` and the templates it names. */
export interface Library {
  readonly name: string;
  readonly description: string;
  /** Position in the merge; a later library wins over an earlier one by name. */
  readonly order: number;
  /** Whether it is on when the user does not say. */
  readonly enabled: boolean;
  /** Libraries that must be on as well. */
  readonly requires: readonly string[];
  /** As written; it has the fields of `HAProxyTemplateConfig.spec`. */
  readonly spec: unknown;
  /** Text of the library's files by path inside its folder, for `file: path`. */
  readonly files: ReadonlyMap<string, string>;
}

/** What the program itself says, on top of everything the user says. */
export interface ConfigOverrides {
  /** Directory HAProxy and agent share, absolute. Default `/etc/haproxy`. */
  readonly baseDir?: string;
  readonly dataplane?: Partial<Omit<DataplaneSettings, 'baseDir'>>;
  /** Merged over the user's, member by member: for example the ports of a command line. */
  readonly extraContext?: Readonly<Record<string, unknown>>;
  /** Namespaces of every watched resource that names none itself. Default: all. */
  readonly watchNamespaces?: readonly string[];
}

/** One level of the merge. */
export interface Layer {
  /** For messages: `libraries/ingress`, `HAProxyTemplateConfig default/haptic`. */
  readonly name: string;
  readonly spec: Spec;
  readonly library: Library | undefined;
  readonly report: Report;
}

/** The user's configuration as a layer. */
export const userLayer = (config: KubeObject | undefined, problems: Problem[]): Layer => {
  const report = userReport(config, problems);
  for (const field of Object.keys(config ?? {})) {
    if (KNOWN_MEMBERS.includes(field)) continue;
    const known = nearestName(field, KNOWN_MEMBERS) ?? 'spec';
    report(
      memberPath('', field),
      `is not known; the nearest known field is ${known}`,
      'Move what it holds below spec.',
    );
  }
  return {
    name: nameOf(config),
    spec: checkSpec(config?.['spec'], 'user', report) ?? {},
    library: undefined,
    report,
  };
};

const userReport =
  (config: KubeObject | undefined, problems: Problem[]): Report =>
  (field, message, nextStep) => {
    problems.push({
      severity: 'error',
      reason: 'InvalidConfig',
      message: `${lastMember(field)} ${message}.`,
      nextStep,
      field,
      ...(config && { object: objectRef(config) }),
    });
  };

const nameOf = (config: KubeObject | undefined): string =>
  config === undefined
    ? 'The configuration'
    : `HAProxyTemplateConfig ${config.metadata.namespace ?? ''}/${config.metadata.name}`;

const KNOWN_MEMBERS: readonly string[] = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

/** The libraries that are on, in the order of the merge. */
export const libraryLayers = (
  libraries: readonly Library[],
  user: Layer,
  problems: Problem[],
): readonly Layer[] => {
  const switches = user.spec.libraries ?? new Map<string, { readonly enabled?: boolean }>();
  const names = libraries.map(({ name }) => name);
  for (const name of switches.keys()) {
    if (names.includes(name)) continue;
    user.report(
      memberPath('spec.libraries', name),
      `is no library; ${nearest(name, names)}`,
      'Correct the name, or remove it.',
    );
  }
  const enabled = libraries
    .filter(({ name, enabled: standard }) => switches.get(name)?.enabled ?? standard)
    .toSorted((left, right) => left.order - right.order || byCodeUnits(left.name, right.name));
  for (const { name, requires } of enabled) {
    const missing = requires.find((needed) => !enabled.some((other) => other.name === needed));
    if (missing === undefined) continue;
    user.report(
      `spec.libraries.${missing}`,
      `must be enabled, because the library ${name} needs it`,
      `Enable ${missing}, or disable ${name}.`,
    );
  }
  return enabled.map((library) => libraryLayer(library, problems));
};

/** The likeliest of some names, in words. */
export const nearest = (name: string, names: readonly string[]): string => {
  const likely = nearestName(name, names);
  if (likely !== undefined) return `the nearest known name is ${likely}`;
  return names.length === 0 ? 'there is none' : `there are ${names.join(', ')}`;
};

const libraryLayer = (library: Library, problems: Problem[]): Layer => {
  const name = `libraries/${library.name}`;
  const report: Report = (field, message, nextStep) => {
    problems.push({
      severity: 'error',
      reason: 'InvalidLibrary',
      message: `${lastMember(field)} ${message}.`,
      nextStep,
      field,
      place: { source: `${name}/library.yaml` },
    });
  };
  return { name, spec: checkSpec(library.spec, 'library', report) ?? {}, library, report };
};

/** A template entry after the merge, and the layer its template comes from. */
export interface MergedTemplate extends TemplateSpec {
  readonly layer: Layer;
  readonly field: string;
}

type TemplateField = 'templateSnippets' | 'maps' | 'files' | 'sslCertificates';

/**
 * Entries of one field by name, in order of their names. An entry that has a template replaces the earlier one of that
 * name altogether; one that has none changes members of it, such as `ordered`.
 */
export const mergeTemplates = (
  layers: readonly Layer[],
  field: TemplateField,
): ReadonlyMap<string, MergedTemplate> => {
  const merged = new Map<string, MergedTemplate>();
  for (const layer of layers) {
    const entries: ReadonlyMap<string, TemplateSpec> = layer.spec[field] ?? new Map();
    for (const [name, entry] of entries) {
      const earlier = merged.get(name);
      const own = { ...entry, layer, field: memberPath(`spec.${field}`, name) };
      merged.set(name, isWhole(entry) || earlier === undefined ? own : { ...earlier, ...entry });
    }
  }
  return new Map([...merged].sort(([left], [right]) => byCodeUnits(left, right)));
};

/** The template of the configuration file: the last layer that has one. */
export const mergeMain = (layers: readonly Layer[]): MergedTemplate | undefined =>
  layers
    .flatMap((layer): MergedTemplate[] => {
      const entry = layer.spec.haproxyConfig;
      return entry === undefined ? [] : [{ ...entry, layer, field: 'spec.haproxyConfig' }];
    })
    .at(-1);

const isWhole = (entry: TemplateSpec): boolean =>
  entry.template !== undefined || entry.file !== undefined;
