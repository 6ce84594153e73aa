import { byCodeUnits } from '../../cells/persistent-map.ts';
import type { WatchedResource } from '../../snapshot/watch.ts';
import type { ConfigOverrides, Layer } from './layers.ts';
import type { WatchedSpec } from './spec.ts';
import { memberPath } from './field-checks.ts';

const DEFAULT_DEBOUNCE_MS = 100;

/** Large, changed by every writer, and of no use to a template. */
const ALWAYS_IGNORED: readonly string[] = [
  'metadata.managedFields',
  'metadata.annotations.kubectl\\.kubernetes\\.io/last-applied-configuration',
];

interface Merged {
  readonly spec: WatchedSpec;
  /** The last layer that said something. */
  readonly layer: Layer;
}

/**
 * The watched resources of all layers, by name. A later layer changes single members of an earlier one's entry, so a
 * user sets a label selector or a window without repeating what the library watches.
 *
 * @param overrides the namespaces of resources that name none
 */
export const mergeWatched = (
  layers: readonly Layer[],
  { watchNamespaces = [] }: Pick<ConfigOverrides, 'watchNamespaces'> = {},
): readonly WatchedResource[] => {
  const merged = new Map<string, Merged>();
  for (const layer of layers) {
    for (const [name, spec] of layer.spec.watchedResources ?? []) {
      merged.set(name, { spec: over(merged.get(name)?.spec ?? {}, spec), layer });
    }
  }
  const ignored = [
    ...ALWAYS_IGNORED,
    ...layers.flatMap(({ spec }) => spec.watchedResourcesIgnoreFields ?? []),
  ];
  return [...merged]
    .sort(([left], [right]) => byCodeUnits(left, right))
    .flatMap(([name, entry]) => complete(name, entry, ignored) ?? [])
    .map((resource) =>
      resource.namespaces.length > 0 ? resource : { ...resource, namespaces: watchNamespaces },
    );
};

/** `apiVersion` and `apiVersions` say the same thing, so one of them replaces the other. */
const over = (earlier: WatchedSpec, later: WatchedSpec): WatchedSpec => {
  if (later.apiVersion === undefined && later.apiVersions === undefined) {
    return { ...earlier, ...later };
  }
  const kept = Object.entries(earlier).filter(([member]) => !member.startsWith('apiVersion'));
  return { ...(Object.fromEntries(kept) as WatchedSpec), ...later };
};

const complete = (
  name: string,
  { spec, layer }: Merged,
  ignored: readonly string[],
): WatchedResource | undefined => {
  const field = memberPath('spec.watchedResources', name);
  const apiVersions = spec.apiVersions ?? (spec.apiVersion === undefined ? [] : [spec.apiVersion]);
  const resources = spec.resources ?? '';
  const refusal = refusalOf(name, { ...spec, apiVersions, resources }, spec.apiVersion);
  if (refusal !== undefined) {
    layer.report(`${field}${refusal.member}`, refusal.message, refusal.nextStep);
    return undefined;
  }
  return {
    ...SELECTION,
    ...selection(spec),
    ...window(spec),
    name,
    apiVersions,
    resources,
    ignoreFields: [...new Set([...ignored, ...(spec.ignoreFields ?? [])])],
  };
};

const SELECTION = {
  optional: false,
  namespaces: [],
  indexBy: ['metadata.namespace', 'metadata.name'],
  store: 'full',
} as const;

const selection = (
  spec: WatchedSpec,
): Pick<WatchedResource, 'labelSelector' | 'fieldSelector'> & Partial<WatchedResource> => ({
  labelSelector: Object.fromEntries(spec.labelSelector ?? []),
  fieldSelector: Object.fromEntries(spec.fieldSelector ?? []),
  ...(spec.optional !== undefined && { optional: spec.optional }),
  ...(spec.namespaces && { namespaces: spec.namespaces }),
  ...(spec.indexBy && { indexBy: spec.indexBy }),
  ...(spec.store && { store: spec.store }),
});

const window = ({
  debounceInterval = DEFAULT_DEBOUNCE_MS,
  maxWait = Math.max(10 * debounceInterval, 1_000),
}: WatchedSpec): Pick<WatchedResource, 'debounceMs' | 'maxWaitMs'> => ({
  debounceMs: debounceInterval,
  maxWaitMs: maxWait,
});

interface Refusal {
  readonly member: string;
  readonly message: string;
  readonly nextStep: string;
}

const refusalOf = (
  name: string,
  spec: WatchedSpec & { readonly apiVersions: readonly string[]; readonly resources: string },
  apiVersion: string | undefined,
): Refusal | undefined => {
  const refuse = (member: string, message: string, nextStep: string): Refusal => ({
    member,
    message,
    nextStep,
  });
  if (!/^[A-Za-z][A-Za-z0-9_]{0,62}$/.test(name)) {
    return refuse('', 'is not a name for templates', 'Use letters, digits and "_".');
  }
  if (apiVersion !== undefined && spec.apiVersions[0] !== apiVersion) {
    return refuse('', 'has both apiVersion and apiVersions', 'Keep one of them.');
  }
  if (spec.apiVersions.length === 0 || spec.apiVersions.includes('')) {
    return refuse('.apiVersions', 'is missing', 'Write it like [networking.k8s.io/v1].');
  }
  if (!/^[a-z][a-z0-9]{0,62}$/.test(spec.resources)) {
    return refuse('.resources', 'must be a plural in lower case', 'Write it like ingresses.');
  }
  const { debounceInterval = 0, maxWait = Infinity } = spec;
  if (maxWait >= debounceInterval) return beyondMetadata(spec);
  return refuse('.maxWait', 'is shorter than the window', 'Raise it, or lower debounceInterval.');
};

/** What is on demand is selected and indexed by its metadata. */
const beyondMetadata = ({
  store,
  indexBy = [],
  fieldSelector = new Map<string, string>(),
}: WatchedSpec): Refusal | undefined => {
  if (store !== 'on-demand') return undefined;
  const refusal = (member: string, paths: readonly string[]): Refusal | undefined => {
    const path = paths.find((one) => !one.startsWith('metadata.'));
    return path === undefined
      ? undefined
      : {
          member,
          message: `looks at ${path}, of which store: on-demand knows nothing before it is asked for`,
          nextStep: 'Name fields below metadata, or set store: full.',
        };
  };
  return (
    refusal('.indexBy', indexBy) ??
    refusal(
      '.fieldSelector',
      [...fieldSelector].map(([path]) => path),
    )
  );
};
