import { CommandError, type Option, type Terminal, type Values } from './command.ts';
import type { VetterLimits } from '../vetting/supervised.ts';
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
    help: 'render and judge for this HAProxy (default: the one there is, else 3.0)',
  },
  'http-port': { type: 'string', value: 'PORT', help: 'plain HTTP (default: as configured)' },
  'https-port': { type: 'string', value: 'PORT', help: 'HTTPS (default: as configured)' },
  timeout: {
    type: 'string',
    value: 'SECONDS',
    default: '30',
    help: 'longest time for compiling, for rendering, and for one test',
  },
  memory: {
    type: 'string',
    value: 'MIB',
    default: '512',
    help: 'most memory that the templates may take',
  },
};

/** How the commands that render once do so. */
export interface OneShotOptions extends CompileOptions {
  /** Of the process that renders. */
  readonly limits: VetterLimits;
  /** Aborts when the user wants the command to end. */
  readonly signal: AbortSignal;
}

/** Stands for the default certificate where nothing is served: the shape of one, and no key in it. */
const PLACEHOLDER = ['CERTIFICATE', 'PRIVATE KEY']
  .map((label) => `-----BEGIN ${label}-----\nUExBQ0VIT0xERVI=\n-----END ${label}-----\n`)
  .join('');

export const compileOptions = async (
  values: Values,
  { environment, signal }: Terminal,
): Promise<OneShotOptions> => ({
  overrides: { baseDir: baseDirOf(values['base-dir']), extraContext: portsOf(values) },
  haproxyVersion: await versionOf(values['haproxy-version'], environment),
  defaultCertificate: PLACEHOLDER,
  limits: limitsOf(values),
  signal,
});

/** Processor time beside that of compiling and rendering, in seconds. */
const START_SECONDS = 60;

const limitsOf = (values: Values): VetterLimits => {
  const seconds = wholeNumber('timeout', values['timeout'], { from: 1, to: 3_600 });
  return {
    phaseMs: seconds * 1_000,
    heapMb: wholeNumber('memory', values['memory'], { from: 32, to: 65_536 }),
    cpuSeconds: START_SECONDS + 3 * seconds,
  };
};

const wholeNumber = (
  flag: string,
  value: unknown,
  { from, to }: { readonly from: number; readonly to: number },
): number => {
  const number = /^\d{1,6}$/.test(String(value)) ? Number(value) : Number.NaN;
  if (number >= from && number <= to) return number;
  throw new CommandError(`--${flag} takes a whole number from ${String(from)} to ${String(to)}`);
};

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
