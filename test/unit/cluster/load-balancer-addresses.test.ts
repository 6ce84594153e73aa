import { describe, expect, test } from 'vitest';
import { assignAddresses, type Service } from '../../cluster/harness/load-balancer-addresses.ts';

const POOL = '10.97.0.';

function service(name: string, spec: Service['spec'] = {}, ...addresses: string[]): Service {
  const ingress = addresses.map((ip) => ({ ip }));
  return {
    metadata: { namespace: 'default', name },
    spec: { type: 'LoadBalancer', ...spec },
    status: { loadBalancer: { ingress } },
  };
}

function assigned(...services: Service[]): Record<string, string> {
  const found = assignAddresses(services, POOL).map(({ name, address }) => [name, address]);
  return Object.fromEntries(found) as Record<string, string>;
}

describe('assignAddresses', () => {
  test('gives each Service that waits a free address of the pool', () => {
    const taken = service('old', {}, '10.97.0.1');
    expect(assigned(service('a'), taken, service('b'))).toEqual({
      a: '10.97.0.2',
      b: '10.97.0.3',
    });
  });

  test('leaves other types, other classes and Services with an address alone', () => {
    expect(
      assigned(
        service('plain', { type: 'ClusterIP' }),
        service('foreign', { loadBalancerClass: 'example.com/other' }),
        service('old', {}, '10.97.0.9'),
      ),
    ).toEqual({});
  });

  test('grants a wish when the address is free, and keeps it for the one who wishes it', () => {
    const wishing = service('wishing', { loadBalancerIP: '10.97.0.1' });
    expect(assigned(service('first'), wishing)).toEqual({
      first: '10.97.0.2',
      wishing: '10.97.0.1',
    });
  });

  test.each(['192.0.2.1', '10.97.0.255', '10.97.0.0', 'nonsense', '10.97.0.7'])(
    'never grants %s, which is outside the pool or taken',
    (loadBalancerIP) => {
      const taken = service('old', {}, '10.97.0.7');
      expect(assigned(taken, service('wishing', { loadBalancerIP }))).toEqual({});
    },
  );

  test('gives nothing when the pool is empty', () => {
    const all = Array.from({ length: 255 }, (_, n) => service(`s${n}`));
    expect(Object.keys(assigned(...all))).toHaveLength(254);
  });
});
