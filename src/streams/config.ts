import {
  connect,
  distinctUntilChanged,
  map,
  merge,
  type MonoTypeOperatorFunction,
  type Observable,
  scan,
  skip,
  take,
} from 'rxjs';
import { foldByKey } from '../operators/fold-by-key.ts';
import type { ResourceSource } from '../ports.ts';
import {
  parseConfig,
  type ParseConfigOptions,
  type ParsedConfig,
} from '../render/config/parse-config.ts';
import { byNamespaceAndName } from '../snapshot/object-list.ts';
import { type KubeObject, type ObjectKey, objectKey, objectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';

/** The configurations themselves, as something to watch. */
export const CONFIG_RESOURCE: WatchedResource = {
  name: 'haproxytemplateconfigs',
  apiVersions: ['haproxy-haptic.org/v1alpha1'],
  resources: 'haproxytemplateconfigs',
  optional: true,
  namespaces: [],
  labelSelector: {},
  fieldSelector: {},
  indexBy: ['metadata.namespace', 'metadata.name'],
  ignoreFields: ['metadata.managedFields', 'status'],
  store: 'full',
  // An editor may write a file in several steps: the steps between are no configuration anybody meant.
  debounceMs: 100,
  maxWaitMs: 1_000,
};

/**
 * The configuration of a source: its first `HAProxyTemplateConfig` by namespace and name, merged over the libraries;
 * without one the libraries alone. The first one comes at once, later ones after a quiet window of 100 ms. Emits when the
 * result differs: another generation, or other reasons for a refusal. Errors only when the source does.
 */
export const directoryConfig = (
  source: ResourceSource,
  options: ParseConfigOptions,
): Observable<ParsedConfig> =>
  settledConfigs(source, CONFIG_RESOURCE).pipe(
    map(([object]) => object),
    distinctUntilChanged(),
    map((object) => parseConfig(object, options)),
    distinctUntilChanged(isSameResult),
  );

/** One problem for each of some configurations, in order of namespace and name, but the first, which is in use. */
export const surplusConfigs = ([used, ...others]: readonly KubeObject[]): readonly Problem[] =>
  used === undefined ? [] : others.map((other) => surplus(used, other));

/**
 * All configurations that a watch finds, in order of namespace and name: the first value at once, later ones after a
 * quiet window of 100 ms, at the latest after 1 s.
 */
export const settledConfigs = (
  source: ResourceSource,
  resource: WatchedResource,
): Observable<readonly KubeObject[]> =>
  source.watch(resource).pipe(
    scan(applyEvent, new Map<ObjectKey, KubeObject>() as ReadonlyMap<ObjectKey, KubeObject>),
    map((objects) => [...objects.values()].sort(byNamespaceAndName)),
    settledAfterFirst,
  );

/** The first value at once; of later ones the newest when none has come for a while. */
const settledAfterFirst: MonoTypeOperatorFunction<readonly KubeObject[]> = connect((objects$) =>
  merge(
    objects$.pipe(take(1)),
    objects$.pipe(
      skip(1),
      foldByKey(() => 'newest', {
        quietMs: CONFIG_RESOURCE.debounceMs,
        maxWaitMs: CONFIG_RESOURCE.maxWaitMs,
      }),
      map((newest) => newest.get('newest') ?? []),
    ),
  ),
);

const applyEvent = (
  objects: ReadonlyMap<ObjectKey, KubeObject>,
  event: WatchEvent,
): ReadonlyMap<ObjectKey, KubeObject> => {
  if (event.type === 'Replaced') {
    return new Map(event.objects.map((object) => [objectKey(object), object]));
  }
  const next = new Map(objects);
  if (event.type === 'Upserted') next.set(objectKey(event.object), event.object);
  else next.delete(event.key);
  return next;
};

const isSameResult = (left: ParsedConfig, right: ParsedConfig): boolean => {
  if (left.ok) return right.ok && left.config.generation === right.config.generation;
  return !right.ok && JSON.stringify(left.problems) === JSON.stringify(right.problems);
};

const nameOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`;

const surplus = (used: KubeObject, other: KubeObject): Problem => ({
  severity: 'warning',
  reason: 'SurplusConfig',
  message: `HAProxyTemplateConfig ${nameOf(other)} is ignored, because ${nameOf(used)} is in use.`,
  nextStep: 'Keep one HAProxyTemplateConfig; the first by namespace and name is in use.',
  object: objectRef(other),
});
