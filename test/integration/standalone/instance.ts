/** `haptic up` as a process of its own, over a directory of its own, with everything that runs beside it. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFailed, onTestFinished } from 'vitest';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { freePort, waitFor } from '../../support/haproxy.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
/** Generous: other tests may have the machine at the same time. */
const PATIENCE_MS = 40_000;

/** What an answer of HAProxy or of the status server was. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** One line of the JSON log. */
export type LogEntry = Readonly<Record<string, unknown>> & {
  readonly msg: string;
  readonly level: number;
};

/** What an instance starts with. */
export interface InstanceOptions {
  readonly haproxy: string;
  /** File name below the manifest directory → text, or objects. */
  readonly manifests: Readonly<Record<string, string | readonly object[]>>;
  /** Further flags of `haptic up`. */
  readonly flags?: readonly string[];
  /** State directory. Default: one of its own. */
  readonly stateDir?: string;
}

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  /** From the signal to the end. */
  readonly ms: number;
}

interface Run {
  readonly child: ChildProcess;
  readonly ended: Promise<Omit<Ended, 'ms'>>;
}

/** The part of `/debug/vars` that tests look at. */
export interface Vars {
  readonly epoch: number;
  readonly configProblems: readonly Shown[];
  readonly sourceProblems: readonly Shown[];
  readonly lastRenderFailure: readonly Shown[];
  readonly render?: { readonly planId: string; readonly problems: readonly Shown[] };
  readonly gate: {
    readonly phase: string;
    readonly accepted?: string;
    readonly lastVerdict?: string;
    readonly lastVerdictPlanId?: string;
    readonly lastMessage?: string;
    readonly lastProblems?: readonly Shown[];
  };
  readonly agents: Readonly<Record<string, AgentVars>>;
}

/** A problem as it is shown. */
export interface Shown {
  readonly reason: string;
  readonly message: string;
  readonly nextStep: string;
  readonly field?: string;
  readonly object?: { readonly kind: string; readonly namespace: string; readonly name: string };
  readonly place?: { readonly source: string; readonly line?: number };
}

interface AgentVars {
  readonly planId?: string;
  readonly lastOutcome?: string;
  readonly lastError?: string;
}

/** A running (or ended) standalone instance. */
export class Instance {
  /** Short, so that unix sockets fit below it. */
  readonly dir = mkdtempSync('/tmp/hu-');
  readonly manifests = join(this.dir, 'm');
  readonly stateDir: string;
  readonly #options: InstanceOptions;
  #ports = { http: 0, https: 0, stats: 0, metrics: 0 };
  #run: Run | undefined;
  #out = '';
  #err = '';

  private constructor(options: InstanceOptions) {
    this.#options = options;
    this.stateDir = options.stateDir ?? join(this.dir, 's');
    mkdirSync(this.manifests);
    for (const [name, content] of Object.entries(options.manifests)) this.write(name, content);
  }

  /** Everything but the processes; call {@link up} or {@link launch} next. Cleans up when the test ends. */
  static async prepare(options: InstanceOptions): Promise<Instance> {
    const instance = await Instance.prepareShared(options);
    onTestFailed(() => instance.showLog());
    onTestFinished(() => instance.dispose());
    return instance;
  }

  /** The same for several tests: whoever calls it also calls {@link dispose}, after all of them. */
  static async prepareShared(options: InstanceOptions): Promise<Instance> {
    const instance = new Instance(options);
    const [http, https, stats, metrics] = [
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
    ];
    instance.#ports = { http, https, stats, metrics };
    return instance;
  }

  /** Starts and waits until the first apply is confirmed. */
  static async start(options: InstanceOptions): Promise<Instance> {
    const instance = await Instance.prepare(options);
    await instance.up();
    return instance;
  }

  get ports(): Readonly<{ http: number; https: number; stats: number; metrics: number }> {
    return this.#ports;
  }

  get pid(): number {
    return this.#run?.child.pid ?? 0;
  }

  /** Starts the process. `flags` come after the usual ones and so win over them. */
  launch(flags: readonly string[] = []): void {
    const { http, https, stats, metrics } = this.#ports;
    const ports = { 'http-port': http, 'https-port': https, 'stats-port': stats };
    const child = spawn(
      process.execPath,
      [
        MAIN,
        'up',
        this.manifests,
        ...['--haproxy', this.#options.haproxy, '--state-dir', this.stateDir],
        ...Object.entries(ports).flatMap(([flag, port]) => [`--${flag}`, String(port)]),
        ...['--metrics-port', String(metrics)],
        ...(this.#options.flags ?? []),
        ...flags,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'] ?? '' } },
    );
    child.stdout.on('data', (part: Buffer) => (this.#out += part.toString()));
    child.stderr.on('data', (part: Buffer) => (this.#err += part.toString()));
    const ended = new Promise<Omit<Ended, 'ms'>>((done) =>
      child.once('close', (code, signal) => done({ code, signal })),
    );
    this.#run = { child, ended };
  }

  /** Starts the process and waits until it is ready. */
  async up(flags: readonly string[] = []): Promise<void> {
    this.launch(flags);
    const ready = await Promise.race([
      this.until('ready', async () => (await this.status('/readyz')).status === 200),
      this.ended(),
    ]);
    if (ready !== true) throw new Error(`haptic up has ended: ${this.#err}`);
  }

  /** Sends a signal and waits for the end. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    const startedAt = performance.now();
    this.#run?.child.kill(signal);
    const how = await this.ended();
    return { ...how, ms: performance.now() - startedAt };
  }

  async ended(): Promise<Omit<Ended, 'ms'>> {
    return (await this.#run?.ended) ?? { code: null, signal: null };
  }

  /** Standard output so far. */
  get out(): string {
    return this.#out;
  }

  get err(): string {
    return this.#err;
  }

  /** Forgets the output so far, so that what is found came later. */
  forgetOutput(): void {
    this.#out = '';
    this.#err = '';
  }

  /** Prints what happened, for the one who looks at a failed test. */
  showLog(): void {
    const log = `${this.#out}\n--- standard error\n${this.#err}`;
    process.stderr.write(`--- log of ${this.dir}\n${log}\n`);
  }

  /** The lines of the log so far. */
  lines(): readonly LogEntry[] {
    return this.#out
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as LogEntry);
  }

  messages(): readonly string[] {
    return this.lines().map(({ msg }) => msg);
  }

  /** Waits for a line of the log, and returns its message. */
  async line(pattern: RegExp): Promise<string> {
    return this.until(`a line like ${pattern.source}`, () =>
      this.messages().find((message) => pattern.test(message)),
    );
  }

  /** Waits; on failure the log says what happened instead. */
  async until<T>(
    what: string,
    predicate: () => T | Promise<T>,
  ): Promise<Exclude<T, false | undefined>> {
    return waitFor(predicate, { what, timeoutMs: PATIENCE_MS, intervalMs: 25 });
  }

  /** Replaces a file as careful editors do. */
  write(name: string, content: string | readonly object[]): void {
    const path = join(this.manifests, name);
    mkdirSync(dirname(path), { recursive: true });
    const text =
      typeof content === 'string'
        ? content
        : content.map((object) => JSON.stringify(object)).join('\n---\n');
    const beside = join(dirname(path), `.${String(performance.now())}`);
    writeFileSync(beside, text);
    renameSync(beside, path);
  }

  remove(name: string): void {
    rmSync(join(this.manifests, name));
  }

  /** One request through HAProxy on a connection of its own. */
  get(host: string, path = '/'): Promise<Answer> {
    return ask({ port: this.#ports.http, path, headers: { host } });
  }

  /** Asks through HAProxy until the answer is the one that is wanted. */
  async serves(host: string, path: string, wanted: string | number): Promise<void> {
    let last: Answer | undefined;
    await this.until(`${host}${path} to answer ${String(wanted)}`, async () => {
      last = await this.get(host, path);
      if (typeof wanted === 'number' ? last.status === wanted : last.body.includes(wanted)) {
        return true;
      }
      throw new Error(`it answers ${String(last.status)} ${last.body}`);
    });
  }

  /** One request to the status server. */
  status(path: string): Promise<Answer> {
    return ask({ port: this.#ports.metrics, path, headers: {} });
  }

  async vars(): Promise<Vars> {
    return JSON.parse((await this.status('/debug/vars')).body) as Vars;
  }

  /** Sum of a metric over the samples that have all these labels. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const { body } = await this.status('/metrics');
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    const samples = body.split('\n').filter((line) => {
      const head = line.slice(0, line.lastIndexOf(' '));
      return head.split('{')[0] === name && wanted.every((word) => head.includes(word));
    });
    return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** Reloads so far. */
  reloads(): Promise<number> {
    return this.metric('haptic_reload_duration_seconds_count');
  }

  /** Ids of processes that have the state directory on their command line, the controller left out. */
  children(program: 'haproxy' | 'agent'): readonly number[] {
    const mark = program === 'agent' ? '--base-dir' : 'haproxy-master.sock,';
    return processesOf(this.stateDir).flatMap(({ pid, commandLine }) =>
      pid !== this.pid && commandLine.includes(mark) ? [pid] : [],
    );
  }

  /** Id of the HAProxy master: the oldest of its processes. */
  master(): number {
    const pids = this.children('haproxy');
    const master = pids.find((pid) => !pids.includes(parentOf(pid)));
    if (master === undefined) throw new Error('there is no HAProxy');
    return master;
  }

  /** Ends all that runs and removes the files. */
  async dispose(): Promise<void> {
    this.#run?.child.kill('SIGKILL');
    await this.#run?.ended;
    for (const { pid } of processesOf(this.stateDir)) kill(pid, 'SIGKILL');
    await waitFor(() => processesOf(this.stateDir).length === 0, { what: 'all to end' });
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Everything that this state directory is named by, the controller included. */
export const processesOf = (
  stateDir: string,
): readonly { readonly pid: number; readonly commandLine: string }[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .flatMap((entry) => {
      const commandLine = read(`/proc/${entry}/cmdline`).replaceAll('\0', ' ');
      return commandLine.includes(`${stateDir}/`) || commandLine.includes(`${stateDir} `)
        ? [{ pid: Number(entry), commandLine }]
        : [];
    });

const parentOf = (pid: number): number =>
  Number(/^PPid:\s*(\d+)$/m.exec(read(`/proc/${String(pid)}/status`))?.[1]);

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

export const kill = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
};

interface Asked {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const ask = ({ port, path, headers }: Asked): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, path, headers, agent: false, timeout: 5_000 },
      (response) => {
        let body = '';
        response.on('data', (part: Buffer) => (body += part.toString()));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
      },
    );
    call.on('timeout', () => call.destroy(new Error('no answer within 5 s')));
    call.on('error', reject);
    call.end();
  });

/** A Service and its EndpointSlice on loopback, one endpoint for each port. */
export const serviceOn = (name: string, ports: readonly number[]): readonly KubeObject[] => [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name },
    spec: { ports: [{ port: 80 }] },
  },
  ...ports.map((port, index) => sliceOn(name, port, index)),
];

/** One EndpointSlice of a Service with one endpoint; several make several servers. */
export const sliceOn = (service: string, port: number, index = 0): KubeObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    namespace: 'default',
    name: `${service}-${String(index)}`,
    labels: { 'kubernetes.io/service-name': service },
  },
  addressType: 'IPv4',
  ports: [{ name: '', port }],
  endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
});

/** A HAProxyTemplateConfig with this `spec`. */
export const configured = (spec: Readonly<Record<string, unknown>>): KubeObject => ({
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  metadata: { namespace: 'default', name: 'haptic' },
  spec,
});
