import type { V1PolicyRule } from '@kubernetes/client-node';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sha256 } from '../../src/digest.ts';
import { parseConfig } from '../../src/render/config/parse-config.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { WatchedResource } from '../../src/snapshot/watch.ts';
import { loadLibraries } from '../../src/streams/libraries.ts';
import {
  CHART,
  NAMESPACE,
  ofKind,
  present,
  type Rendered,
  rendered,
  VALUE_SETS,
  yamlFile,
} from '../support/chart.ts';
import { LIBRARIES } from '../support/rendered.ts';

const WATCH = ['get', 'list', 'watch'];

/** Resources without namespaces in the value sets. */
const CLUSTER_SCOPED = ['networking.k8s.io/ingressclasses', 'example.com/zones'];

/** What the controller needs besides what is watched, by namespace (`*`: all) and resource. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  '* apiextensions.k8s.io/customresourcedefinitions': WATCH,
  [`${NAMESPACE} haproxy-haptic.org/haproxytemplateconfigs`]: WATCH,
  [`${NAMESPACE} haproxy-haptic.org/haproxytemplateconfigs/status`]: ['patch'],
  ...Object.fromEntries(
    ['haproxycfgs', 'haproxymapfiles', 'haproxygeneralfiles', 'haproxycrtlistfiles'].flatMap(
      (plural) => [
        [`${NAMESPACE} haproxy-haptic.org/${plural}`, ['create', 'delete', 'get', 'list', 'patch']],
        [`${NAMESPACE} haproxy-haptic.org/${plural}/status`, ['patch']],
      ],
    ),
  ),
  [`${NAMESPACE} /pods`]: WATCH,
  [`${NAMESPACE} coordination.k8s.io/leases`]: ['create'],
  [`${NAMESPACE} /secrets`]: ['create'],
  [`${NAMESPACE} events.k8s.io/events`]: ['create', 'patch'],
};

interface Grant {
  /** `*` of a ClusterRole. */
  readonly namespace: string;
  readonly rule: V1PolicyRule;
}

const grants = (objects: readonly Rendered[]): readonly Grant[] => [
  ...ofKind(objects, 'ClusterRole').flatMap(({ rules }) =>
    (rules ?? []).map((rule) => ({ namespace: '*', rule })),
  ),
  ...ofKind(objects, 'Role').flatMap(({ metadata, rules }) =>
    (rules ?? []).map((rule) => ({ namespace: present(metadata.namespace), rule })),
  ),
];

/** Verbs by namespace and resource, of the rules that are for all objects of a resource. */
const granted = (all: readonly Grant[]): Readonly<Record<string, readonly string[]>> => {
  const verbs = new Map<string, Set<string>>();
  for (const { namespace, rule } of all.filter(({ rule: { resourceNames } }) => !resourceNames)) {
    for (const group of present(rule.apiGroups)) {
      for (const resource of present(rule.resources)) {
        const key = `${namespace} ${group}/${resource}`;
        verbs.set(key, new Set([...(verbs.get(key) ?? []), ...rule.verbs]));
      }
    }
  }
  return Object.fromEntries([...verbs].map(([key, set]) => [key, [...set].sort()]));
};

/** What the controller will watch with a rendered configuration. */
const watchedBy = async (objects: readonly Rendered[]): Promise<readonly WatchedResource[]> => {
  const config = present(objects.find(({ kind }) => kind === 'HAProxyTemplateConfig'));
  const loaded = await loadLibraries(LIBRARIES);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { libraries } = loaded;
  const parsed = parseConfig(config as unknown as KubeObject, { libraries, digest: sha256 });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config.watched;
};

/** The rights that watching one resource in one place needs, and writing about it. */
const neededFor = (place: string, resource: string): readonly [string, readonly string[]][] => [
  [`${place} ${resource}`, WATCH],
  ...(CLUSTER_SCOPED.includes(resource)
    ? []
    : [[`${place} events.k8s.io/events`, ['create', 'patch']] as [string, string[]]]),
  ...(resource === 'networking.k8s.io/ingresses'
    ? [[`${place} ${resource}/status`, ['patch']] as [string, string[]]]
    : []),
];

const needed = (
  watched: readonly WatchedResource[],
  namespaces: readonly string[],
): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    watched.flatMap(({ apiVersions, resources, namespaces: narrower }) =>
      apiVersions.flatMap((version) => {
        const resource = `${version.includes('/') ? version.replace(/\/.*/, '') : ''}/${resources}`;
        const own = narrower.length > 0 ? narrower : namespaces;
        const places = CLUSTER_SCOPED.includes(resource) || own.length === 0 ? ['*'] : own;
        return places.flatMap((place) => neededFor(place, resource));
      }),
    ),
  );

describe('S84: the rights of the controller', () => {
  test.each(VALUE_SETS)('are what it watches, what it writes, and no more: %s', async (values) => {
    const objects = await rendered({ values });
    const watched = await watchedBy(objects);
    const namespaces = values === 'namespaced' ? ['shop', 'team-a'] : [];
    const extra: Readonly<Record<string, readonly string[]>> =
      values === 'customised' ? { '* /nodes': ['get'], [`${NAMESPACE} /endpoints`]: ['get'] } : {};
    expect(granted(grants(objects))).toStrictEqual({
      ...OWN,
      ...needed(watched, namespaces),
      ...extra,
    });
  });

  test('reach single objects only by name', async () => {
    const named = grants(await rendered({ values: 'customised' })).flatMap(
      ({ namespace, rule: { resourceNames = [], resources = [], verbs } }) =>
        resourceNames.map(
          (name) => `${namespace} ${resources.join(' ')} ${name}: ${verbs.join(' ')}`,
        ),
    );
    expect(named).toStrictEqual([
      'haptic services edge-haproxy: get list watch',
      'haptic leases edge-leader: get update',
      'haptic secrets edge-accepted: get patch',
      'haptic secrets edge-quarantine: get patch',
      'haptic secrets edge-default: get list watch',
    ]);
  });

  test('include no Secret of the whole cluster when namespaces are named', async () => {
    const objects = await rendered({ values: 'namespaced' });
    const everywhere = grants(objects).filter(({ namespace }) => namespace === '*');
    expect(everywhere.flatMap(({ rule }) => rule.resources ?? []).sort()).toStrictEqual([
      'customresourcedefinitions',
      'ingressclasses',
      'zones',
    ]);
    const secrets = grants(objects).filter(({ rule }) => rule.resources?.includes('secrets'));
    const readable = secrets.filter(({ rule }) => rule.verbs.includes('get'));
    expect(
      readable.map(({ namespace, rule }) => [namespace, rule.resourceNames ?? 'all']).sort(),
    ).toStrictEqual([
      ['certificates', ['wildcard']],
      ['haptic', ['team-config-accepted', 'team-config-quarantine']],
      ['shop', 'all'],
    ]);
  });

  test('never contain a wildcard', async () => {
    for (const values of VALUE_SETS) {
      const rules = grants(await rendered({ values })).map(({ rule }) => rule);
      const words = rules.flatMap((rule) => [
        ...present(rule.apiGroups),
        ...present(rule.resources),
        ...rule.verbs,
      ]);
      expect(words).not.toContain('*');
    }
  });

  test('are bound to the one account, each where its role is', async () => {
    for (const values of VALUE_SETS) {
      const objects = await rendered({ values });
      const bindings = [
        ...ofKind(objects, 'RoleBinding'),
        ...ofKind(objects, 'ClusterRoleBinding'),
      ];
      const bound = bindings.map(({ metadata, roleRef }) =>
        [roleRef.kind, metadata.namespace, roleRef.name].join(' '),
      );
      const roles = [...ofKind(objects, 'Role'), ...ofKind(objects, 'ClusterRole')];
      const there = roles.map(({ kind, metadata }) =>
        [kind, metadata.namespace, metadata.name].join(' '),
      );
      expect(bound.sort()).toStrictEqual(there.sort());
      const fullname = values === 'customised' ? 'edge' : 'haptic';
      const controller = { kind: 'ServiceAccount', name: `${fullname}-controller` };
      for (const { subjects } of bindings) {
        expect(subjects).toStrictEqual([{ ...controller, namespace: NAMESPACE }]);
      }
    }
  });
});

describe('the chart knows the libraries', () => {
  interface Watched {
    readonly apiVersions: readonly string[];
    readonly resources: string;
  }

  test('what each of them watches, in their order', async () => {
    const loaded = await loadLibraries(LIBRARIES);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const theirs = loaded.libraries
      .toSorted((left, right) => left.order - right.order)
      .map(({ name, spec }) => {
        const { watchedResources = {} } = spec as {
          readonly watchedResources?: Readonly<Record<string, Watched>>;
        };
        const entries = Object.entries(watchedResources);
        return {
          name,
          watchedResources: Object.fromEntries(
            entries.map(([key, { apiVersions, resources }]) => [key, { apiVersions, resources }]),
          ),
        };
      });
    expect(yamlFile('chart/files/libraries.yaml')).toStrictEqual(theirs);
  });

  test('by name, and each is on as it is without the chart', async () => {
    const loaded = await loadLibraries(LIBRARIES);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const theirs = loaded.libraries.map(({ name, enabled }) => [name, { enabled }]);
    const { controller } = yamlFile('chart/values.yaml') as {
      readonly controller: { readonly templateLibraries: unknown };
    };
    expect(controller.templateLibraries).toStrictEqual(Object.fromEntries(theirs));
    const schema = readFileSync(join(CHART, 'values.schema.json'), 'utf8');
    for (const { name } of loaded.libraries) expect(schema).toContain(`"${name}"`);
  });
});
