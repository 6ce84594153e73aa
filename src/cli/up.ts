import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ReplaySubject } from 'rxjs';
import { directorySource } from '../streams/directory.ts';
import { CommandError, EXIT, UsageError, type Call, type Command } from './command.ts';
import { curlLines } from './curl.ts';
import { defaultCertificate } from './default-certificate.ts';
import { findHaproxy } from './haproxy-binary.ts';
import { createLogger, LEVELS, writeLine } from './logger.ts';
import { manifestDirectory } from './manifest-directory.ts';
import { endOrphans } from './orphans.ts';
import { claimPort, portOf } from './ports.ts';
import { standalone, type StandaloneSettings } from './standalone.ts';
import {
  defaultStateDirectory,
  lockStateDirectory,
  openStateDirectory,
} from './state-directory.ts';

export const up: Command = {
  name: 'up',
  arguments: ['DIR'],
  summary: 'Run HAProxy, its agent and the controller over a directory of manifests',
  details:
    'Every YAML or JSON file below DIR is watched; a HAProxyTemplateConfig there is the configuration, without one\nthe libraries rule. Ends with Ctrl-C, and at once with a second one after a second. What was applied last is served again\nby the next start.',
  options: {
    'http-port': { type: 'string', value: 'PORT', default: '8080', help: 'plain HTTP' },
    'https-port': { type: 'string', value: 'PORT', default: '8443', help: 'HTTPS' },
    'stats-port': {
      type: 'string',
      value: 'PORT',
      default: '8404',
      help: "HAProxy's health and metrics",
    },
    'metrics-port': {
      type: 'string',
      value: 'PORT',
      default: '9090',
      help: "HAPTIC's health, metrics and /debug/vars",
    },
    haproxy: {
      type: 'string',
      value: 'PATH',
      help: 'the HAProxy to run (default $HAPROXY, else the one on PATH)',
    },
    'state-dir': {
      type: 'string',
      value: 'DIR',
      help: 'where files, sockets and state live (default below ~/.local/state)',
    },
    'log-level': {
      type: 'string',
      value: 'LEVEL',
      default: 'info',
      help: 'debug, info, warn or error',
    },
    demo: { type: 'boolean', help: 'also run small backends for endpoints on 127.0.0.1' },
  },
  run: async (call) => {
    const logLevel = levelOf(call);
    const manifests = await manifestDirectory(call.positionals[0] ?? '');
    const environment = call.terminal.environment;
    const haproxy = await findHaproxy(textOf(call, 'haproxy'), environment);
    const root = resolve(
      textOf(call, 'state-dir') ?? defaultStateDirectory(manifests, environment),
    );
    const state = await openStateDirectory(root);
    const unlock = await lockStateDirectory(root);
    try {
      // What a killed controller left behind serves until here: nothing that can be known before keeps us from going on.
      await endOrphans(state.base);
      return await serve(await prepare(call, { manifests, state, haproxy, logLevel }));
    } finally {
      await unlock();
    }
  },
};

/** What is known before anything is touched. */
interface Found {
  readonly manifests: string;
  readonly state: StandaloneSettings['state'];
  readonly haproxy: StandaloneSettings['haproxy'];
  readonly logLevel: string;
}

/** What `haptic up` needs to know, each thing found or refused with the reason. */
const prepare = async (
  call: Call,
  { manifests, state, haproxy, logLevel }: Found,
): Promise<StandaloneSettings> => {
  const { terminal } = call;
  const ports = await claimPorts(call);
  const token = randomBytes(32).toString('hex');
  const certificate = await written(state, async () => {
    await writeFile(state.tokenFile, `${token}\n`, { mode: 0o600 });
    return defaultCertificate(state.certificateFile);
  });
  const shutdown$ = new ReplaySubject<unknown>(1);
  const end = (): void => {
    shutdown$.next(terminal.signal.reason);
  };
  if (terminal.signal.aborted) end();
  else terminal.signal.addEventListener('abort', end, { once: true });
  const json = call.values['output'] === 'json';
  const logger = createLogger(logLevel, !json && terminal.isTerminal);
  const settings: StandaloneSettings = {
    source: directorySource(manifests),
    state,
    haproxy,
    ...ports,
    agentPort: await claimPort(0, 'agent-port', '127.0.0.1'),
    token,
    defaultCertificate: certificate,
    demo: call.values['demo'] === true,
    logger,
    ready: (snapshot) => {
      const lines = curlLines(snapshot, settings);
      if (json) writeLine(logger, { level: 'info', message: 'serving', fields: { try: lines } });
      else terminal.out(welcome(lines));
    },
    shutdown$,
  };
  if (json)
    writeLine(logger, {
      level: 'info',
      message: 'starting',
      fields: { manifests, haproxy, state: state.root, ...ports },
    });
  else terminal.out(introduction(settings, manifests));
  return settings;
};

/** What is done in the state directory; a full or read-only disk is told as such. */
const written = <T>({ root }: StandaloneSettings['state'], write: () => Promise<T>): Promise<T> =>
  write().catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      `cannot write to the state directory ${root}: ${why}; make room, or choose another one with --state-dir`,
      undefined,
      { cause: error },
    );
  });

/** The ports to listen on, all free and all different. */
const claimPorts = async (
  call: Call,
): Promise<Pick<StandaloneSettings, 'httpPort' | 'httpsPort' | 'statsPort' | 'metricsPort'>> => {
  const taken = new Map<number, string>();
  const claim = async (flag: string, host: string): Promise<number> => {
    const port = await claimPort(portOf(call.values[flag], flag), flag, host);
    const other = taken.get(port);
    if (other !== undefined) {
      throw new CommandError(
        `--${other} and --${flag} are both ${String(port)}; each needs a port of its own`,
      );
    }
    taken.set(port, flag);
    return port;
  };
  return {
    httpPort: await claim('http-port', '0.0.0.0'),
    httpsPort: await claim('https-port', '0.0.0.0'),
    statsPort: await claim('stats-port', '0.0.0.0'),
    metricsPort: await claim('metrics-port', '127.0.0.1'),
  };
};

const levelOf = (call: Call): string => {
  const level = textOf(call, 'log-level') ?? 'info';
  if (LEVELS.includes(level)) return level;
  throw new UsageError(`--log-level takes ${LEVELS.join(', ')}`);
};

const serve = (settings: StandaloneSettings): Promise<number> =>
  new Promise((done, fail) => {
    standalone(settings).subscribe({
      error: fail,
      complete: () => {
        done(EXIT.good);
      },
    });
  });

const textOf = ({ values }: Call, name: string): string | undefined => {
  const value = values[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
};

const introduction = (settings: StandaloneSettings, manifests: string): string =>
  [
    `HAPTIC standalone over ${manifests}`,
    `  HAProxy ${settings.haproxy.version} (${settings.haproxy.path})`,
    `  state   ${settings.state.root}`,
    `  listens on http ${String(settings.httpPort)}, https ${String(settings.httpsPort)}, HAProxy's metrics ${String(settings.statsPort)}`,
    "  log     below; HAProxy's own, with every request, at --log-level debug",
    `  status  http://127.0.0.1:${String(settings.metricsPort)}/debug/vars, /metrics, /readyz`,
    '',
  ].join('\n');

const welcome = (lines: readonly string[]): string =>
  [
    '',
    lines.length === 0 ? 'Serving; no Ingress names a host yet.' : 'Serving. Try:',
    ...lines.map((line) => `  ${line}`),
    `Edit a file below the directory and see what happens; Ctrl-C ends.`,
    '',
    '',
  ].join('\n');
