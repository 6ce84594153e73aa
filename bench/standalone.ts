import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { summary, type Summary } from './statistics.ts';
import { application, slice, writeList, writeWorld } from './world.ts';

/** The whole program over a directory of N applications; durations in milliseconds, memory in MiB. */
export interface StandaloneFigures {
  readonly n: number;
  readonly coldStartMs: number;
  /** File written → agent's answer that the worker took the operations. */
  readonly endpointApplied: Summary;
  /** File written → first answer of the new backend. */
  readonly ingressServed: Summary;
  /** The same while 20 new ones come each second for 20 s; undefined: not measured. */
  readonly storm: Summary | undefined;
  readonly reloads: { readonly endpoint: number; readonly ingress: number };
  readonly controllerMiB: number;
  readonly agentMiB: number;
  readonly eventLoopDelayP99Ms: number;
}

export interface StandaloneOptions {
  readonly haproxy: string;
  readonly endpointRounds: number;
  readonly ingressRounds: number;
  readonly storm: boolean;
}

/** New Ingresses a second, and for how many seconds. */
const STORM = { perSecond: 20, seconds: 20 };

interface LogLine {
  readonly at: number;
  readonly msg: string;
  readonly outcome?: string;
  /** For how long before the answer the change had been confirmed. */
  readonly commitMs?: number;
}

/** Runs `haptic up`, reads its JSON log and measures from outside. */
export const measureStandalone = async (
  n: number,
  options: StandaloneOptions,
): Promise<StandaloneFigures> => {
  const root = await mkdtemp('/tmp/hb-');
  const manifests = join(root, 'm');
  await writeWorld(manifests, n);
  const backend = await startBackend();
  const churn = application('churn', 'default', [9]);
  await writeList(manifests, 'hot.json', churn.slice(0, 2));
  await writeList(manifests, 'hot-slice.json', churn.slice(2));
  const program = await startProgram(manifests, join(root, 's'), options.haproxy);
  try {
    await program.waitFor(({ outcome }) => outcome === 'reload', 600_000);
    const coldStartMs = performance.now() - program.startedAt;
    await pause(2_000);
    const endpoint = await endpointRounds(program, manifests, options.endpointRounds);
    const afterEndpoint = program.reloads();
    const ingress = await ingressRounds(
      program,
      { manifests, backend: backend.port },
      options.ingressRounds,
    );
    const afterIngress = program.reloads();
    const storm = options.storm
      ? await stormRounds(program, { manifests, backend: backend.port })
      : undefined;
    await pause(7_000);
    return {
      n,
      coldStartMs,
      endpointApplied: summary(endpoint),
      ingressServed: summary(ingress),
      storm: storm && summary(storm),
      reloads: { endpoint: afterEndpoint - 1, ingress: afterIngress - afterEndpoint },
      ...(await program.memory()),
      eventLoopDelayP99Ms: await program.metric(
        'haptic_event_loop_delay_seconds{percentile="99"}',
        1_000,
      ),
    };
  } finally {
    await program.stop();
    backend.close();
    await rm(root, { recursive: true, force: true });
  }
};

/** One endpoint's port changes in each round; the next round starts when the change is confirmed. */
const endpointRounds = async (
  program: Program,
  manifests: string,
  rounds: number,
): Promise<readonly number[]> => {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await pause(20);
    const startedAt = performance.now();
    const confirmed = program.waitFor(({ outcome }) => outcome !== undefined, 60_000);
    await writeList(manifests, 'hot-slice.json', [slice('churn', 'default', [20_000 + round])]);
    const { at, commitMs = 0 } = await confirmed;
    samples.push(at - commitMs - startedAt);
  }
  return samples;
};

/** A new application in each round, polled until its backend answers. */
const ingressRounds = async (
  program: Program,
  { manifests, backend }: { readonly manifests: string; readonly backend: number },
  rounds: number,
): Promise<readonly number[]> => {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    samples.push(
      await served(program, { manifests, backend, name: `new-${String(round)}`, everyMs: 1 }),
    );
  }
  return samples;
};

/** New applications at a fixed rate, however long each takes; every one is polled until its backend answers. */
const stormRounds = (
  program: Program,
  world: { readonly manifests: string; readonly backend: number },
): Promise<readonly number[]> =>
  Promise.all(
    Array.from({ length: STORM.perSecond * STORM.seconds }, async (_, index) => {
      await pause((index * 1_000) / STORM.perSecond);
      return served(program, { ...world, name: `storm-${String(index)}`, everyMs: 5 });
    }),
  );

/** Milliseconds from writing a new application to the first answer of its backend. */
const served = async (
  program: Program,
  {
    manifests,
    backend,
    name,
    everyMs,
  }: {
    readonly manifests: string;
    readonly backend: number;
    readonly name: string;
    readonly everyMs: number;
  },
): Promise<number> => {
  const startedAt = performance.now();
  await writeList(manifests, `${name}.json`, application(name, 'default', [backend]));
  while ((await statusOf(program.httpPort, `${name}.example.test`)) !== 200) await pause(everyMs);
  return performance.now() - startedAt;
};

const statusOf = (port: number, host: string): Promise<number> =>
  new Promise((done) => {
    const sent = request(
      { host: '127.0.0.1', port, headers: { host }, agent: false },
      (response) => {
        response.resume();
        done(response.statusCode ?? 0);
      },
    );
    sent.on('error', () => {
      done(0);
    });
    sent.end();
  });

const startBackend = async (): Promise<{ readonly port: number; readonly close: () => void }> => {
  const server = createServer((_, response) => response.end('ok'));
  await new Promise<void>((done) => server.listen(0, '0.0.0.0', done));
  const address = server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
};

interface Program {
  readonly startedAt: number;
  readonly httpPort: number;
  waitFor(matches: (line: LogLine) => boolean, timeoutMs: number): Promise<LogLine>;
  reloads(): number;
  memory(): Promise<{ readonly controllerMiB: number; readonly agentMiB: number }>;
  metric(name: string, factor: number): Promise<number>;
  stop(): Promise<void>;
}

const startProgram = async (
  manifests: string,
  state: string,
  haproxy: string,
): Promise<Program> => {
  const [httpPort, httpsPort, statsPort, metricsPort] = await freePorts(4);
  const main = fileURLToPath(new URL('../dist/haptic.js', import.meta.url));
  const flags = {
    'http-port': httpPort,
    'https-port': httpsPort,
    'stats-port': statsPort,
    'metrics-port': metricsPort,
    'state-dir': state,
    haproxy,
    output: 'json',
  };
  const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(
    process.execPath,
    ['--max-semi-space-size=4', main, 'up', manifests, ...words],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const startedAt = performance.now();
  const log = readLog(child);
  return {
    startedAt,
    httpPort: httpPort ?? 0,
    waitFor: log.waitFor,
    reloads: log.reloads,
    memory: async () => ({
      controllerMiB: await residentMiB(child.pid ?? 0),
      agentMiB: await residentMiB(log.agentPid()),
    }),
    metric: async (name, factor) => {
      const text = await fetch(`http://127.0.0.1:${String(metricsPort)}/metrics`).then((answer) =>
        answer.text(),
      );
      const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
      return line === undefined ? NaN : Number(line.split(' ').at(-1)) * factor;
    },
    stop: async () => {
      const closed = new Promise((done) => child.once('close', done));
      child.kill('SIGTERM');
      await closed;
    },
  };
};

const readLog = (child: ChildProcess) => {
  const waiting = new Set<(line: LogLine) => void>();
  let reloads = 0;
  let agentPid = 0;
  const input = child.stdout;
  if (input === null) throw new Error('no output');
  createInterface({ input }).on('line', (text) => {
    if (!text.startsWith('{')) return;
    const line: LogLine = { at: performance.now(), ...(JSON.parse(text) as { msg: string }) };
    if (line.outcome === 'reload' || / reloaded /.test(line.msg)) reloads += 1;
    agentPid = Number(/^agent runs, pid (\d+)/.exec(line.msg)?.[1] ?? agentPid);
    for (const tell of waiting) tell(line);
  });
  return {
    reloads: () => reloads,
    agentPid: () => agentPid,
    waitFor: (matches: (line: LogLine) => boolean, timeoutMs: number): Promise<LogLine> =>
      new Promise((done, fail) => {
        const timer = setTimeout(() => {
          waiting.delete(tell);
          fail(new Error('nothing happened in time'));
        }, timeoutMs);
        const tell = (line: LogLine): void => {
          if (!matches(line)) return;
          clearTimeout(timer);
          waiting.delete(tell);
          done(line);
        };
        waiting.add(tell);
      }),
  };
};

const residentMiB = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${String(pid)}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? NaN) / 1_024);
};

const freePorts = (count: number): Promise<readonly number[]> =>
  Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<number>((done) => {
          const server = createTcpServer();
          server.listen(0, '127.0.0.1', () => {
            const address = server.address();
            server.close(() => {
              done(address !== null && typeof address === 'object' ? address.port : 0);
            });
          });
        }),
    ),
  );
