import { fc, test } from '@fast-check/vitest';
import { expect } from 'vitest';
import type { Render, TemplateEngine } from '../../../src/render/render.ts';
import type { HostRoutes } from '../../../src/routing/model.ts';
import { applyBatch, type IndexedSnapshot } from '../../../src/snapshot/apply-batch.ts';
import type { Snapshot } from '../../../src/snapshot/snapshot.ts';
import {
  EMPTY_SNAPSHOT,
  HEAD,
  backendModel,
  configMap,
  engineOf,
  noRoutes,
  refOf,
  runSteps,
  server,
  service,
  textOf,
  withObjects,
  type Routes,
} from '../../support/templates.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
const RUNS = LONG ? 20_000 : 150;
const TIMEOUT_MS = LONG ? 3_600_000 : 60_000;

const TEMPLATES = {
  main: `{% section "global" %}
${HEAD}{% endsection %}
# {{ resources.configmaps.list() | length }} config maps
{% for one in resources.services.fetch("shop", "red") %}
# red: {{ one.metadata.name | comment }}
{% endfor %}
{{ profile({ name: "p", body: "" }) }}
{% cells b in routes.backends %}
{% set settings = resources.configmaps.get("shop", b.name) | default(none) %}
{% set body %}
{% if settings %}
    # {{ settings.data.x | comment }}
{% endif %}
    # {{ resources.services.fetch("shop") | length }} services
    # {{ routes.hosts[b.name] is defined }}
{% endset %}
{{ backend({ name: b.name, mode: b.mode, profile: "p", servers: b.servers, body: body }) }}
{{ map_entry(b.name, "backend", "all.map") }}
{% endcells %}
{% section "lists" %}
{% cells one in resources.services.list() key one.metadata.name %}
# {{ one.metadata.name | comment }}
{% endcells %}
{% endsection %}
`,
  maps: {
    'hosts.map':
      '{% cells h in routes.hosts %}\n{{ map_entry(h.host, h.prefix | length) }}\n{% endcells %}\n',
    'all.map': '{{ map_entry("fixed", 1) }}',
  },
  orderedMaps: {
    'ordered.map':
      '{% cells h in routes.hosts %}\n{% for p in h.prefix %}\n{{ map_entry(h.host ~ p.path, p.backend) }}\n{% endfor %}\n{% endcells %}\n',
  },
  files: { 'count.txt': '{{ routes.backends | length }}\n' },
};

type Change =
  | { readonly type: 'backend'; readonly name: string; readonly servers: number }
  | { readonly type: 'noBackend'; readonly name: string }
  | { readonly type: 'host'; readonly name: string; readonly paths: number }
  | { readonly type: 'noHost'; readonly name: string }
  | { readonly type: 'map'; readonly name: string; readonly x: number }
  | { readonly type: 'noMap'; readonly name: string }
  | { readonly type: 'service'; readonly name: string; readonly app: string };

const name = fc.constantFrom('a', 'b', 'c', 'constructor', '__proto__');
const count = fc.nat({ max: 3 });

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ type: fc.constant('backend' as const), name, servers: count }),
  fc.record({ type: fc.constant('noBackend' as const), name }),
  fc.record({ type: fc.constant('host' as const), name, paths: count }),
  fc.record({ type: fc.constant('noHost' as const), name }),
  fc.record({ type: fc.constant('map' as const), name, x: count }),
  fc.record({ type: fc.constant('noMap' as const), name }),
  fc.record({ type: fc.constant('service' as const), name, app: fc.constantFrom('red', 'blue') }),
);

/** One batch, and whether its render is cut off after some steps, or its snapshot never seen. */
const batch = fc.record({
  changes: fc.array(change, { maxLength: 4 }),
  fate: fc.oneof(
    { weight: 3, arbitrary: fc.constant<'all' | 'skipped' | number>('all') },
    { weight: 1, arbitrary: fc.constant<'all' | 'skipped' | number>('skipped') },
    { weight: 2, arbitrary: fc.nat({ max: 20 }) },
  ),
});

const hostRoutes = (host: string, paths: number): HostRoutes => ({
  ...{ host, exact: [], httpsRedirect: false },
  ...{ defaultBackend: undefined, defaultObject: undefined },
  prefix: Array.from({ length: paths }, (_, index) => ({
    ...{ path: `/${index}`, backend: 'a', object: refOf(host) },
  })),
});

/** A change of routes comes from an object as well; here the version alone stands for it. */
const nextVersion = (
  before: IndexedSnapshot,
  objects: IndexedSnapshot,
  step: number,
): IndexedSnapshot => {
  const next = Object.create(objects) as IndexedSnapshot;
  return Object.assign(next, { version: before.version + step });
};

const applyRoutes = (routes: Routes, one: Change): Routes => {
  switch (one.type) {
    case 'backend': {
      const servers = Array.from({ length: one.servers }, (_, index) =>
        server(`s${index}`, `10.0.0.${index}`),
      );
      return {
        ...routes,
        backends: routes.backends.with(new Map([[one.name, backendModel(one.name, servers)]])),
      };
    }
    case 'noBackend':
      return { ...routes, backends: routes.backends.with(new Map([[one.name, undefined]])) };
    case 'host':
      return {
        ...routes,
        hosts: routes.hosts.with(new Map([[one.name, hostRoutes(one.name, one.paths)]])),
      };
    case 'noHost':
      return { ...routes, hosts: routes.hosts.with(new Map([[one.name, undefined]])) };
    default:
      return routes;
  }
};

const applyObjects = (snapshot: IndexedSnapshot, one: Change): IndexedSnapshot => {
  if (one.type === 'map') return withObjects(snapshot, [configMap(one.name, { x: String(one.x) })]);
  if (one.type === 'service') return withObjects(snapshot, [service(one.name, one.app)]);
  if (one.type !== 'noMap') return snapshot;
  const key = `shop/${one.name}`;
  return applyBatch(
    snapshot,
    new Map([['configmaps', new Map([[key, { type: 'Deleted', key }]])]]),
  );
};

/** Everything a render says, without what tells how it was come by. */
const described = (render: Render): unknown => ({
  id: render.plan.id,
  sections: render.plan.sections,
  backends: [...render.plan.backends.values()],
  maps: [...render.plan.maps.values()].map(({ entries, ...map }) => ({
    ...map,
    entries: [...entries.values()],
  })),
  files: [...render.files].map(([path]) => [path, textOf(render, path)]).sort(),
  lines: Array.from({ length: 40 }, (_, line) => render.provenance(line + 1)),
});

const renderWith = (engine: TemplateEngine, snapshot: Snapshot): unknown => {
  const result = runSteps(engine, snapshot);
  return result.ok ? described(result.render) : result.failure;
};

test.prop([fc.array(batch, { minLength: 1, maxLength: 8 })], { numRuns: RUNS })(
  'an incremental render equals the one from scratch, whatever was cut off or skipped (P6, R2)',
  (history) => {
    let routes: Routes = noRoutes();
    let snapshot: IndexedSnapshot = EMPTY_SNAPSHOT;
    const engine = engineOf(TEMPLATES, () => routes);
    for (const { changes, fate } of history) {
      routes = changes.reduce(applyRoutes, routes);
      const objects = changes.reduce(applyObjects, snapshot);
      snapshot = nextVersion(snapshot, objects, changes.length > 1 ? 7 : 1);
      if (fate === 'skipped') continue;
      if (typeof fate === 'number') {
        const steps = engine.steps(snapshot);
        for (let step = 0; step < fate; step += 1) steps.next();
        continue;
      }
      expect(renderWith(engine, snapshot)).toEqual(
        renderWith(
          engineOf(TEMPLATES, () => routes),
          snapshot,
        ),
      );
    }
    expect(renderWith(engine, snapshot)).toEqual(
      renderWith(
        engineOf(TEMPLATES, () => routes),
        snapshot,
      ),
    );
  },
  TIMEOUT_MS,
);
