import { isAbsolute } from 'node:path';
import { CommandError, UsageError, type Call, type Option, type Values } from './command.ts';
import { LEVELS } from './logger.ts';

/** A host and a port to listen on. */
export interface Listen {
  readonly host: string;
  readonly port: number;
}

/** What `haptic run` was told, everything checked. */
export interface RunSettings {
  readonly config: string;
  readonly namespace: string;
  readonly identity: string;
  readonly workDir: string;
  readonly agentTls: { readonly dir: string; readonly serverName: string };
  readonly defaultCertificate: ObjectName | undefined;
  readonly publishService: string | undefined;
  readonly ingressClass: { readonly name: string; readonly controller: string };
  /** Empty = all namespaces. */
  readonly watchNamespaces: readonly string[];
  readonly listen: { readonly health: Listen; readonly metrics: Listen; readonly debug: Listen };
  readonly logLevel: string;
}

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export const RUN_OPTIONS: Readonly<Record<string, Option>> = {
  config: {
    type: 'string',
    value: 'NAME',
    default: 'haptic-config',
    help: 'the HAProxyTemplateConfig to use, in the own namespace',
  },
  namespace: {
    type: 'string',
    value: 'NS',
    help: 'the own namespace (default $POD_NAMESPACE)',
  },
  identity: {
    type: 'string',
    value: 'NAME',
    help: 'who this replica is, in the Lease and in Events (default $POD_NAME)',
  },
  haproxy: {
    type: 'string',
    value: 'PATH',
    help: 'the HAProxy that checks configurations (default $HAPROXY, else the one on PATH)',
  },
  'work-dir': {
    type: 'string',
    value: 'DIR',
    default: '/run/haptic',
    help: 'private directory, in memory, for files being checked',
  },
  'agent-tls-dir': {
    type: 'string',
    value: 'DIR',
    default: '/var/run/haptic/tls',
    help: 'tls.crt, tls.key and ca.crt for the calls to agents; read again when they change',
  },
  'agent-server-name': {
    type: 'string',
    value: 'NAME',
    default: 'haptic-agent',
    help: 'DNS name in the certificate of every agent',
  },
  'default-certificate': {
    type: 'string',
    value: 'NS/NAME',
    help: 'Secret of type kubernetes.io/tls served where no other certificate fits',
  },
  'publish-service': {
    type: 'string',
    value: 'NAME',
    help: 'Service of the HAProxy pods, in the own namespace; its addresses go into the status of Ingresses',
  },
  'ingress-class': { type: 'string', value: 'NAME', default: 'haptic', help: 'IngressClass' },
  'controller-name': {
    type: 'string',
    value: 'NAME',
    default: 'haproxy-haptic.org/controller',
    help: 'spec.controller of the IngressClasses that are served',
  },
  'watch-namespaces': {
    type: 'string',
    value: 'NS,NS',
    help: 'watch only these namespaces (default: all)',
  },
  'health-listen': {
    type: 'string',
    value: 'HOST:PORT',
    default: '0.0.0.0:8080',
    help: '/healthz and /readyz',
  },
  'metrics-listen': {
    type: 'string',
    value: 'HOST:PORT',
    default: '0.0.0.0:9090',
    help: '/metrics',
  },
  'debug-listen': {
    type: 'string',
    value: 'HOST:PORT',
    default: '127.0.0.1:8081',
    help: '/debug/vars; keep it on loopback',
  },
  'log-level': {
    type: 'string',
    value: 'LEVEL',
    default: 'info',
    help: 'debug, info, warn or error',
  },
};

/** Reads the flags of `haptic run`. Throws CommandError or UsageError that names the flag. */
export const runSettings = ({ values, terminal: { environment } }: Call): RunSettings => {
  const text = reader(values);
  const orFrom = (flag: string, variable: string): string => {
    const value = text(flag) ?? environment[variable];
    if (value !== undefined && value !== '') return value;
    throw new CommandError(`--${flag} is needed where ${variable} is not set`);
  };
  const logLevel = text('log-level') ?? 'info';
  if (!LEVELS.includes(logLevel)) throw new UsageError(`--log-level takes ${LEVELS.join(', ')}`);
  return {
    config: objectName('config', text('config')),
    namespace: objectName('namespace', orFrom('namespace', 'POD_NAMESPACE')),
    identity: orFrom('identity', 'POD_NAME'),
    workDir: absolute('work-dir', text('work-dir')),
    agentTls: {
      dir: absolute('agent-tls-dir', text('agent-tls-dir')),
      serverName: objectName('agent-server-name', text('agent-server-name')),
    },
    defaultCertificate: namespaced('default-certificate', text('default-certificate')),
    publishService: optional(text('publish-service'), (name) =>
      objectName('publish-service', name),
    ),
    ingressClass: {
      name: objectName('ingress-class', text('ingress-class')),
      controller: text('controller-name') ?? '',
    },
    watchNamespaces: (text('watch-namespaces') ?? '')
      .split(',')
      .filter((part) => part.trim() !== '')
      .map((part) => objectName('watch-namespaces', part.trim())),
    listen: {
      health: listenOf('health-listen', text('health-listen')),
      metrics: listenOf('metrics-listen', text('metrics-listen')),
      debug: listenOf('debug-listen', text('debug-listen')),
    },
    logLevel,
  };
};

const reader =
  (values: Values) =>
  (flag: string): string | undefined => {
    const value = values[flag];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };

const optional = <T>(value: string | undefined, read: (value: string) => T): T | undefined =>
  value === undefined ? undefined : read(value);

/** A name as Kubernetes takes it (RFC 1123 subdomain). */
const objectName = (flag: string, name: string | undefined): string => {
  if (name !== undefined && name.length <= 253 && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name)) {
    return name;
  }
  throw new CommandError(
    `--${flag} takes the name of a Kubernetes object, not ${JSON.stringify(name ?? '')}`,
  );
};

const namespaced = (flag: string, value: string | undefined): ObjectName | undefined => {
  if (value === undefined) return undefined;
  const [namespace, name, ...rest] = value.split('/');
  if (namespace === undefined || name === undefined || rest.length > 0) {
    throw new CommandError(`--${flag} takes NAMESPACE/NAME, not ${JSON.stringify(value)}`);
  }
  return { namespace: objectName(flag, namespace), name: objectName(flag, name) };
};

const absolute = (flag: string, path: string | undefined): string => {
  if (path !== undefined && isAbsolute(path)) return path;
  throw new CommandError(`--${flag} takes an absolute path, not ${JSON.stringify(path ?? '')}`);
};

const listenOf = (flag: string, text = ''): Listen => {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) {
    throw new CommandError(`--${flag} takes HOST:PORT, not ${JSON.stringify(text)}`);
  }
  return { host: bracketed ?? plain ?? '', port };
};
