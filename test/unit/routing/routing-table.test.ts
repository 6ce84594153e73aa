import { describe, expect, test } from 'vitest';
import { createRouting, type RoutingSettings } from '../../../src/routing/routing.ts';
import { lookUp } from '../../support/route-lookup.ts';
import {
  changed,
  ingress,
  ingressClass,
  service,
  slice,
  snapshotOf,
  tlsSecret,
} from '../../support/objects.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import type { RouteModel } from '../../../src/routing/model.ts';

const settings: RoutingSettings = {
  ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
  standalone: true,
  inspectKeyPair: () => ({ ok: true, names: [], notAfter: '2030-01-01T00:00:00Z' }),
};

const route = (objects: readonly KubeObject[], own: Partial<RoutingSettings> = {}): RouteModel =>
  createRouting({ ...settings, ...own }).route(snapshotOf(objects));

const backendFor = (model: RouteModel, host: string, path: string): string => {
  const found = lookUp(model, { scheme: 'https', host, path });
  return found.kind === 'backend' ? found.backend : found.kind;
};

describe('paths', () => {
  const model = route([
    ingress('web', {
      rules: [
        ['a.example.com', '/', 'root:80'],
        ['a.example.com', '/foo', 'foo:80'],
        ['a.example.com', '/foo/bar/', 'bar:80'],
        ['a.example.com', '/foo', 'exact:80', 'Exact'],
        ['a.example.com', '/impl', 'impl:80', 'ImplementationSpecific'],
      ],
    }),
  ]);

  test.each([
    ['/', 'default_root_80'],
    ['/other', 'default_root_80'],
    ['/foo', 'default_exact_80'],
    ['/foo/', 'default_foo_80'],
    ['/foobar', 'default_root_80'],
    ['/foo/bar', 'default_bar_80'],
    ['/foo/bar/x', 'default_bar_80'],
    ['/foo/barx', 'default_foo_80'],
    ['/FOO', 'default_root_80'],
    ['/impl/x', 'default_impl_80'],
    ['/implx', 'default_root_80'],
  ])('%s goes to %s: exact first, then the longest prefix of whole elements', (path, backend) => {
    expect(backendFor(model, 'a.example.com', path)).toBe(backend);
  });
});

describe('hosts', () => {
  const model = route([
    ingress('all', { rules: [['', '/', 'any:80']] }),
    ingress('wild', { rules: [['*.example.com', '/', 'wild:80']] }),
    ingress('one', { rules: [['Shop.Example.com', '/cart', 'shop:80']] }),
  ]);

  test.each([
    ['shop.example.com', '/cart', 'default_shop_80'],
    ['shop.example.com', '/other', 'notFound'],
    ['www.example.com', '/', 'default_wild_80'],
    ['a.b.example.com', '/', 'default_any_80'],
    ['example.com', '/', 'default_any_80'],
    ['other.org', '/x', 'default_any_80'],
  ])(
    '%s%s goes to %s: the most specific host that is claimed, and to no other',
    (host, path, to) => {
      expect(backendFor(model, host, path)).toBe(to);
    },
  );

  test('are kept in lower case', () => {
    expect(model.hosts.keys()).toStrictEqual(['*', '*.example.com', 'shop.example.com']);
  });
});

describe('the default backend', () => {
  test('without rules stands for every host that nothing else claims', () => {
    const model = route([
      ingress('fallback', { defaultBackend: 'any:80' }),
      ingress('one', { rules: [['a.example.com', '/x', 'a:80']] }),
    ]);
    expect(backendFor(model, 'other.org', '/x')).toBe('default_any_80');
    expect(backendFor(model, 'a.example.com', '/y')).toBe('notFound');
  });

  test('with rules stands for its own hosts only, so that no tenant answers for everybody', () => {
    const model = route([
      ingress('own', { rules: [['a.example.com', '/x', 'a:80']], defaultBackend: 'own:80' }),
    ]);
    expect(backendFor(model, 'a.example.com', '/y')).toBe('default_own_80');
    expect(backendFor(model, 'other.org', '/y')).toBe('notFound');
    expect(model.hosts.get('a.example.com')?.defaultObject?.name).toBe('own');
  });

  test('serves a rule that has a host and no paths', () => {
    const bare = ingress('own', { defaultBackend: 'own:80' });
    const model = route([
      { ...bare, spec: { ...(bare['spec'] as object), rules: [{ host: 'a.org' }] } },
    ]);
    expect(backendFor(model, 'a.org', '/y')).toBe('default_own_80');
    expect(model.hosts.has('*')).toBe(false);
  });
});

describe('two Ingresses that claim one host and path (R24)', () => {
  const old = ingress('z-old', {
    created: '2024-01-01T00:00:00Z',
    rules: [['a.example.com', '/', 'old:80']],
  });
  const young = ingress('a-young', {
    created: '2024-06-01T00:00:00Z',
    rules: [['a.example.com', '/', 'young:80']],
  });

  test.each<[string, KubeObject[], string, string]>([
    ['older', [young, old], 'default_old_80', 'a-young'],
    [
      'first by namespace when equally old',
      [
        ingress('a', { namespace: 'team-b', rules: [['a.example.com', '/', 'b:80']] }),
        ingress('b', { namespace: 'team-a', rules: [['a.example.com', '/', 'a:80']] }),
      ],
      'team-a_a_80',
      'a',
    ],
    [
      'first by name when of one namespace',
      [
        ingress('b', { rules: [['a.example.com', '/', 'b:80']] }),
        ingress('a', { rules: [['a.example.com', '/', 'a:80']] }),
      ],
      'default_a_80',
      'b',
    ],
  ])('the %s wins and the other is told', (_name, ...[objects, winner, loser]) => {
    const model = route(objects);
    expect(backendFor(model, 'a.example.com', '/')).toBe(winner);
    const conflicts = model.problems.filter(({ reason }) => reason === 'HostPathConflict');
    expect(conflicts).toHaveLength(1);
    expect(conflicts[0]).toMatchObject({
      object: { kind: 'Ingress', name: loser },
      field: 'spec.rules[0].http.paths[0].path',
    });
    expect(conflicts[0]?.message).toContain('The prefix / of host a.example.com');
  });

  test('do not conflict with different path types', () => {
    const exact = ingress('b', { rules: [['a.example.com', '/', 'b:80', 'Exact']] });
    const model = route([old, exact]);
    expect(model.problems.map(({ reason }) => reason)).not.toContain('HostPathConflict');
    expect(backendFor(model, 'a.example.com', '/')).toBe('default_b_80');
    expect(backendFor(model, 'a.example.com', '/x')).toBe('default_old_80');
  });

  test('take over when the winner goes', () => {
    const routing = createRouting(settings);
    const before = snapshotOf([old, young]);
    routing.route(before);
    const model = routing.route(changed(before, [], [old]));
    expect(backendFor(model, 'a.example.com', '/')).toBe('default_young_80');
    expect(model.problems.map(({ reason }) => reason)).not.toContain('HostPathConflict');
  });
});

describe('IngressClass', () => {
  const rules = [['a.example.com', '/', 'a:80']] as const;

  test.each<[string, readonly KubeObject[], Partial<RoutingSettings>, boolean]>([
    ['our name without an object is served in standalone', [ingress('a', { rules })], {}, true],
    [
      'our name without an object is not served in a cluster',
      [ingress('a', { rules })],
      { standalone: false },
      false,
    ],
    [
      'our name with the controller of somebody else is not served',
      [ingress('a', { rules }), ingressClass('haptic', 'example.org/other')],
      {},
      false,
    ],
    [
      'any name with our controller is served',
      [ingress('a', { rules, className: 'inner' }), ingressClass('inner')],
      { standalone: false },
      true,
    ],
    [
      'no class is not served',
      [ingress('a', { rules, className: null }), ingressClass('x')],
      {},
      false,
    ],
    [
      'no class is served when ours is the default',
      [
        ingress('a', { rules, className: null }),
        ingressClass('x', 'haproxy-haptic.org/controller', true),
      ],
      {},
      true,
    ],
    [
      'the annotation names a class',
      [
        ingress('a', {
          rules,
          className: null,
          annotations: { 'kubernetes.io/ingress.class': 'haptic' },
        }),
      ],
      {},
      true,
    ],
    [
      'a class called constructor is not served',
      [ingress('a', { rules, className: 'constructor' })],
      {},
      false,
    ],
  ])('%s', (_name, ...[objects, own, served]) => {
    expect(route(objects, own).hosts.size).toBe(served ? 1 : 0);
  });

  test('of somebody else costs one comparison: nothing else of the object is read (R16)', () => {
    const read: string[] = [];
    const spec = new Proxy<Record<string, unknown>>(
      { ingressClassName: 'other', rules: [], tls: [] },
      {
        get: (target, name) => {
          read.push(String(name));
          return target[String(name)];
        },
      },
    );
    const model = route([{ ...ingress('foreign'), spec }]);
    expect(model.hosts.size + model.problems.length).toBe(0);
    expect(read).toStrictEqual(['ingressClassName']);
  });

  test('that becomes ours, or ceases to be, takes its Ingresses along', () => {
    const routing = createRouting(settings);
    const first = snapshotOf([ingress('a', { rules, className: 'inner' })]);
    expect(routing.route(first).hosts.size).toBe(0);
    const second = changed(first, [ingressClass('inner')]);
    expect(routing.route(second).hosts.size).toBe(1);
    const third = changed(second, [ingressClass('inner', 'example.org/other')]);
    expect(routing.route(third).hosts.size).toBe(0);
    expect(routing.route(third).backends.size).toBe(0);
  });
});

describe('records keep their identity', () => {
  const objects = [
    ingress('a', { rules: [['a.example.com', '/', 'a:80']] }),
    ingress('b', { rules: [['b.example.com', '/', 'b:80']] }),
    service('a'),
    service('b'),
    slice('a'),
    slice('b', { endpoints: ['10.0.0.2'] }),
  ];

  test('an EndpointSlice touches the backends of its Service alone', () => {
    const routing = createRouting(settings);
    const before = snapshotOf(objects);
    const model = routing.route(before);
    const next = routing.route(changed(before, [slice('a', { endpoints: ['10.0.0.9'] })]));
    expect(next.hosts).toBe(model.hosts);
    expect(next.certificates).toBe(model.certificates);
    expect(next.problems).toBe(model.problems);
    expect([...next.backends.differences(model.backends)].map(({ key }) => key)).toStrictEqual([
      'default_a_80',
    ]);
  });

  test('an Ingress touches its own hosts and backends alone', () => {
    const routing = createRouting(settings);
    const before = snapshotOf(objects);
    const model = routing.route(before);
    const next = routing.route(
      changed(before, [ingress('a', { rules: [['a.example.com', '/x', 'a:80']] })]),
    );
    expect([...next.hosts.differences(model.hosts)].map(({ key }) => key)).toStrictEqual([
      'a.example.com',
    ]);
    expect(next.backends).toBe(model.backends);
  });

  test('a change that concerns no route gives the same model', () => {
    const routing = createRouting(settings);
    const before = snapshotOf(objects);
    const model = routing.route(before);
    const slices = slice('nobody', { endpoints: ['10.0.0.7'] });
    expect(routing.route(changed(before, [service('nobody'), slices]))).toBe(model);
  });

  test('what goes takes its records along, and what comes back brings them', () => {
    const tls = ingress('a', { rules: [['a.example.com', '/', 'a:80']], tls: [['cert']] });
    const pem = (what: string): string => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;
    const data = { 'tls.crt': pem('CERTIFICATE'), 'tls.key': pem('PRIVATE KEY') };
    const all = [tls, service('a'), slice('a'), tlsSecret('cert', data)];
    const routing = createRouting(settings);
    let snapshot = snapshotOf(all);
    const whole = routing.route(snapshot);
    expect(whole.problems).toStrictEqual([]);
    const served = ({ hosts, backends, certificates }: RouteModel): number[] => [
      hosts.size,
      backends.get('default_a_80')?.servers.length ?? -1,
      certificates.size,
    ];
    for (const [object, left] of [
      [all[0], [0, -1, 0]],
      [all[1], [1, 0, 1]],
      [all[2], [1, 0, 1]],
      [all[3], [1, 1, 0]],
    ] as const) {
      snapshot = changed(snapshot, [], [object!]);
      expect(served(routing.route(snapshot))).toStrictEqual(left);
      snapshot = changed(snapshot, [object!]);
      expect(served(routing.route(snapshot))).toStrictEqual([1, 1, 1]);
    }
  });

  test('an EndpointSlice that moves to another Service leaves the first', () => {
    const routing = createRouting(settings);
    const before = snapshotOf(objects);
    routing.route(before);
    const moved = { ...slice('b', { name: 'a-1', endpoints: ['10.0.0.1'] }) };
    const { backends } = routing.route(changed(before, [moved]));
    expect(backends.get('default_a_80')?.servers).toHaveLength(0);
    expect(backends.get('default_b_80')?.servers).toHaveLength(2);
  });

  test('versions may be missed', () => {
    const routing = createRouting(settings);
    const before = snapshotOf(objects);
    const model = routing.route(before);
    const between = changed(before, [slice('a', { endpoints: ['10.0.0.9'] })]);
    const after = changed(between, [slice('b', { endpoints: ['10.0.0.8'] })]);
    const next = routing.route(after);
    expect([...next.backends.differences(model.backends)]).toHaveLength(2);
    expect(next.hosts).toBe(model.hosts);
  });
});
