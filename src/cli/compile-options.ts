import { CommandError, type Option, type Terminal, type Values } from './command.ts';
import type { CompileOptions } from './compile.ts';
import { findHaproxy } from './haproxy-binary.ts';
import { portOf } from './ports.ts';

/** Options of the commands that render once. */
export const COMPILE_OPTIONS: Readonly<Record<string, Option>> = {
  'base-dir': {
    type: 'string',
    value: 'DIR',
    default: '/etc/haproxy',
    help: 'directory of the files in the HAProxy pods',
  },
  'haproxy-version': {
    type: 'string',
    value: 'X.Y',
    help: 'render for this HAProxy (default: the one there is, else 3.0)',
  },
  'http-port': { type: 'string', value: 'PORT', help: 'plain HTTP (default: as configured)' },
  'https-port': { type: 'string', value: 'PORT', help: 'HTTPS (default: as configured)' },
};

/** Stands for the default certificate where nothing is served: the shape of one, and no key in it. */
const PLACEHOLDER = ['CERTIFICATE', 'PRIVATE KEY']
  .map((label) => `-----BEGIN ${label}-----\nUExBQ0VIT0xERVI=\n-----END ${label}-----\n`)
  .join('');

export const compileOptions = async (
  values: Values,
  { environment }: Terminal,
): Promise<CompileOptions> => ({
  overrides: { baseDir: baseDirOf(values['base-dir']), extraContext: portsOf(values) },
  haproxyVersion: await versionOf(values['haproxy-version'], environment),
  defaultCertificate: PLACEHOLDER,
});

const baseDirOf = (value: unknown): string => {
  if (typeof value === 'string' && value.startsWith('/')) return value;
  throw new CommandError('--base-dir takes an absolute path');
};

const portsOf = (values: Values): Readonly<Record<string, number>> => {
  const flags = [
    ['http-port', 'httpPort'],
    ['https-port', 'httpsPort'],
  ] as const;
  return Object.fromEntries(
    flags.flatMap(([flag, name]) =>
      values[flag] === undefined ? [] : [[name, portOf(values[flag], flag)] as const],
    ),
  );
};

const versionOf = async (named: unknown, environment: Terminal['environment']): Promise<string> => {
  if (typeof named !== 'string') {
    return findHaproxy(undefined, environment).then(
      ({ version }) => version,
      () => '3.0',
    );
  }
  if (/^3\.\d+(\.\d+)?$/.test(named)) return named;
  throw new CommandError('--haproxy-version takes a version such as 3.0 or 3.4.7');
};
