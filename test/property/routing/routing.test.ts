import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import type { RouteModel } from '../../../src/routing/model.ts';
import { createRouting, type RoutingSettings } from '../../../src/routing/routing.ts';
import { UNAVAILABLE_BACKEND } from '../../../src/routing/service-reference.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import {
  arbitraryEndpoints,
  arbitraryIngress,
  arbitraryIngresses,
  REQUESTED_HOSTS,
  REQUESTED_PATHS,
} from '../../support/arbitrary-routes.ts';
import { changed, ingress, ingressClass, snapshotOf, tlsSecret } from '../../support/objects.ts';
import { oracle, type OracleAnswer } from '../../support/oracle.ts';
import { lookUp, type Looked } from '../../support/route-lookup.ts';

const settings: RoutingSettings = {
  ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
  standalone: true,
  inspectKeyPair: () => ({
    ok: true,
    names: ['shop.org', 'a.example.com'],
    notAfter: '2030-01-01T00:00:00Z',
  }),
};

const plain = (model: RouteModel): unknown => ({
  hosts: [...model.hosts.entries()],
  backends: [...model.backends.entries()],
  certificates: [...model.certificates.entries()],
  problems: model.problems,
});

const asOracle = (looked: Looked): OracleAnswer => {
  if (looked.kind !== 'backend') return looked;
  const [namespace = '', name = '', port = ''] = looked.backend.split('_');
  return { kind: 'service', service: `${namespace}/${name}:${port}` };
};

const pem = (what: string): string => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;
const secret = tlsSecret('cert', { 'tls.crt': pem('CERTIFICATE'), 'tls.key': pem('PRIVATE KEY') });

const anyObject: fc.Arbitrary<KubeObject> = fc.oneof(
  { weight: 3, arbitrary: arbitraryIngress },
  { weight: 3, arbitrary: arbitraryEndpoints },
  {
    weight: 1,
    arbitrary: fc.constantFrom(secret, ingressClass('haptic'), ingressClass('haptic', 'x.org/y')),
  },
);

describe('routing', () => {
  test('P10: every host and path gets what the brute-force oracle says (R20)', () => {
    fc.assert(
      fc.property(arbitraryIngresses, (ingresses) => {
        const model = createRouting(settings).route(snapshotOf(ingresses));
        for (const host of REQUESTED_HOSTS) {
          for (const path of REQUESTED_PATHS) {
            for (const scheme of ['http', 'https'] as const) {
              const request = { scheme, host, path };
              const answer = asOracle(lookUp(model, request));
              expect({ request, answer }).toStrictEqual({
                request,
                answer: oracle(ingresses, request),
              });
            }
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('P6: incremental equals from scratch, for any order of events, also when versions are missed (R2)', () => {
    const step = fc.record({ object: anyObject, deleted: fc.boolean(), routed: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const routing = createRouting(settings);
        let snapshot = snapshotOf([]);
        for (const { object, deleted, routed } of steps) {
          snapshot = deleted ? changed(snapshot, [], [object]) : changed(snapshot, [object]);
          if (routed) routing.route(snapshot);
        }
        const incremental = plain(routing.route(snapshot));
        expect(incremental).toStrictEqual(plain(createRouting(settings).route(snapshot)));
      }),
      { numRuns: 300 },
    );
  });

  test('P6: the order of objects does not matter (R1)', () => {
    fc.assert(
      fc.property(fc.array(anyObject, { maxLength: 15 }), fc.integer(), (objects, seed) => {
        const last = new Map(
          objects.map((object) => [
            `${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`,
            object,
          ]),
        );
        const shuffled = fc.sample(
          fc.shuffledSubarray([...last.values()], { minLength: last.size }),
          {
            numRuns: 1,
            seed,
          },
        )[0];
        const start = snapshotOf([]);
        const one = createRouting(settings).route(snapshotOf([...last.values()]));
        const other = createRouting(settings).route(
          (shuffled ?? []).reduce((snapshot, object) => changed(snapshot, [object]), start),
        );
        expect(plain(other)).toStrictEqual(plain(one));
      }),
      { numRuns: 100 },
    );
  });

  test('every route names a backend that exists', () => {
    fc.assert(
      fc.property(fc.array(anyObject, { maxLength: 12 }), (objects) => {
        const { hosts, backends } = createRouting(settings).route(snapshotOf(unique(objects)));
        for (const { exact, prefix, defaultBackend } of hosts.values()) {
          const named = [...exact, ...prefix].map((route) => route.backend);
          for (const name of [...named, defaultBackend ?? UNAVAILABLE_BACKEND]) {
            expect(backends.has(name) || name === UNAVAILABLE_BACKEND).toBe(true);
          }
        }
      }),
    );
  });

  test('records that come out equal keep their identity', () => {
    fc.assert(
      fc.property(fc.array(anyObject, { maxLength: 12 }), anyObject, (objects, next) => {
        const routing = createRouting(settings);
        const before = snapshotOf(unique(objects));
        const first = routing.route(before);
        const second = routing.route(changed(before, [next]));
        for (const part of ['hosts', 'backends', 'certificates'] as const) {
          const [old, now] = [
            first[part] as PersistentMap<unknown>,
            second[part] as PersistentMap<unknown>,
          ];
          for (const difference of now.differences(old)) {
            expect(difference.after).not.toStrictEqual(difference.before);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  test('server names are unique in their backend and fit for HAProxy (R22)', () => {
    fc.assert(
      fc.property(fc.array(anyObject, { maxLength: 12 }), (objects) => {
        const { backends } = createRouting(settings).route(snapshotOf(unique(objects)));
        for (const { servers } of backends.values()) {
          const names = servers.map(({ name }) => name);
          expect(new Set(names).size).toBe(names.length);
          for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_.:-]{1,127}$/);
          expect(new Set(servers.map(({ address, port }) => `${address} ${port}`)).size).toBe(
            names.length,
          );
        }
      }),
    );
  });

  test('P6: steps that are abandoned anywhere lead the next ones to the same routes', () => {
    const many = snapshotOf(
      Array.from({ length: 300 }, (_, index) => {
        const name = `app-${String(index)}`;
        return ingress(name, { rules: [[`${name}.org`, '/', `${name}:80`]] });
      }),
    );
    const step = fc.record({ object: anyObject, taken: fc.nat(8) });
    fc.assert(
      fc.property(fc.nat(8), fc.array(step, { maxLength: 4 }), (first, steps) => {
        const routing = createRouting(settings);
        take(routing.steps(many), first);
        let snapshot = many;
        for (const { object, taken } of steps) {
          snapshot = changed(snapshot, [object]);
          take(routing.steps(snapshot), taken);
        }
        const scratch = createRouting(settings).route(snapshot);
        expect(plain(routing.route(snapshot))).toStrictEqual(plain(scratch));
      }),
      { numRuns: 30 },
    );
  });
});

const unique = (objects: readonly KubeObject[]): readonly KubeObject[] => [
  ...new Map(
    objects.map((object) => [
      `${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`,
      object,
    ]),
  ).values(),
];

const take = (steps: Iterator<unknown>, count: number): void => {
  for (let taken = 0; taken < count && steps.next().done !== true; taken += 1);
};
