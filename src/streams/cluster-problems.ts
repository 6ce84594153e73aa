import type { ApiResource } from '../kube/api-resource.ts';
import type { KubeError } from '../kube/client.ts';
import { nearestName } from '../render/nearest-name.ts';
import type { ObjectKey } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import { groupOf } from './directory-kinds.ts';

/** A mandatory resource that the API server does not serve (any more). */
export const notServed = (
  { name, apiVersions, resources }: WatchedResource,
  served: readonly ApiResource[],
): Problem => {
  const nearest = nearestName(
    resources,
    served.map(({ plural }) => plural),
  );
  const versions = apiVersions.join(' or ');
  const correct =
    nearest !== undefined && nearest !== resources
      ? `write ${nearest}, which is served there`
      : served.length === 0
        ? 'correct the apiVersion, none of these is served'
        : `correct the resource, ${served.length} others are served there`;
  return {
    severity: 'error',
    reason: 'ResourceNotServed',
    message: `watchedResources.${name}: the API server does not serve ${resources} in ${versions}.`,
    nextStep:
      `Install its CustomResourceDefinition, or ${correct}, or set optional: true; ` +
      'until then nothing new is rendered, or its last state stays in use.',
    field: `spec.watchedResources.${name}`,
  };
};

/** A list or watch that keeps failing. */
export interface FailingWatch {
  readonly resource: WatchedResource;
  readonly api: ApiResource;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  readonly verb: 'list' | 'watch';
  readonly error: KubeError;
}

/** A right is missing. */
export const forbidden = ({ resource, api, namespace, verb }: FailingWatch): Problem => ({
  severity: 'error',
  reason: 'WatchForbidden',
  message: `watchedResources.${resource.name}: the controller may not ${verb} ${api.plural}${placeOf(namespace)}.`,
  nextStep:
    `Add the verbs get, list and watch on resource ${api.plural} of API group ${JSON.stringify(groupOf(api.apiVersion))} to ` +
    `${namespace === undefined ? 'its ClusterRole' : `its ClusterRole, or to a Role bound in namespace ${namespace}`}; ` +
    'it is tried again by itself.',
  field: `spec.watchedResources.${resource.name}`,
});

/** Anything else that goes on failing. The message does not change with each attempt. */
export const failing = ({ resource, api, namespace, verb, error }: FailingWatch): Problem => ({
  severity: 'warning',
  reason: 'WatchFailing',
  message:
    `watchedResources.${resource.name}: to ${verb} ${api.plural}${placeOf(namespace)} fails ` +
    `(${error.code}): ${error.message}.`,
  nextStep: NEXT_STEPS[error.code] ?? 'It is tried again by itself; the last state stays in use.',
  field: `spec.watchedResources.${resource.name}`,
});

/** An object of an on-demand resource whose content cannot be had. */
export const unreadable = ({
  resource: { name, apiVersions, resources },
  key,
  error,
}: {
  readonly resource: WatchedResource;
  readonly key: ObjectKey;
  readonly error: KubeError;
}): Problem => {
  const isForbidden = error.code === 'forbidden';
  return {
    severity: isForbidden ? 'error' : 'warning',
    reason: isForbidden ? 'ContentForbidden' : 'ContentUnreadable',
    message: isForbidden
      ? `watchedResources.${name}: the controller may not get ${key} of ${resources}.`
      : `watchedResources.${name}: ${key} of ${resources} cannot be read (${error.code}): ${error.message}.`,
    nextStep: isForbidden
      ? `Add the verb get on resource ${resources} of API group ${JSON.stringify(groupOf(apiVersions[0] ?? ''))} to its role; ` +
        'it is tried again by itself, and what was read before stays in use.'
      : (NEXT_STEPS[error.code] ??
        'It is tried again by itself; what was read before stays in use.'),
    field: `spec.watchedResources.${name}`,
  };
};

/** The API server could not be asked what it serves. */
export const discoveryFailing = ({ name }: WatchedResource, error: KubeError): Problem => ({
  severity: 'warning',
  reason: 'DiscoveryFailing',
  message: `watchedResources.${name}: the API server cannot be asked what it serves (${error.code}): ${error.message}.`,
  nextStep: NEXT_STEPS[error.code] ?? 'It is asked again by itself; the last state stays in use.',
  field: `spec.watchedResources.${name}`,
});

const NEXT_STEPS: Partial<Record<KubeError['code'], string>> = {
  unreachable: 'Check that the API server runs and can be reached; the last state stays in use.',
  timeout: 'Check the load of the API server and the network to it; the last state stays in use.',
  unauthorized: "Check the service account's token and that the API server accepts it.",
  invalid: 'Correct the selectors of this resource in the configuration.',
};

const placeOf = (namespace: string | undefined): string =>
  namespace === undefined ? ' in all namespaces' : ` in namespace ${namespace}`;
