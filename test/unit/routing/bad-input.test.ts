/** Bad input as `docs/guarantees.md` promises it: one clear problem, and everybody else is served as before. */
import { describe, expect, test } from 'vitest';
import type { RouteModel } from '../../../src/routing/model.ts';
import { createRouting, type RoutingSettings } from '../../../src/routing/routing.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { backendOf, ingress, service, slice, snapshotOf } from '../../support/objects.ts';
import { lookUp } from '../../support/route-lookup.ts';

const settings: RoutingSettings = {
  ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
  standalone: true,
  inspectKeyPair: () => ({ ok: false, message: 'not asked' }),
};

const healthy: readonly KubeObject[] = [
  ingress('healthy', { rules: [['healthy.example.com', '/', 'web:80']] }),
  service('web'),
  slice('web'),
];

const route = (...objects: readonly KubeObject[]): RouteModel =>
  createRouting(settings).route(snapshotOf([...healthy, ...objects]));

const withSpec = (spec: unknown): KubeObject => ({
  ...ingress('bad'),
  spec: { ingressClassName: 'haptic', ...(spec as object) },
});

const withPath = (path: unknown, pathType: unknown = 'Prefix'): KubeObject =>
  withSpec({
    rules: [
      {
        host: 'bad.example.com',
        http: { paths: [{ path, pathType, backend: backendOf('web:80') }] },
      },
    ],
  });

const withBackend = (backend: unknown): KubeObject =>
  withSpec({
    rules: [
      { host: 'bad.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } },
    ],
  });

const HOSTILE: readonly (readonly [string, string])[] = [
  ['a newline', 'x\n    server evil 10.6.6.6:80'],
  ['a carriage return', 'x\ry'],
  ['a NUL', 'x\0y'],
  ['double quotes', 'x"y'],
  ['single quotes', "x'y"],
  ['a log format', '%[env(HOME)]'],
  ['a parent directory', '../../etc/passwd'],
  ['a space', 'x y'],
  ['a semicolon', 'x;y'],
  ['a backslash', 'x\\y'],
  ['a hash', 'x#y'],
  ['10 kB', 'x'.repeat(10_240)],
  ['an underscore', 'x_y'],
  ['Cyrillic letters', 'шоп'],
  ['a letter that becomes ASCII in lower case', '\u212a'],
  ['a lone surrogate', 'x\ud800'],
];

const expectHealthy = (model: RouteModel): void => {
  const looked = lookUp(model, { scheme: 'http', host: 'healthy.example.com', path: '/x' });
  expect(looked).toStrictEqual({ kind: 'backend', backend: 'default_web_80' });
  expect(model.backends.get('default_web_80')?.servers).toHaveLength(1);
};

const expectOne = (model: RouteModel, reason: string, field: string): void => {
  expect(model.problems).toHaveLength(1);
  const [problem] = model.problems;
  expect(problem).toMatchObject({ severity: 'error', reason, field });
  expect(problem?.object).toMatchObject({ kind: 'Ingress' });
  expect(problem?.message).toMatch(/^[\x20-\x7e…\u00a0-\uffff]{20,300}$/u);
  expect(problem?.nextStep).toMatch(/^[\x20-\x7e]{10,}\.$/);
  expectHealthy(model);
};

describe.each(HOSTILE)('%s (R8)', (_name, text) => {
  test('in a host: the rule is left out', () => {
    const model = route(ingress('bad', { rules: [[text, '/', 'web:80']] }));
    expectOne(model, 'InvalidHost', 'spec.rules[0].host');
    expect(model.hosts.keys()).toStrictEqual(['healthy.example.com']);
  });

  test('in a TLS host: the name is left out', () => {
    const tls = [{ hosts: [text, 'b.example.com'], secretName: '' }];
    const model = route(withSpec({ tls }));
    expectOne(model, 'InvalidHost', 'spec.tls[0].hosts[0]');
  });

  test('in the name of a Secret: the default certificate is served', () => {
    expectOne(
      route(withSpec({ tls: [{ secretName: text }] })),
      'InvalidSecretName',
      'spec.tls[0].secretName',
    );
  });

  test('in the name of a Service: the route answers 503', () => {
    const model = route(withBackend({ service: { name: text, port: { number: 80 } } }));
    expectOne(model, 'InvalidServiceName', 'spec.rules[0].http.paths[0].backend.service.name');
    expect(lookUp(model, { scheme: 'http', host: 'bad.example.com', path: '/' })).toMatchObject({
      backend: 'haptic-unavailable',
    });
  });

  test('in the name of a port: the route answers 503', () => {
    const model = route(withBackend({ service: { name: 'web', port: { name: text } } }));
    expectOne(model, 'InvalidServicePort', 'spec.rules[0].http.paths[0].backend.service.port');
  });

  test('in the name of the Ingress: the object is left out', () => {
    const bad = ingress(text, { rules: [['bad.example.com', '/', 'web:80']] });
    const model = route(bad);
    expectOne(model, 'InvalidName', 'metadata.name');
    expect(model.hosts.has('bad.example.com')).toBe(false);
  });

  test('in a namespace: the object is left out', () => {
    const bad = ingress('bad', { namespace: text, rules: [['bad.example.com', '/', 'web:80']] });
    expectOne(route(bad), 'InvalidName', 'metadata.namespace');
  });

  test('in an annotation, a label, a uid or a class has no effect', () => {
    const good = ingress('good', { rules: [['good.example.com', '/', 'web:80']] });
    const model = route(
      {
        ...good,
        metadata: {
          ...good.metadata,
          uid: text,
          annotations: { [text]: text },
          labels: { [text]: text },
        },
      },
      ingress('foreign', { className: text, rules: [['foreign.example.com', '/', 'web:80']] }),
    );
    expect(model.problems).toStrictEqual([]);
    expect(model.hosts.keys()).toStrictEqual(['good.example.com', 'healthy.example.com']);
  });
});

describe('a path that no request can have is left out', () => {
  const hostile = HOSTILE.filter(
    ([name]) => name !== 'an underscore' && name !== 'a parent directory',
  );
  test.each<[string, string]>([
    ...hostile.map(([name, text]): [string, string] => [name, `/${text}`]),
    ['no slash at the front', 'foo'],
    ['nothing', ''],
    ['a parent directory', '/a/../b'],
    ['a parent directory at the end', '/a/..'],
    ['an encoded slash', '/a%2Fb'],
    ['an empty element', '/a//b'],
    ['an incomplete escape', '/a%2'],
    ['a query', '/a?b=c'],
  ])('%s', (_name, path) => {
    const model = route(withPath(path));
    expectOne(model, 'InvalidPath', 'spec.rules[0].http.paths[0].path');
    expect(model.hosts.get('bad.example.com')?.prefix).toStrictEqual([]);
  });

  test.each([
    ['a number', 7],
    ['an object', {}],
    ['null', null],
  ])('%s instead of a string', (_name, path) => {
    expectOne(route(withPath(path, 'Exact')), 'InvalidPath', 'spec.rules[0].http.paths[0].path');
  });

  test.each(['/api/*', '/api(/|$)(.*)', '/(.*)'])(
    'the pattern %s of another controller',
    (path) => {
      const model = route(withPath(path, 'ImplementationSpecific'));
      expectOne(model, 'InvalidPath', 'spec.rules[0].http.paths[0].path');
    },
  );

  test.each([undefined, 'prefix', 'constructor', 7])('path type %s', (pathType) => {
    const paths = [
      { path: '/', backend: backendOf('web:80'), ...(pathType === undefined ? {} : { pathType }) },
    ];
    const model = route(withSpec({ rules: [{ host: 'bad.example.com', http: { paths } }] }));
    expectOne(model, 'InvalidPathType', 'spec.rules[0].http.paths[0].pathType');
  });

  test.each(['/~user/a.b-c_d', '/a!$&()*+,=:@', '/%41', '/.well-known/acme', '/a..b/c.'])(
    'but %s is a path',
    (path) => {
      expect(route(withPath(path)).problems).toStrictEqual([]);
    },
  );
});

describe('a Service that cannot be routed to keeps its route, which answers 503', () => {
  const to = (words: string): KubeObject =>
    ingress('bad', { rules: [['bad.example.com', '/', words]] });

  test.each<[string, readonly KubeObject[], string, string]>([
    ['missing', [to('nope:80')], 'ServiceNotFound', 'service.name'],
    ['with another port', [to('web:81')], 'ServicePortNotFound', 'service.port'],
    ['without a port of that name', [to('web:http')], 'ServicePortNotFound', 'service.port'],
    [
      'with a UDP port',
      [to('dns:53'), service('dns', { spec: { ports: [{ port: 53, protocol: 'UDP' }] } })],
      'ServicePortNotFound',
      'service.port',
    ],
    [
      'of type ExternalName, even with left-over slices',
      [
        to('ext:80'),
        service('ext', { spec: { type: 'ExternalName', externalName: 'x.org' } }),
        slice('ext'),
      ],
      'ExternalNameUnsupported',
      'service.name',
    ],
  ])('%s', (_name, ...[objects, reason, field]) => {
    const model = route(...objects);
    expectOne(model, reason, `spec.rules[0].http.paths[0].backend.${field}`);
    const looked = lookUp(model, { scheme: 'http', host: 'bad.example.com', path: '/' });
    const backend = looked.kind === 'backend' ? model.backends.get(looked.backend) : undefined;
    expect(backend?.servers).toStrictEqual([]);
  });

  test.each<[string, unknown, string]>([
    ['a resource', { resource: { kind: 'Bucket', name: 'x' } }, 'resource'],
    ['nothing', undefined, 'service.name'],
    ['no port', { service: { name: 'web' } }, 'service.port'],
    ['two ports', { service: { name: 'web', port: { name: 'http', number: 80 } } }, 'service.port'],
    ['port 0', { service: { name: 'web', port: { number: 0 } } }, 'service.port'],
    ['port 65536', { service: { name: 'web', port: { number: 65_536 } } }, 'service.port'],
    ['a port as text', { service: { name: 'web', port: { number: '80' } } }, 'service.port'],
    [
      'a port name without a letter',
      { service: { name: 'web', port: { name: '80' } } },
      'service.port',
    ],
    ['a list', [], 'service.name'],
  ])('a backend that is %s', (_name, backend, field) => {
    const model = route(withBackend(backend));
    expect(model.problems.map((problem) => problem.field)).toStrictEqual([
      `spec.rules[0].http.paths[0].backend.${field}`,
    ]);
    expect(model.hosts.get('bad.example.com')?.prefix[0]?.backend).toBe('haptic-unavailable');
    expectHealthy(model);
  });

  test('is told to every Ingress that refers to it, at every place', () => {
    const model = route(
      ingress('one', {
        rules: [
          ['one.example.com', '/', 'nope:80'],
          ['one.example.com', '/x', 'nope:80'],
        ],
      }),
      ingress('two', { defaultBackend: 'nope:80' }),
    );
    expect(model.problems.map(({ object, field }) => `${object?.name} ${field}`)).toStrictEqual([
      'one spec.rules[0].http.paths[0].backend.service.name',
      'one spec.rules[1].http.paths[0].backend.service.name',
      'two spec.defaultBackend.service.name',
    ]);
  });
});

describe('keys that are words of the language are plain data', () => {
  test.each(['constructor', 'toString', 'hasownproperty'])('%s as a name of everything', (name) => {
    const model = route(
      ingress(name, {
        namespace: name,
        rules: [[`${name.toLowerCase()}.example.com`, `/${name}`, `${name.toLowerCase()}:80`]],
      }),
      service(name.toLowerCase(), { namespace: name }),
      slice(name.toLowerCase(), { namespace: name }),
    );
    expectHealthy(model);
    if (name !== 'toString') {
      expect(model.problems).toStrictEqual([]);
      expect(model.backends.get(`${name}_${name}_80`)?.servers).toHaveLength(1);
    }
  });

  test('__proto__ as a host, a Service or an own key is refused or ignored', () => {
    const annotations = JSON.parse(
      '{"__proto__": {"kubernetes.io/ingress.class": "haptic"}}',
    ) as Record<string, string>;
    const model = route(
      ingress('bad', { rules: [['__proto__', '/', 'web:80']] }),
      ingress('foreign', {
        className: null,
        annotations,
        rules: [['x.example.com', '/', 'web:80']],
      }),
    );
    expectOne(model, 'InvalidHost', 'spec.rules[0].host');
    expect(model.hosts.has('x.example.com')).toBe(false);
  });

  test.each<[string, unknown]>([
    ['a string', 'spec'],
    ['null', null],
    ['a list', []],
    ['rules that are no list', { ingressClassName: 'haptic', rules: {} }],
    [
      'rules with null',
      { ingressClassName: 'haptic', rules: [null, { http: null }, { http: { paths: [null] } }] },
    ],
    ['TLS with null', { ingressClassName: 'haptic', tls: [null, { hosts: null }] }],
  ])('a spec that is %s breaks nothing', (_name, spec) => {
    expectHealthy(route({ ...ingress('bad'), spec }));
  });

  test('an Ingress that asks for nothing is told that it has no effect', () => {
    const model = route(ingress('bad'));
    expect(model.problems).toMatchObject([
      { severity: 'warning', reason: 'NothingToServe', field: 'spec', object: { name: 'bad' } },
    ]);
  });

  test.each<[string, unknown]>([
    ['no endpoints', { endpoints: null }],
    ['endpoints with null', { endpoints: [null, {}, { addresses: null }, { addresses: [7] }] }],
    ['ports with null', { ports: [null, { port: '80' }] }],
    ['an address type of its own', { addressType: 'FQDN' }],
  ])('an EndpointSlice with %s breaks nothing', (_name, part) => {
    expectHealthy(route({ ...slice('web', { name: 'web-2' }), ...(part as object) }));
  });
});
