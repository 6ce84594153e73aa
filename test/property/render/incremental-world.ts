/** Histories of a cluster for the render: objects that come, change, go and come back, over the libraries and more. */
import fc from 'fast-check';
import { sha256, sha256Hasher } from '../../../src/digest.ts';
import { createEngine } from '../../../src/render/engine.ts';
import { parseConfig } from '../../../src/render/config/parse-config.ts';
import type { Render, RenderResult, TemplateEngine } from '../../../src/render/render.ts';
import { createRouting } from '../../../src/routing/routing.ts';
import {
  applyBatch,
  emptySnapshot,
  type IndexedSnapshot,
} from '../../../src/snapshot/apply-batch.ts';
import { metadataOf } from '../../../src/snapshot/content.ts';
import { REPLACEMENT_KEY } from '../../../src/snapshot/folded-changes.ts';
import { objectKey, type KubeObject } from '../../../src/snapshot/objects.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { loadLibraries } from '../../../src/streams/libraries.ts';
import { arbitraryEndpoints, arbitraryIngress } from '../../support/arbitrary-routes.ts';
import { ingressClass, resourceOf, tlsSecret } from '../../support/objects.ts';
import { LIBRARIES, textsOf } from '../../support/rendered.ts';

const NAMESPACES = ['default', 'team-a'];
const SERVICES = ['web', 'shop', 'constructor', '__proto__'];

/** Lines of every backend: what its namespace, its policies and a Secret say. */
const BACKEND_HOOK = `{% set namespace = resources.namespaces.get("", route.object.namespace) | default(none) %}
{% if namespace %}
    # tier {{ namespace.metadata.labels.tier | default("none") | comment }}
{% endif %}
{% for policy in resources.policies.fetch(route.object.namespace, route.object.name) %}
    http-request set-header X-Policy {{ policy.spec.text | token }}
{% endfor %}
    # {{ resources.secrets.get(route.object.namespace, "creds").data.key | default("no key") | comment }}
`;

/** One cell a policy, which prints, tells and declares one thing of each kind. */
const POLICY_CELLS = `# {{ resources.policies.list() | length }} policies
{% cells policy in resources.policies %}
# policy {{ policy.metadata.name | comment }} {{ policy.spec.text | token }} of {{ resources.services.fetch(policy.metadata.namespace) | length }}
{{ map_entry(policy.spec.service, policy.spec.value, "policies.map") }}
{{ map_entry(policy.spec.value, policy.metadata.name, "ordered.map") }}
{{ status(policy, { seen: policy.spec.text }) }}
{{ file("policy-" ~ policy.spec.value ~ ".txt", policy.spec.value) }}
{{ crt_list("policies.crt-list", [{ certificate: policy.metadata.name, options: [], hosts: [] }]) }}
{% endcells %}
`;

const CONFIGS = [
  { backend: BACKEND_HOOK, cells: POLICY_CELLS },
  {
    backend: `    # other\n${BACKEND_HOOK}`,
    cells: POLICY_CELLS.replace('{{ status', '{# {{ status').replace('text }) }}', 'text }) }} #}'),
  },
].map(({ backend, cells }) => ({
  watchedResources: {
    namespaces: { apiVersions: ['v1'], resources: 'namespaces', indexBy: ['metadata.name'] },
    policies: {
      ...{ apiVersions: ['example.org/v1'], resources: 'policies' },
      indexBy: ['metadata.namespace', 'spec.service'],
    },
  },
  templateSnippets: {
    'backend-600-policy': { template: backend },
    'sections-600-policies': { template: cells },
  },
  maps: {
    'policies.map': { template: '{# filled by cells #}' },
    'ordered.map': { template: '{{ map_entry("first", 1) }}', ordered: true },
  },
  files: {
    'hosts.txt': {
      template:
        '{{ routes.backends | length }}\n{% cells h in routes.hosts %}\n{{ h.host | text }}\n{% endcells %}\nend\n',
    },
  },
}));

const loaded = await loadLibraries(LIBRARIES);
if (!loaded.ok) throw new Error('the libraries do not load');
const { libraries } = loaded;

const told = (problems: readonly { readonly message: string }[]): string =>
  problems.map(({ message }) => message).join('\n');

/** A fresh engine over the libraries and one of two configurations. */
export const worldEngine = (config: number): TemplateEngine => {
  const object = {
    ...{ apiVersion: 'haproxy-haptic.org/v1alpha1', kind: 'HAProxyTemplateConfig' },
    ...{ metadata: { name: 'test', namespace: 'default' }, spec: CONFIGS[config] },
  };
  const parsed = parseConfig(object, { libraries, digest: sha256 });
  if (!parsed.ok) throw new Error(told(parsed.problems));
  const created = createEngine({
    config: parsed.config,
    routing: () =>
      createRouting({
        ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
        standalone: true,
        defaultCertificate: { pem: pem('CERTIFICATE') + pem('PRIVATE KEY') },
        inspectKeyPair: () => ({
          ...{ ok: true, names: ['shop.org', 'a.example.com'] },
          notAfter: '2030-01-01T00:00:00Z',
        }),
      }),
    digest: sha256,
    hasher: () => sha256Hasher(),
  });
  if (!created.ok) throw new Error(told(created.problems));
  return created.engine;
};

const pem = (what: string): string => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;

const RESOURCE_OF: Readonly<Record<string, string>> = {
  ...{ Namespace: 'namespaces', Policy: 'policies', PartialObjectMetadata: 'secrets' },
};

const resource = (object: KubeObject): string => RESOURCE_OF[object.kind] ?? resourceOf(object);

const namespaceObject = fc
  .record({ name: fc.constantFrom(...NAMESPACES), tier: fc.constantFrom('gold', 'tin', undefined) })
  .map(({ name, tier }): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'Namespace' },
    metadata: { name, uid: `uid-${name}`, labels: tier === undefined ? {} : { tier } },
  }));

const policy = fc
  .record({
    ...{
      namespace: fc.constantFrom(...NAMESPACES),
      name: fc.constantFrom('p', 'q', 'constructor'),
    },
    service: fc.constantFrom(...SERVICES),
    text: fc.nat({ max: 11 }).map((number) => (number === 0 ? 'not a token' : `t${number}`)),
    value: fc.constantFrom('x', 'x', 'x', 'y'),
  })
  .map(({ namespace, name, ...spec }): KubeObject => ({
    ...{ apiVersion: 'example.org/v1', kind: 'Policy', spec },
    metadata: { namespace, name, uid: `uid-${namespace}-${name}` },
  }));

const credentials = fc
  .record({ namespace: fc.constantFrom(...NAMESPACES), key: fc.constantFrom('a', 'b') })
  .map(({ namespace, key }) => ({ ...tlsSecret('creds', {}, namespace), data: { key } }));

const certificate = fc
  .record({ namespace: fc.constantFrom(...NAMESPACES), broken: fc.boolean() })
  .map(({ namespace, broken }) =>
    tlsSecret(
      'cert',
      { 'tls.crt': pem('CERTIFICATE'), ...(broken ? {} : { 'tls.key': pem('PRIVATE KEY') }) },
      namespace,
    ),
  );

const secret: fc.Arbitrary<KubeObject> = fc
  .record({ object: fc.oneof(credentials, certificate), bare: fc.nat({ max: 7 }) })
  .map(({ object, bare }) => (bare === 0 ? metadataOf(object) : object));

const classObject = fc.constantFrom(
  ...[
    ingressClass('haptic'),
    ingressClass('haptic', 'x.org/y'),
    ingressClass('other', 'x.org/y', true),
  ],
);

/** Any object that routing or the templates look at. */
export const anyObject: fc.Arbitrary<KubeObject> = fc.oneof(
  { weight: 4, arbitrary: arbitraryIngress },
  { weight: 4, arbitrary: arbitraryEndpoints },
  { weight: 3, arbitrary: policy },
  { weight: 2, arbitrary: secret },
  { weight: 1, arbitrary: namespaceObject },
  { weight: 1, arbitrary: classObject },
);

/** One event; `again` brings back the very object that was written that many events ago. */
export type Event =
  | { readonly type: 'write' | 'delete'; readonly object: KubeObject }
  | { readonly type: 'again'; readonly ago: number }
  | { readonly type: 'relist'; readonly object: KubeObject };

export const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('write' as const), object: anyObject }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('delete' as const), object: anyObject }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('again' as const), ago: fc.nat({ max: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('relist' as const), object: anyObject }) },
);

/** The objects of a cluster over time. */
export class Cluster {
  readonly #written: KubeObject[] = [];
  snapshot: IndexedSnapshot;

  constructor(engine: TemplateEngine) {
    this.snapshot = emptySnapshot(engine.watched);
  }

  /** The snapshot after these events, each a version of its own; it does not become the cluster's unless it is kept. */
  after(events: readonly Event[]): IndexedSnapshot {
    return events.reduce((snapshot, one) => this.#apply(snapshot, one), this.snapshot);
  }

  #apply(snapshot: IndexedSnapshot, one: Event): IndexedSnapshot {
    const object = one.type === 'again' ? this.#written.at(-1 - one.ago) : one.object;
    if (object === undefined) return snapshot;
    if (one.type === 'write') this.#written.push(object);
    const key = objectKey(object);
    const change = (name: string, change: WatchEvent): IndexedSnapshot =>
      applyBatch(snapshot, new Map([[resource(object), new Map([[name, change]])]]));
    if (one.type === 'delete') return change(key, { type: 'Deleted', key });
    if (one.type !== 'relist') return change(key, { type: 'Upserted', object });
    // The watch lost everything of this kind but what it lists now.
    return change(REPLACEMENT_KEY, { type: 'Replaced', objects: [object] });
  }
}

const describedRender = (render: Render): unknown => {
  const { plan, files, problems, statuses, cells } = render;
  const lines = (textsOf(render)[plan.config.path] ?? '').split('\n').length;
  return {
    ...{ id: plan.id, sections: plan.sections, problems, statuses },
    config: { ...plan.config },
    held: { live: cells.live, reads: cells.reads },
    backends: [...plan.backends.values()],
    profiles: [...plan.profiles.values()],
    maps: [...plan.maps.values()].map(({ entries, ...map }) => ({
      ...map,
      digests: entries.digest,
      entries: entries.keys().map((key) => [key, entries.get(key)]),
    })),
    planFiles: [...plan.files.values()],
    paths: [...files].map(([path, { kind }]) => [path, kind]),
    texts: textsOf(render),
    provenance: Array.from({ length: lines }, (_, line) => render.provenance(line + 1)),
  };
};

/** Everything a result says, without what tells how it was come by. */
export const described = (result: RenderResult): unknown =>
  result.ok
    ? [describedRender(result.render), [...(result.needs?.keys() ?? [])]]
    : [result.failure, result.awaits];
