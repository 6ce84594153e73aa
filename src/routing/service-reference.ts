import type { Report } from './complaint.ts';
import { shown } from './complaint.ts';
import { at } from './fields.ts';
import { isLabel, isPortName, isPortNumber } from './names.ts';

/** A port of a Service as an Ingress names it. */
export interface ServiceReference {
  readonly namespace: string;
  readonly service: string;
  /** Number of a port of the Service, or its name. */
  readonly port: number | string;
}

/** A backend that the libraries always write: it answers every request with 503. */
export const UNAVAILABLE_BACKEND = 'haptic-unavailable';

/**
 * Name of the backend for a port of a Service: `namespace_service_port`. Injective, because none of the three may hold
 * an underscore, and a port's name has a letter where a number has none.
 */
export const backendName = (reference: ServiceReference): string =>
  `${reference.namespace}_${reference.service}_${reference.port}`;

/** Where a backend of an Ingress stands. */
export interface BackendPlace {
  readonly namespace: string;
  /** For example `spec.rules[0].http.paths[1].backend`. */
  readonly field: string;
  readonly report: Report;
}

const readPort = (port: unknown): number | string | undefined => {
  const [name, number] = [at(port, 'name'), at(port, 'number')];
  const named = name !== undefined && name !== '';
  if (named === (number !== undefined && number !== 0)) return undefined;
  if (named) return typeof name === 'string' && isPortName(name) ? name : undefined;
  return isPortNumber(number) ? number : undefined;
};

/**
 * The Service port that an `IngressBackend` refers to.
 *
 * @returns undefined when it refers to none that can exist; then it was reported, and the route answers 503
 */
export const readBackend = (
  backend: unknown,
  { namespace, field, report }: BackendPlace,
): ServiceReference | undefined => {
  if (at(backend, 'resource') !== undefined) {
    report({
      reason: 'ResourceBackendUnsupported',
      field: `${field}.resource`,
      message: 'Backends that are not Services are not supported; this route answers 503.',
      nextStep: 'Refer to a Service with backend.service.name and backend.service.port.',
    });
    return undefined;
  }
  const service = at(backend, 'service', 'name');
  if (typeof service !== 'string' || !isLabel(service)) {
    report({
      reason: 'InvalidServiceName',
      field: `${field}.service.name`,
      message: `${service === undefined ? 'No Service is named' : `No Service can be called ${shown(service)}`}; this route answers 503.`,
      nextStep: 'Name a Service of the same namespace.',
    });
    return undefined;
  }
  const port = readPort(at(backend, 'service', 'port'));
  if (port === undefined) {
    report({
      reason: 'InvalidServicePort',
      field: `${field}.service.port`,
      message: 'The port is neither a name nor a number of a port; this route answers 503.',
      nextStep: 'Set either port.number (1 to 65535) or port.name to a port of the Service.',
    });
    return undefined;
  }
  return { namespace, service, port };
};
