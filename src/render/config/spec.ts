import { parseFieldPath } from '../../snapshot/field-path.ts';
import {
  anything,
  type Check,
  type Checked,
  duration,
  flag,
  isMembers,
  listOf,
  membersOf,
  oneOf,
  recordOf,
  type Report,
  text,
  wholeNumber,
} from './field-checks.ts';

/** What the fields of a `HAProxyTemplateConfig` may hold; a library's `spec` has the same ones. */

const fieldPathText: Check<string> = (value, path, report) => {
  const given = text(value, path, report);
  if (given === undefined || parseFieldPath(given) !== undefined) return given;
  report(
    path,
    'must be a field path',
    'Write it like metadata.labels.kubernetes\\.io/service-name.',
  );
  return undefined;
};

/** Fields that say which object it is, and those that hold them. */
const IDENTITY_FIELDS: readonly string[] = [
  'apiVersion',
  'kind',
  'metadata',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

const droppedField: Check<string> = (value, path, report) => {
  const given = fieldPathText(value, path, report);
  if (given === undefined || !IDENTITY_FIELDS.includes(given)) return given;
  report(path, 'names a field that every object needs', 'Remove it from the list.');
  return undefined;
};

/** Equality terms: a mapping, or a text such as `app=web,tier=front`. */
const terms =
  (name: Check<string>): Check<ReadonlyMap<string, string>> =>
  (value, path, report) => {
    const given = typeof value === 'string' ? parseTerms(value) : matchLabels(value);
    if (given === undefined) {
      report(path, 'must consist of equality terms', 'Write it like app=web,tier=front.');
      return undefined;
    }
    const checked = recordOf(text)(given, path, report);
    return (
      checked && new Map([...checked].filter(([key]) => name(key, path, report) !== undefined))
    );
  };

const parseTerms = (given: string): Readonly<Record<string, string>> | undefined => {
  const parts = given.split(',').filter((part) => part.trim() !== '');
  const pairs = parts.map((part) => /^\s*([^=!]+?)\s*==?\s*([^=]*?)\s*$/.exec(part));
  if (pairs.some((pair) => pair === null)) return undefined;
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? '']));
};

/** `{matchLabels: {…}}` means its content. */
const matchLabels = (value: unknown): unknown =>
  isMembers(value) && isMembers(value['matchLabels']) && Object.keys(value).length === 1
    ? value['matchLabels']
    : value;

const watchedResource = membersOf({
  apiVersion: text,
  apiVersions: listOf(text),
  resources: text,
  optional: flag,
  namespaces: listOf(text),
  labelSelector: terms(text),
  fieldSelector: terms(fieldPathText),
  indexBy: listOf(fieldPathText),
  ignoreFields: listOf(droppedField),
  store: oneOf('full', 'on-demand'),
  debounceInterval: duration(),
  maxWait: duration(),
});

/** A number or a flag counts as its text, so that `expected: 2` needs no quotes. */
const scalarText: Check<string> = (value, path, report) =>
  typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : text(value, path, report);

const validationTest = membersOf(
  {
    description: text,
    fixtures: recordOf(listOf(anything)),
    extraContext: anything,
    minHAProxyVersion: scalarText,
    requires: listOf(text),
    assertions: listOf(
      membersOf({
        type: oneOf(
          'haproxy_valid',
          'contains',
          'not_contains',
          'equals',
          'match_count',
          'match_order',
          'jsonpath',
          'deterministic',
        ),
        description: text,
        target: text,
        pattern: text,
        patterns: listOf(text),
        expected: scalarText,
        jsonpath: text,
      }),
    ),
  },
  ['httpResources', 'currentServers', 'currentFiles', 'requiresFields'],
);

const template = { template: text, requires: listOf(text) };
/** Only libraries, which are folders, name files. */
const fromFile = { ...template, file: text };

const specOf = (shape: typeof template) =>
  membersOf(
    {
      podSelector: terms(text),
      watchedResources: recordOf(watchedResource),
      watchedResourcesIgnoreFields: listOf(droppedField),
      haproxyConfig: membersOf(shape, ['postProcessing']),
      templateSnippets: recordOf(membersOf({ ...shape, protective: flag })),
      maps: recordOf(membersOf({ ...shape, ordered: flag }, ['postProcessing'])),
      files: recordOf(membersOf({ ...shape, reloadOnPush: flag }, ['postProcessing'])),
      sslCertificates: recordOf(membersOf(shape, ['postProcessing'])),
      libraries: recordOf(membersOf({ enabled: flag })),
      templatingSettings: membersOf({ extraContext: anything }),
      validationTests: recordOf(validationTest),
      controller: membersOf({
        leaderElection: membersOf({
          enabled: flag,
          leaseName: text,
          leaseDuration: duration(1_000),
          renewDeadline: duration(1_000),
          retryPeriod: duration(100),
        }),
        configPublishing: membersOf({
          enabled: flag,
          compressionThreshold: wholeNumber(0, 2 ** 31 - 1),
        }),
      }),
      dataplane: membersOf({
        port: wholeNumber(1, 65_535),
        minDeploymentInterval: duration(),
        driftPreventionInterval: duration(1_000),
        deploymentTimeout: duration(1_000),
        configPublishInterval: duration(),
        mapsDir: text,
        sslCertsDir: text,
        generalStorageDir: text,
        configFile: text,
      }),
      logging: membersOf({ level: oneOf('trace', 'debug', 'info', 'warn', 'error') }),
    },
    ['validators', 'k8sResources', 'libraryRefs'],
  );

/** A spec whose fields have their types; all are optional. Durations are milliseconds. */
export type Spec = Checked<ReturnType<typeof specOf>>;

/** One entry of `watchedResources`. */
export type WatchedSpec = Checked<typeof watchedResource>;

/** One entry of `validationTests`. */
export type ValidationTestSpec = Checked<typeof validationTest>;

/** A template in any of its places, with the extra members of all of them. */
export interface TemplateSpec {
  readonly template?: string;
  readonly file?: string;
  readonly requires?: readonly string[];
  readonly ordered?: boolean;
  readonly reloadOnPush?: boolean;
  readonly protective?: boolean;
}

const userSpec = specOf(template);
const librarySpec = specOf(fromFile);

/** Reads the spec of a user's configuration, or of a library, whose templates may come from files. */
export const checkSpec = (
  value: unknown,
  kind: 'user' | 'library',
  report: Report,
): Spec | undefined => (kind === 'user' ? userSpec : librarySpec)(value ?? {}, 'spec', report);
