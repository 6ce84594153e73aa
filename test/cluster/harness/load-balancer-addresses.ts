/** The part of a Service that decides about its address. */
export interface Service {
  readonly metadata: { readonly namespace: string; readonly name: string };
  readonly spec: {
    readonly type?: string;
    readonly loadBalancerIP?: string;
    readonly loadBalancerClass?: string;
  };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] };
  };
}

/** An address for a Service. */
export interface Assignment {
  readonly namespace: string;
  readonly name: string;
  readonly address: string;
}

/**
 * Finds addresses for the Services that wait for one. A Service with a class of its own is somebody
 * else's; one that asks for an address outside the pool, or for one that is taken, gets none.
 *
 * @param services all that there are
 * @param prefix first three bytes of the pool, with the dot: `10.97.0.`
 */
export function assignAddresses(services: readonly Service[], prefix: string): Assignment[] {
  const taken = new Set(services.flatMap(addressesOf));
  const wished = new Set(services.map(({ spec }) => spec.loadBalancerIP ?? ''));
  const pool = Array.from({ length: 254 }, (_, n) => `${prefix}${n + 1}`);
  return services.filter(isWaiting).flatMap(({ metadata, spec }) => {
    const { loadBalancerIP: wish = '' } = spec;
    const candidates = wish === '' ? pool.filter((one) => !wished.has(one)) : [wish];
    const address = candidates.find((one) => pool.includes(one) && !taken.has(one));
    if (address === undefined) return [];
    taken.add(address);
    return [{ namespace: metadata.namespace, name: metadata.name, address }];
  });
}

function isWaiting(service: Service): boolean {
  const { type, loadBalancerClass } = service.spec;
  if (type !== 'LoadBalancer' || loadBalancerClass !== undefined) return false;
  return addressesOf(service).length === 0;
}

function addressesOf({ spec, status }: Service): string[] {
  if (spec.type !== 'LoadBalancer') return [];
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
}
