import { describe, expect, it } from 'vitest';
import { serviceAddresses } from '../../../src/sinks/service-addresses.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { service } from '../../support/objects.ts';

const serviceOf = (
  spec: Readonly<Record<string, unknown>>,
  ingress?: readonly unknown[],
): KubeObject => ({
  ...service('haproxy', { spec }),
  ...(ingress === undefined ? {} : { status: { loadBalancer: { ingress } } }),
});

describe('addresses of a Service', () => {
  const cluster = { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00::1'] };

  it.each<[string, KubeObject, readonly unknown[]]>([
    [
      'a load balancer has what its status says, with ports, and its external IPs',
      serviceOf({ type: 'LoadBalancer', externalIPs: ['198.51.100.7'], ...cluster }, [
        { ip: '192.0.2.1', ipMode: 'VIP', ports: [{ port: 80, protocol: 'TCP' }] },
        { hostname: 'lb.example.com' },
      ]),
      [
        { hostname: 'lb.example.com' },
        { ip: '192.0.2.1', ports: [{ port: 80, protocol: 'TCP' }] },
        { ip: '198.51.100.7' },
      ],
    ],
    [
      'a load balancer without address has none',
      serviceOf({ type: 'LoadBalancer', ...cluster }),
      [],
    ],
    [
      'a node port has its external IPs',
      serviceOf({ type: 'NodePort', externalIPs: ['198.51.100.7'], ...cluster }),
      [{ ip: '198.51.100.7' }],
    ],
    [
      'a node port without them has its cluster IPs',
      serviceOf({ type: 'NodePort', ...cluster }),
      [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
    ],
    [
      'a cluster IP, also from before there were two',
      serviceOf({ clusterIP: '10.0.0.1' }),
      [{ ip: '10.0.0.1' }],
    ],
    ['a headless Service has none', serviceOf({ clusterIP: 'None', clusterIPs: ['None'] }), []],
    [
      'an external name',
      serviceOf({ type: 'ExternalName', externalName: 'lb.example.com' }),
      [{ hostname: 'lb.example.com' }],
    ],
  ])('S51: %s', (_, object, expected) => {
    expect(serviceAddresses(object)).toStrictEqual(expected);
  });

  it('S51: what is no address is left out, order and repetition do not matter, and there is a bound', () => {
    const odd = [
      { ip: '192.0.2.1' },
      { ip: '192.0.2.1' },
      { ip: 'x' },
      { hostname: '-a b' },
      7,
      null,
    ];
    const type = 'LoadBalancer';
    expect(serviceAddresses(serviceOf({ type }, odd))).toStrictEqual([{ ip: '192.0.2.1' }]);
    expect(serviceAddresses(serviceOf({ type }, odd.toReversed()))).toStrictEqual([
      { ip: '192.0.2.1' },
    ]);
    const many = Array.from({ length: 500 }, (__, index) => ({ hostname: `h${String(index)}` }));
    expect(serviceAddresses(serviceOf({ type }, many))).toHaveLength(32);
  });
});
