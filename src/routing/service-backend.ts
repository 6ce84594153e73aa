import type { Server } from '../plan/plan.ts';
import { objectRef, type KubeObject, type ObjectRef } from '../snapshot/objects.ts';
import type { Store } from '../snapshot/snapshot.ts';
import { shown, type Complaint } from './complaint.ts';
import { readEndpoints } from './endpoints.ts';
import { at, listAt, textAt } from './fields.ts';
import type { IpFamily } from './ip-address.ts';
import type { BackendModel } from './model.ts';
import { backendName, type ServiceReference } from './service-reference.ts';

/** A backend, and what is wrong with it; `field` counts from the backend of whoever refers to it. */
export interface ServiceBackend {
  readonly model: BackendModel;
  readonly complaints: readonly Complaint[];
}

/** Where a backend is looked up. */
export interface BackendSources {
  readonly services: Store;
  /** Indexed by namespace and name of the Service. */
  readonly endpointSlices: Store;
  readonly allowLocal: boolean;
}

const portOf = (service: KubeObject, port: number | string): unknown =>
  listAt(service, 'spec', 'ports').find(
    (entry) => at(entry, typeof port === 'number' ? 'port' : 'name') === port,
  );

const familyOf = (service: KubeObject): IpFamily | undefined => {
  const [first] = listAt(service, 'spec', 'ipFamilies');
  return first === 'IPv4' || first === 'IPv6' ? first : undefined;
};

/** Why the port of a Service cannot be routed to. */
const faultOf = (
  service: KubeObject | undefined,
  reference: ServiceReference,
): Complaint | undefined => {
  const { namespace, service: name, port } = reference;
  const called = `Service ${namespace}/${name}`;
  if (service === undefined) {
    return {
      reason: 'ServiceNotFound',
      field: 'service.name',
      message: `${called} does not exist; its routes answer 503.`,
      nextStep: `Create the Service in namespace ${namespace}, or correct its name.`,
    };
  }
  if (textAt(service, 'spec', 'type') === 'ExternalName') {
    return {
      reason: 'ExternalNameUnsupported',
      field: 'service.name',
      message: `${called} is of type ExternalName, which is not supported; its routes answer 503.`,
      nextStep: 'Use a Service without selector and an EndpointSlice with the addresses.',
    };
  }
  const entry = portOf(service, port);
  if (entry !== undefined && (at(entry, 'protocol') ?? 'TCP') === 'TCP') return undefined;
  const what = typeof port === 'number' ? `port ${port}` : `port named ${port}`;
  return {
    reason: 'ServicePortNotFound',
    field: 'service.port',
    message: `${called} has no TCP ${what}; its routes answer 503.`,
    nextStep: 'Refer to one of the ports in spec.ports of the Service, by its number or its name.',
  };
};

const missing = ({ namespace, service }: ServiceReference): ObjectRef => ({
  apiVersion: 'v1',
  kind: 'Service',
  namespace,
  name: service,
  uid: '',
});

const readServers = (
  service: KubeObject,
  reference: ServiceReference,
  sources: BackendSources,
): { servers: readonly Server[]; complaints: Complaint[] } => {
  const slices = sources.endpointSlices.fetch(reference.namespace, reference.service);
  const portName = textAt(portOf(service, reference.port), 'name') ?? '';
  const { servers, portFound, refused } = readEndpoints(slices, {
    portName,
    family: familyOf(service),
    allowLocal: sources.allowLocal,
  });
  const called = `Service ${reference.namespace}/${reference.service}`;
  const complaints: Complaint[] = [];
  if (slices.length > 0 && !portFound) {
    complaints.push({
      severity: 'warning',
      reason: 'EndpointPortNotFound',
      field: 'service.port',
      message: `No EndpointSlice of ${called} has a port ${portName === '' ? 'without name' : `named ${shown(portName)}`}; its routes answer 503.`,
      nextStep: 'Name the ports in the EndpointSlices as the ports of the Service are named.',
    });
  }
  if (refused.length > 0) {
    const list = refused.slice(0, 3).map(shown).join(', ');
    complaints.push({
      severity: 'warning',
      reason: 'EndpointAddressRefused',
      field: 'service.name',
      message: `${refused.length} endpoint(s) of ${called} are left out, as no pod can have their address: ${list}.`,
      nextStep: 'Correct the addresses in the EndpointSlices of the Service.',
    });
  }
  return { servers, complaints };
};

/**
 * The backend for one port of a Service. Whatever is missing, there is a backend: without servers it answers 503, and
 * the route to it stays.
 */
export const serviceBackend = (
  reference: ServiceReference,
  sources: BackendSources,
): ServiceBackend => {
  const name = backendName(reference);
  const service = sources.services.get(reference.namespace, reference.service);
  const fault = faultOf(service, reference);
  if (service === undefined || fault !== undefined) {
    const object = service === undefined ? missing(reference) : objectRef(service);
    const model: BackendModel = { name, mode: 'http', object, servers: [] };
    return { model, complaints: fault === undefined ? [] : [fault] };
  }
  const { servers, complaints } = readServers(service, reference, sources);
  return { model: { name, mode: 'http', object: objectRef(service), servers }, complaints };
};
