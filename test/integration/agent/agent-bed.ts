/**
 * One pod for a test: a directory, a real HAProxy that starts from a bootstrap configuration, and the agent as the
 * process it is in production.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { lastValueFrom, type Observable } from 'rxjs';
import type { CallLine, Fault } from './disk-faults.ts';
import { createAgentClient, type ClosableAgentClient } from '../../../src/sinks/agent-client.ts';
import type { Pod } from '../../../src/ports.ts';
import type {
  AgentState,
  ApplyConflict,
  ApplyOutcome,
  StoredPlan,
} from '../../../src/protocol/answers.ts';
import type { FileKind, Manifest } from '../../../src/protocol/protocol.ts';
import {
  freePort,
  runtimeCommand,
  startHaproxy,
  waitFor,
  type RunningHaproxy,
} from '../../support/haproxy.ts';

export const TOKEN = 'a-token-only-for-tests';
export const TIMEOUT_MS = { state: 20_000, apply: 60_000 };
const FAULTS = fileURLToPath(new URL('disk-faults.ts', import.meta.url));
const MAIN = fileURLToPath(new URL('../../../agent/main.ts', import.meta.url));

/** The files of a pod by path. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** What a test says about an apply; the rest has defaults. */
export type Apply = Partial<Omit<Manifest, 'files' | 'planId' | 'planLength'>> & {
  readonly files: Files;
  readonly planId?: string;
  readonly plan?: string;
  /** Paths whose bytes are sent; default: all. */
  readonly send?: readonly string[];
};

export const sha256 = (bytes: string | Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex');

/** The id of a plan with these files, as far as a test needs it. */
export const planIdOf = (files: Files): string =>
  sha256(JSON.stringify(Object.entries(files).map(([path, text]) => [path, sha256(text)])));

const KINDS: readonly (readonly [RegExp, FileKind])[] = [
  [/^haproxy\.cfg$/, 'config'],
  [/\.map$/, 'map'],
  [/\.pem$/, 'cert'],
];

/** The request of one apply: whole content of every file, mode `reload` unless said otherwise. */
export function requestOf(apply: Apply): {
  readonly manifest: Manifest;
  readonly parts: Buffer[];
  readonly plan: string;
} {
  const { files, planId, plan = '', send, ...rest } = apply;
  const entries = Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text) }));
  const isSent = (path: string): boolean => send === undefined || send.includes(path);
  return {
    manifest: {
      protocol: 1,
      planId: planId ?? planIdOf(files),
      epoch: 1,
      sequence: 1,
      expected: {},
      mode: 'reload',
      reload: true,
      reasons: [],
      reloadNotBeforeMs: 0,
      reloadIntervalMs: 0,
      operations: [],
      inPlaceOperations: [],
      ...rest,
      files: entries.map(({ path, bytes }) => ({
        path,
        kind: KINDS.find(([pattern]) => pattern.test(path))?.[1] ?? 'general',
        digest: sha256(bytes),
        size: bytes.length,
        ...(isSent(path) ? { inline: { length: bytes.length } } : {}),
      })),
      planLength: Buffer.byteLength(plan),
    },
    parts: entries.filter(({ path }) => isSent(path)).map(({ bytes }) => bytes),
    plan,
  };
}

/** The agent as a process of its own. */
export interface AgentProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly lines: readonly string[];
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
}

/** How an agent is started, beside what every one needs. */
export interface AgentStart {
  /** Further arguments. */
  readonly args?: readonly string[];
  /** The kernel refuses to let a file of this agent become larger, as a full disk would. */
  readonly fileBytes?: number;
  /** Credentials of the agent; without them it takes {@link TOKEN}. */
  readonly tlsDir?: string;
  /** What the agent logs before it counts as started. Default: `ready`. */
  readonly until?: string;
  /** The disk of this agent behaves as {@link Bed.fault} says; `undefined` until then. */
  readonly fault?: Fault | undefined;
}

export async function spawnAgent(base: string, start: AgentStart): Promise<AgentProcess> {
  const { args: more = [], fileBytes, tlsDir, until = 'ready' } = start;
  const access =
    tlsDir === undefined ? ['--token-file', join(base, '..', 'token')] : ['--tls-dir', tlsDir];
  const own = [MAIN, '--base-dir', base, ...access, '--listen', '127.0.0.1:0', ...more];
  const faultFile = join(base, '..', 'fault.json');
  const isFaulty = 'fault' in start;
  if (start.fault === undefined) rmSync(faultFile, { force: true });
  else writeFileSync(faultFile, JSON.stringify(start.fault));
  const args = [...(isFaulty ? ['--import', FAULTS] : []), ...own];
  const limit = fileBytes === undefined ? '' : `ulimit -f ${Math.ceil(fileBytes / 512)};`;
  const child = spawn('sh', ['-c', `${limit} exec "$@"`, 'sh', process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, HAPTIC_TEST_FAULT: faultFile },
  });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const exited = once(child, 'exit');
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await exited;
  };
  const find = (message: string): Record<string, unknown> | undefined =>
    lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find((entry) => entry['msg'] === message);
  const listening = await waitFor(
    () => {
      if (child.exitCode !== null || child.signalCode !== null) return 'ended';
      return find(until) === undefined ? undefined : find('listening');
    },
    { what: 'the agent to be ready', timeoutMs: 20_000 },
  );
  if (listening === 'ended') throw new Error(`the agent ended: ${lines.join('\n')}`);
  const scheme = tlsDir === undefined ? 'http' : 'https';
  return { child, url: `${scheme}://${String(listening['listen'])}`, lines, kill };
}

/** The one value of a call. An agent that gives none is a failure. */
export const valueOf = <T>(call$: Observable<T>): Promise<T> =>
  lastValueFrom<T, undefined>(call$, { defaultValue: undefined }).then((value) => {
    if (value === undefined) throw new Error('no answer');
    return value;
  });

const treeLine = (path: string, mode: number, bytes: string | Uint8Array): string =>
  `${path} ${mode.toString(8)} ${sha256(bytes)}`;

/** What {@link Bed.tree} is when the pod holds these files. */
export const treeOf = (files: Files): string[] =>
  Object.entries(files)
    .map(([path, bytes]) => treeLine(path, path.endsWith('.pem') ? 0o600 : 0o644, bytes))
    .sort();

/** A pod under test. */
export class Bed {
  readonly base: string;
  readonly port: number;
  agent!: AgentProcess;
  haproxy!: RunningHaproxy;
  readonly #root: string;
  readonly #binary: string;
  readonly #servers: Server[] = [];
  /** Who speaks with the agent; a test may put another in its place. */
  client: ClosableAgentClient = createAgentClient({ token: TOKEN, timeoutMs: TIMEOUT_MS });

  private constructor(binary: string, port: number) {
    this.#root = mkdtempSync(join(tmpdir(), 'agt-'));
    this.#binary = binary;
    this.base = join(this.#root, 'base');
    this.port = port;
    mkdirSync(this.base);
    writeFileSync(join(this.#root, 'token'), `${TOKEN}\n`);
    writeFileSync(join(this.base, 'haproxy.cfg'), this.config({ bootstrap: true }));
  }

  static async start(binary: string, agent?: AgentStart): Promise<Bed> {
    const bed = new Bed(binary, await freePort());
    await bed.startHaproxy();
    await bed.startAgent(agent);
    return bed;
  }

  async startHaproxy(): Promise<void> {
    this.haproxy = await startHaproxy({
      binary: this.#binary,
      dir: this.#root,
      configFile: join(this.base, 'haproxy.cfg'),
      workerSocket: join(this.base, 'haproxy-worker.sock'),
    });
  }

  async startAgent({ args = [], ...more }: AgentStart = {}): Promise<void> {
    const all = ['--master-socket', this.haproxy.masterSocket, ...args];
    this.agent = await spawnAgent(this.base, { ...more, args: all });
  }

  async stop(): Promise<void> {
    await Promise.all([this.agent.kill('SIGKILL'), this.haproxy.stop(), this.client.close()]);
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(this.#root, { recursive: true, force: true });
  }

  /** From now on the agent's disk behaves so; the agent was started with a `fault`. */
  async fault(fault: Fault): Promise<void> {
    const { lines, child } = this.agent;
    const armed = (): number => lines.filter((line) => line.includes('"msg":"armed"')).length;
    const before = armed();
    writeFileSync(join(this.#root, 'fault.json'), JSON.stringify(fault));
    child.kill('SIGUSR2');
    await waitFor(() => armed() > before, { what: 'the disk to become faulty', intervalMs: 2 });
  }

  /** File-system calls since the last {@link fault}. */
  calls(): CallLine[] {
    const { lines } = this.agent;
    return lines
      .slice(lines.findLastIndex((line) => line.includes('"msg":"armed"')) + 1)
      .filter((line) => line.includes('"msg":"fs call"'))
      .map((line) => JSON.parse(line) as CallLine);
  }

  get pod(): Pod {
    return { key: 'pod', name: 'pod', url: this.agent.url };
  }

  /** A configuration that routes by `maps/hosts.map` to the backends `web` and `api`. */
  config({
    bootstrap = false,
    web = [],
    extra = '',
  }: {
    bootstrap?: boolean;
    web?: readonly string[];
    extra?: string;
  } = {}): string {
    const head = [
      'global',
      `  default-path origin ${this.base}`,
      `  stats socket ${join(this.base, 'haproxy-worker.sock')} mode 600 level admin`,
      '  hard-stop-after 5s',
      'defaults',
      '  mode http',
      '  timeout connect 1s',
      '  timeout client 20s',
      '  timeout server 20s',
      'frontend fe',
      `  bind 127.0.0.1:${this.port}`,
    ];
    if (bootstrap) return [...head, '  http-request return status 503', ''].join('\n');
    return [
      ...head,
      '  use_backend %[req.hdr(host),lower,map_str(maps/hosts.map,none)]',
      'backend none',
      '  http-request return status 404',
      'backend web',
      '  balance roundrobin',
      ...web.map((server) => `  server ${server}`),
      'backend api',
      '  balance random',
      extra,
      '',
    ].join('\n');
  }

  /** The files of a pod with this configuration and these map entries. */
  files(
    options: Parameters<Bed['config']>[0] & { readonly hosts?: string; readonly more?: Files } = {},
  ): Files {
    return {
      'haproxy.cfg': this.config(options),
      'maps/hosts.map': options.hosts ?? 'a.example web\n',
      ...options.more,
    };
  }

  /** Content and permission bits of every file below the base that is not the agent's own, `path mode digest`. */
  tree(folder = ''): string[] {
    return readdirSync(join(this.base, folder), { withFileTypes: true })
      .filter(({ name }) => !name.startsWith('.'))
      .flatMap((entry) => {
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
        if (entry.isDirectory()) return this.tree(path);
        if (!entry.isFile()) return [];
        const at = join(this.base, path);
        return [treeLine(path, lstatSync(at).mode & 0o777, readFileSync(at))];
      })
      .sort();
  }

  send(apply: Apply): Promise<ApplyOutcome | ApplyConflict> {
    return valueOf(this.client.apply(this.pod, requestOf(apply)));
  }

  /** An apply that is not fenced off. */
  async apply(apply: Apply): Promise<ApplyOutcome> {
    const answer = await this.send(apply);
    if ('conflict' in answer) throw new Error(`conflict: ${JSON.stringify(answer)}`);
    return answer;
  }

  async conflict(apply: Apply): Promise<ApplyConflict> {
    const answer = await this.send(apply);
    if ('outcome' in answer) throw new Error(`no conflict: ${JSON.stringify(answer)}`);
    return answer;
  }

  state(verify = false): Promise<AgentState> {
    return valueOf(this.client.state(this.pod, { verify }));
  }

  plan(): Promise<StoredPlan> {
    return valueOf(this.client.plan(this.pod));
  }

  runtime(command: string): Promise<string> {
    return runtimeCommand(this.haproxy.workerSocket, command);
  }

  /** `name address port weight state` of each server of a backend; state 0 is ready, 1 maintenance, 8 drain. */
  async servers(backend: string): Promise<string[]> {
    const text = await this.runtime(`show servers state ${backend}`);
    return text
      .split('\n')
      .filter((line) => /^\d+ /.test(line) && line.split(' ').length > 10)
      .map((line) => line.split(' '))
      .map((f) => `${f[3] ?? ''} ${f[4] ?? ''} ${f[18] ?? ''} ${f[7] ?? ''} ${f[6] ?? ''}`);
  }

  /** The entries of the map, `key value`, sorted. */
  async hosts(): Promise<string[]> {
    const text = await this.runtime('show map maps/hosts.map');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.slice(line.indexOf(' ') + 1))
      .sort();
  }

  /** A server that answers with its name; `/slow` takes as long as `release` is not called. */
  async backend(name: string): Promise<{ readonly port: number; readonly release: () => void }> {
    const waiting: (() => void)[] = [];
    const server = createServer((request, response) => {
      if (request.url !== '/slow') return void response.end(name);
      response.write(name);
      waiting.push(() => response.end('-done'));
    });
    this.#servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const release = (): void => waiting.splice(0).forEach((end) => end());
    return { port: (server.address() as AddressInfo).port, release };
  }

  /** Status and body of a request through HAProxy. */
  request(host: string, path = '/'): Promise<string> {
    return new Promise((resolve, reject) => {
      get(
        { host: '127.0.0.1', port: this.port, path, headers: { host }, agent: false },
        (response) => {
          let body = '';
          response.on('data', (part: Buffer) => (body += part.toString()));
          response.on('end', () => resolve(`${response.statusCode ?? 0} ${body}`.trim()));
          response.on('error', reject);
        },
      ).on('error', reject);
    });
  }
}
