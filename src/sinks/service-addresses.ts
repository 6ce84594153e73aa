import { isIP } from 'node:net';
import { byCodeUnits } from '../cells/persistent-map.ts';
import { at, listAt, textAt } from '../routing/fields.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { Members } from './write-objects.ts';

/** More addresses than a Service has anywhere; they are copied into every Ingress. */
const MAX_ADDRESSES = 32;

/**
 * Entries for `status.loadBalancer.ingress` of what a Service makes reachable, sorted, without repetition:
 *
 * - `LoadBalancer`: what its own status holds, with ports, and its external IPs;
 * - `NodePort`: its external IPs, else its cluster IPs;
 * - `ClusterIP`: its cluster IPs, and its external IPs;
 * - `ExternalName`: that name.
 */
export const serviceAddresses = (service: KubeObject): readonly Members[] => {
  const external = listAt(service, 'spec', 'externalIPs').flatMap(ipEntry);
  const entries = { external, service };
  return distinct(entriesOf(textAt(service, 'spec', 'type') ?? 'ClusterIP', entries));
};

const entriesOf = (
  type: string,
  { external, service }: { readonly external: readonly Members[]; readonly service: KubeObject },
): readonly Members[] => {
  switch (type) {
    case 'LoadBalancer':
      return [
        ...listAt(service, 'status', 'loadBalancer', 'ingress').flatMap(balancerEntry),
        ...external,
      ];
    case 'NodePort':
      return external.length > 0 ? external : clusterEntries(service);
    case 'ExternalName':
      return hostEntry(textAt(service, 'spec', 'externalName'));
    default:
      return [...clusterEntries(service), ...external];
  }
};

const clusterEntries = (service: KubeObject): readonly Members[] => {
  const all = listAt(service, 'spec', 'clusterIPs');
  return (all.length > 0 ? all : [at(service, 'spec', 'clusterIP')]).flatMap(ipEntry);
};

/** A headless Service has the cluster IP `None`. */
const ipEntry = (value: unknown): readonly Members[] =>
  typeof value === 'string' && isIP(value) !== 0 ? [{ ip: value }] : [];

const hostEntry = (value: unknown): readonly Members[] =>
  typeof value === 'string' && /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/i.test(value)
    ? [{ hostname: value }]
    : [];

const balancerEntry = (value: unknown): readonly Members[] => {
  const ports = listAt(value, 'ports').flatMap(portEntry);
  return [...ipEntry(at(value, 'ip')), ...hostEntry(at(value, 'hostname'))].map((entry) =>
    ports.length === 0 ? entry : { ...entry, ports },
  );
};

const portEntry = (value: unknown): readonly Members[] => {
  const port = at(value, 'port');
  const error = textAt(value, 'error');
  if (typeof port !== 'number') return [];
  const protocol = textAt(value, 'protocol') ?? 'TCP';
  return [{ port, protocol, ...(error === undefined ? {} : { error }) }];
};

const distinct = (entries: readonly Members[]): readonly Members[] => {
  const byText = new Map(entries.map((entry) => [JSON.stringify(entry), entry]));
  return [...byText]
    .sort(([left], [right]) => byCodeUnits(left, right))
    .slice(0, MAX_ADDRESSES)
    .map(([, entry]) => entry);
};
