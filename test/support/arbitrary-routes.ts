/** Random Ingresses over few hosts, paths and Services, so that they meet and fight. */
import fc from 'fast-check';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import { ingress, podEndpoint, service, slice } from './objects.ts';

export const HOSTS = ['', 'a.example.com', 'b.example.com', '*.example.com', '*.org', 'shop.org'];
export const PATHS = ['/', '/foo', '/foo/', '/foo/bar', '/foobar', '/a.b', '/%41', '/x/y/z'];
const NAMESPACES = ['default', 'team-a'];
const SERVICES = ['web', 'shop', 'empty', 'absent'];
const CREATED = [undefined, '2024-01-01T00:00:00Z', '2025-01-01T00:00:00Z'];

/** Requests that tell any two of the rules apart. */
export const REQUESTED_HOSTS = [
  'a.example.com',
  'A.Example.COM',
  'b.example.com:8080',
  'c.example.com',
  'x.y.example.com',
  'example.com',
  'shop.org',
  'other.org',
  'unknown.net',
  'localhost',
];
export const REQUESTED_PATHS = [
  ...PATHS,
  '/foo/x',
  '/fooba',
  '/foobarx',
  '/foo/bar/',
  '/foo/barx',
  '/FOO',
  '/a.b/c',
  '/aXb',
  '/A',
  '/x/y',
  '/x/y/z/',
  '/x/y/z/w',
  '//foo',
];

const ruleWords = fc.tuple(
  fc.constantFrom(...HOSTS),
  fc.constantFrom(...PATHS),
  fc.constantFrom(...SERVICES).map((name) => `${name}:80`),
  fc.constantFrom('Exact', 'Prefix', 'ImplementationSpecific'),
);

const tlsWords = fc.array(
  fc.oneof(
    fc.tuple(
      fc.constantFrom('', 'cert', 'absent'),
      fc.constantFrom('a.example.com', '*.example.com', 'shop.org'),
    ),
    fc.tuple(fc.constantFrom('', 'cert')),
  ),
  { maxLength: 1 },
);

/** One Ingress of class `haptic` under one of a few names. */
export const arbitraryIngress: fc.Arbitrary<KubeObject> = fc
  .record({
    name: fc.constantFrom('one', 'two', 'three'),
    namespace: fc.constantFrom(...NAMESPACES),
    created: fc.constantFrom(...CREATED),
    rules: fc.array(ruleWords, { maxLength: 4 }),
    defaultBackend: fc.option(fc.constantFrom('web:80', 'shop:80'), { nil: undefined }),
    tls: tlsWords,
  })
  .map(({ name, created, defaultBackend, ...words }) =>
    ingress(name, {
      namespace: words.namespace,
      rules: words.rules,
      tls: words.tls,
      ...(created === undefined ? {} : { created }),
      ...(defaultBackend === undefined ? {} : { defaultBackend }),
    }),
  );

/** Ingresses of distinct names. */
export const arbitraryIngresses: fc.Arbitrary<KubeObject[]> = fc.uniqueArray(arbitraryIngress, {
  maxLength: 5,
  selector: ({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`,
});

const arbitraryEndpoint = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.boolean(), fc.boolean())
  .map(([number, ready, terminating]) =>
    podEndpoint(`pod-${number}`, `10.0.0.${number}`, { ready, terminating, serving: true }),
  );

/** A Service, or one of its EndpointSlices. */
export const arbitraryEndpoints: fc.Arbitrary<KubeObject> = fc
  .record({
    namespace: fc.constantFrom(...NAMESPACES),
    of: fc.constantFrom('web', 'shop', 'empty'),
    name: fc.constantFrom('1', '2'),
    kind: fc.constantFrom('Service', 'EndpointSlice'),
    port: fc.constantFrom('80', '81', 'http:80'),
    endpoints: fc.array(arbitraryEndpoint, { maxLength: 3 }),
  })
  .map(({ namespace, of, name, kind, port, endpoints }) =>
    kind === 'Service'
      ? service(of, { namespace, ports: [port] })
      : slice(of, { namespace, name: `${of}-${name}`, endpoints }),
  );
