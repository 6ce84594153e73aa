import { describe, expect, test } from 'vitest';
import type { BackendModel } from '../../../src/routing/model.ts';
import { createRouting, type RoutingSettings } from '../../../src/routing/routing.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { isLocal, readAddress } from '../../../src/routing/ip-address.ts';
import {
  ingress,
  ingressClass,
  podEndpoint,
  service,
  slice,
  snapshotOf,
} from '../../support/objects.ts';

const settings: RoutingSettings = {
  ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
  standalone: true,
  inspectKeyPair: () => ({ ok: true, names: [], notAfter: '2030-01-01T00:00:00Z' }),
};

const toWeb = (port = '80'): KubeObject =>
  ingress('web', { rules: [['a.example.com', '/', `web:${port}`]] });

const backend = (
  objects: readonly KubeObject[],
  own: Partial<RoutingSettings> = {},
): { model: BackendModel | undefined; servers: string[]; reasons: string[] } => {
  const model = createRouting({ ...settings, ...own }).route(snapshotOf(objects));
  const [record] = [...model.backends.values()];
  return {
    model: record,
    servers: (record?.servers ?? []).map(({ name, address, port }) => `${name}=${address}:${port}`),
    reasons: model.problems.map(({ reason }) => reason),
  };
};

describe('endpoints', () => {
  test('become servers named after their pods, sorted by name (R22)', () => {
    const { model, servers } = backend([
      toWeb(),
      service('web'),
      slice('web', {
        endpoints: [podEndpoint('web-b', '10.0.0.2'), podEndpoint('web-a', '10.0.0.1')],
      }),
    ]);
    expect(servers).toStrictEqual(['web-a=10.0.0.1:8080', 'web-b=10.0.0.2:8080']);
    expect(model).toMatchObject({
      name: 'default_web_80',
      mode: 'http',
      object: { kind: 'Service', namespace: 'default', name: 'web' },
    });
    expect(model?.servers[0]).toMatchObject({ weight: 100, state: 'ready', keywords: [] });
  });

  test.each<[string, Record<string, boolean>, boolean]>([
    ['without conditions', {}, true],
    ['ready', { ready: true }, true],
    ['not ready', { ready: false }, false],
    [
      'not ready, serving and ending, beside a ready one',
      { ready: false, serving: true, terminating: true },
      false,
    ],
  ])('that are %s are %s', (_name, conditions, served) => {
    const { servers } = backend([
      toWeb(),
      service('web'),
      slice('web', {
        endpoints: [podEndpoint('other', '10.0.0.9'), podEndpoint('web-a', '10.0.0.1', conditions)],
      }),
    ]);
    expect(servers.some((server) => server.startsWith('web-a='))).toBe(served);
  });

  test('that end but still serve are the last resort', () => {
    const ending = { ready: false, serving: true, terminating: true };
    const gone = { ready: false, serving: false, terminating: true };
    const { servers } = backend([
      toWeb(),
      service('web'),
      slice('web', {
        endpoints: [
          podEndpoint('ending', '10.0.0.1', ending),
          podEndpoint('gone', '10.0.0.2', gone),
          podEndpoint('starting', '10.0.0.3', { ready: false }),
        ],
      }),
    ]);
    expect(servers).toStrictEqual(['ending=10.0.0.1:8080']);
  });

  test('of several slices are merged, and an address counts once', () => {
    const { servers } = backend([
      toWeb(),
      service('web'),
      slice('web', { endpoints: [podEndpoint('a', '10.0.0.1'), podEndpoint('b', '10.0.0.2')] }),
      slice('web', {
        name: 'web-2',
        endpoints: [
          podEndpoint('b', '10.0.0.2'),
          podEndpoint('a', '10.0.0.1', { ready: false }),
          podEndpoint('c', '10.0.0.3'),
        ],
      }),
    ]);
    expect(servers).toStrictEqual(['a=10.0.0.1:8080', 'b=10.0.0.2:8080', 'c=10.0.0.3:8080']);
  });

  test('of other Services and other namespaces do not count', () => {
    const { servers } = backend([
      toWeb(),
      service('web'),
      slice('web-2'),
      slice('web', { namespace: 'other' }),
    ]);
    expect(servers).toStrictEqual([]);
  });

  test('without a pod, with an unfit name or with a name taken are named after their address', () => {
    const { servers } = backend([
      toWeb(),
      service('web'),
      slice('web', {
        endpoints: [
          '10.0.0.4',
          podEndpoint('x'.repeat(130), '10.0.0.5'),
          podEndpoint('bad name\n', '10.0.0.6'),
          podEndpoint('same', '10.0.0.7'),
          podEndpoint('same', '10.0.0.8'),
        ],
      }),
    ]);
    expect(servers).toStrictEqual([
      'ep-10-0-0-4-8080=10.0.0.4:8080',
      'ep-10-0-0-5-8080=10.0.0.5:8080',
      'ep-10-0-0-6-8080=10.0.0.6:8080',
      'ep-10-0-0-8-8080=10.0.0.8:8080',
      'same=10.0.0.7:8080',
    ]);
  });

  test('names are unique even where a pod is called like an address', () => {
    const { model } = backend([
      toWeb(),
      service('web'),
      slice('web', { endpoints: ['10.0.0.4', podEndpoint('ep-10-0-0-4-8080', '10.0.0.5')] }),
    ]);
    expect(new Set(model?.servers.map(({ name }) => name)).size).toBe(2);
  });
});

describe('ports', () => {
  const slices = slice('web', { ports: { http: 8080, admin: 9090 } });
  const web = service('web', { ports: ['http:80', 'admin:81'] });

  test.each([
    ['80', 8080],
    ['http', 8080],
    ['81', 9090],
    ['admin', 9090],
  ])('%s of the Service leads to port %i of the endpoints, by the name of the port', (port, to) => {
    expect(backend([toWeb(port), web, slices]).servers).toStrictEqual([
      `ep-10-0-0-1-${to}=10.0.0.1:${to}`,
    ]);
  });

  test('may differ from slice to slice', () => {
    const { servers } = backend([
      toWeb('http'),
      web,
      slices,
      slice('web', { name: 'web-2', ports: { http: 8081 }, endpoints: ['10.0.0.2'] }),
    ]);
    expect(servers).toStrictEqual([
      'ep-10-0-0-1-8080=10.0.0.1:8080',
      'ep-10-0-0-2-8081=10.0.0.2:8081',
    ]);
  });

  test('by name and by number are backends of their own with distinct names', () => {
    const model = createRouting(settings).route(
      snapshotOf([
        ingress('web', {
          rules: [
            ['a.org', '/', 'web:80'],
            ['b.org', '/', 'web:http'],
          ],
        }),
        web,
        slices,
      ]),
    );
    expect(model.backends.keys()).toStrictEqual(['default_web_80', 'default_web_http']);
  });

  test('that no slice has are reported, and the route answers 503', () => {
    const { servers, reasons } = backend([
      toWeb(),
      service('web'),
      slice('web', { ports: { h: 1 } }),
    ]);
    expect(servers).toStrictEqual([]);
    expect(reasons).toStrictEqual(['EndpointPortNotFound']);
  });
});

describe('IP families', () => {
  const six = slice('web', { name: 'web-6', addressType: 'IPv6', endpoints: ['FD00:0::1'] });
  const four = slice('web');

  test.each<[string, KubeObject[], readonly string[] | undefined, string[]]>([
    [
      'the first family of the Service',
      [four, six],
      ['IPv6', 'IPv4'],
      ['ep-fd00--1-8080=fd00::1:8080'],
    ],
    [
      'IPv4 where the Service names none',
      [four, six],
      undefined,
      ['ep-10-0-0-1-8080=10.0.0.1:8080'],
    ],
    ['IPv6 where there is nothing else', [six], undefined, ['ep-fd00--1-8080=fd00::1:8080']],
  ])('%s', (_name, ...[slices, ipFamilies, expected]) => {
    const spec = ipFamilies === undefined ? {} : { ipFamilies };
    expect(backend([toWeb(), service('web', { spec }), ...slices]).servers).toStrictEqual(expected);
  });
});

describe('addresses', () => {
  test.each<[string, 'IPv4' | 'IPv6', string | undefined]>([
    ['10.0.0.1', 'IPv4', '10.0.0.1'],
    ['10.0.0.01', 'IPv4', undefined],
    ['10.0.0.256', 'IPv4', undefined],
    ['10.0.0.1\n', 'IPv4', undefined],
    ['unix@/tmp/x', 'IPv4', undefined],
    ['fd00::1', 'IPv4', undefined],
    ['FD00:0:0:0:0:0:0:1', 'IPv6', 'fd00::1'],
    ['::', 'IPv6', '::'],
    ['::1', 'IPv6', '::1'],
    ['1::', 'IPv6', '1::'],
    ['1:0:0:2:0:0:0:3', 'IPv6', '1:0:0:2::3'],
    ['1:2:3:4:5:6:7:8', 'IPv6', '1:2:3:4:5:6:7:8'],
    ['1:2:3:4:5:6:7', 'IPv6', undefined],
    ['1:2:3:4:5:6:7::8', 'IPv6', undefined],
    ['1::2::3', 'IPv6', undefined],
    [':1', 'IPv6', undefined],
    ['fe80::1%eth0', 'IPv6', undefined],
    ['::ffff:10.0.0.1', 'IPv6', undefined],
  ])('%s as %s is %s', (text, family, expected) => {
    expect(readAddress(text, family)).toBe(expected);
  });

  test.each([
    '127.0.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '224.0.0.1',
    '::1',
    '::',
    'fe80::1',
    'ff02::1',
    '::ffff:a00:1',
  ])('%s is refused in a cluster, and told', (address) => {
    expect(isLocal(address)).toBe(true);
    const addressType = address.includes(':') ? 'IPv6' : 'IPv4';
    const { servers, reasons } = backend(
      [
        toWeb(),
        ingressClass('haptic'),
        service('web'),
        slice('web', { addressType, endpoints: [address] }),
      ],
      { standalone: false },
    );
    expect(servers).toStrictEqual([]);
    expect(reasons).toStrictEqual(['EndpointAddressRefused']);
  });

  test('of this machine are allowed in standalone', () => {
    const { servers } = backend([
      toWeb(),
      service('web'),
      slice('web', { endpoints: ['127.0.0.1'] }),
    ]);
    expect(servers).toStrictEqual(['ep-127-0-0-1-8080=127.0.0.1:8080']);
  });
});
