import { isIPv4 } from 'node:net';
import { isAbsolute, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isDnsName } from '../src/mtls/credentials.ts';
import { LIMITS } from '../src/protocol/protocol.ts';
import { messageOf } from './failures.ts';
import { isCanonicalPath } from './files/paths.ts';

/** Settings of one agent; every path is absolute but `config`. */
export interface AgentOptions {
  readonly baseDir: string;
  /** Main configuration file, relative to the base directory. */
  readonly config: string;
  readonly masterSocket: string;
  readonly workerSocket: string;
  readonly stateFile: string;
  readonly listen: ListenAddress;
  readonly metricsListen: ListenAddress | undefined;
  readonly access: Access;
  /** Copied to the main file when there is none. */
  readonly bootstrap: string | undefined;
  /** Least distance of two reloads that the agent wants by itself, in milliseconds. */
  readonly reloadIntervalMs: number;
  /** Longest silence of a client in the middle of a body, in milliseconds. */
  readonly bodyIdleMs: number;
}

/**
 * How the controller proves itself: by a certificate for `clientName` that an authority in `dir` signed, or, on a loopback
 * address alone, by the token in a file.
 */
export type Access =
  | { readonly kind: 'mutual-tls'; readonly dir: string; readonly clientName: string }
  | { readonly kind: 'token'; readonly tokenFile: string };

export interface ListenAddress {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
}

/** What the command line asks for. */
export type CommandLine =
  | { readonly kind: 'run'; readonly options: AgentOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

export const HELP = `Usage: haptic-agent --base-dir DIR (--tls-dir DIR | --token-file FILE) [options]

Owns the files and sockets of one HAProxy and applies what the HAPTIC controller sends.

  --base-dir DIR            directory of the HAProxy configuration, without symbolic links below it
  --config FILE             main file, relative to the base directory (haproxy.cfg)
  --master-socket PATH      HAProxy's master socket, relative to the base directory (haproxy-master.sock)
  --worker-socket PATH      the worker's stats socket, relative to the base directory (haproxy-worker.sock)
  --listen HOST:PORT        where the controller reaches the agent (127.0.0.1:5555); port 0 = any free one
  --metrics-listen HOST:PORT  a second listener for /healthz, /readyz and /metrics only
  --tls-dir DIR             tls.crt, tls.key and ca.crt: TLS 1.3 with certificates on both sides; followed when replaced
  --client-name NAME        DNS name that the controller's certificate must carry (haptic-controller)
  --token-file FILE         bearer token of the controller instead of TLS; on a loopback address only
  --bootstrap FILE          copied to the main file at the start when there is none
  --state-file FILE         what survives a restart, relative to the base directory (.haptic-agent.json)
  --reload-interval-ms N    least distance of two reloads the agent decides on itself (5000)
  --body-idle-ms N          longest silence in the middle of a request body (10000)
  --help                    this text
`;

const SPEC = {
  'base-dir': { type: 'string' },
  config: { type: 'string', default: 'haproxy.cfg' },
  'master-socket': { type: 'string', default: 'haproxy-master.sock' },
  'worker-socket': { type: 'string', default: 'haproxy-worker.sock' },
  listen: { type: 'string', default: '127.0.0.1:5555' },
  'metrics-listen': { type: 'string' },
  'token-file': { type: 'string' },
  'tls-dir': { type: 'string' },
  'client-name': { type: 'string' },
  bootstrap: { type: 'string' },
  'state-file': { type: 'string', default: '.haptic-agent.json' },
  'reload-interval-ms': { type: 'string', default: '5000' },
  'body-idle-ms': { type: 'string', default: String(LIMITS.bodyIdleMs) },
  help: { type: 'boolean', default: false },
} as const;

/** Reads the command line; never throws. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  try {
    const { values } = parseArgs({ args: [...args], options: SPEC, allowPositionals: false });
    if (values.help) return { kind: 'help' };
    const baseDir = resolve(required(values['base-dir'], '--base-dir'));
    const below = (path: string): string => (isAbsolute(path) ? path : join(baseDir, path));
    if (!isCanonicalPath(values.config)) throw new Error('--config must be a relative path');
    const listen = address(values.listen, '--listen');
    return {
      kind: 'run',
      options: {
        baseDir,
        config: values.config,
        masterSocket: below(values['master-socket']),
        workerSocket: below(values['worker-socket']),
        stateFile: below(values['state-file']),
        listen,
        metricsListen:
          values['metrics-listen'] === undefined
            ? undefined
            : address(values['metrics-listen'], '--metrics-listen'),
        access: accessOf(values, listen),
        bootstrap: values.bootstrap === undefined ? undefined : resolve(values.bootstrap),
        reloadIntervalMs: milliseconds(values['reload-interval-ms'], '--reload-interval-ms'),
        bodyIdleMs: milliseconds(values['body-idle-ms'], '--body-idle-ms'),
      },
    };
  } catch (error: unknown) {
    return { kind: 'wrong', message: messageOf(error) };
  }
}

/** Exactly one of the two ways: whoever gives both may believe that both are needed, and they are not. */
function accessOf(
  values: { readonly [name in 'tls-dir' | 'client-name' | 'token-file']?: string | undefined },
  listen: ListenAddress,
): Access {
  const { 'tls-dir': dir, 'token-file': tokenFile, 'client-name': clientName } = values;
  if (dir !== undefined && tokenFile !== undefined) {
    throw new Error('--tls-dir and --token-file exclude each other: certificates need no token');
  }
  if (dir !== undefined) return mutualTls(required(dir, '--tls-dir'), clientName);
  if (tokenFile === undefined) throw new Error('--tls-dir or --token-file is needed');
  if (clientName !== undefined) throw new Error('--client-name needs --tls-dir');
  if (!isLoopback(listen.host)) {
    throw new Error(
      `--listen ${listen.host} can be reached from outside and needs --tls-dir; a token is for loopback addresses`,
    );
  }
  return { kind: 'token', tokenFile: required(tokenFile, '--token-file') };
}

function mutualTls(dir: string, clientName = 'haptic-controller'): Access {
  if (!isDnsName(clientName)) throw new Error(`--client-name "${clientName}" is no DNS name`);
  return { kind: 'mutual-tls', dir: resolve(dir), clientName };
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));

function required(value: string | undefined, name: string): string {
  if (value === undefined || value === '') throw new Error(`${name} is needed`);
  return value;
}

function address(text: string, name: string): ListenAddress {
  const at = text.lastIndexOf(':');
  const port = Number(text.slice(at + 1));
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, '$1');
  if (at < 0 || text.endsWith(':') || !Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error(`${name} must be HOST:PORT, not "${text}"`);
  }
  return { host: host === '' ? '::' : host, port };
}

function milliseconds(text: string, name: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isInteger(value) || value < 0) {
    throw new Error(`${name} must be a whole number, not "${text}"`);
  }
  return value;
}
