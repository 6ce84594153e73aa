/**
 * Real HAProxy processes for tests: which versions there are, how one is started as a master with
 * its worker, spoken to, reloaded, and stopped whatever becomes of the test.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll } from 'vitest';
import { cacheFolder } from '../../tools/setup/haproxy.js';

/** A branch of HAProxy that is tested. */
export type HaproxyBranch = '3.0' | '3.2' | '3.4';

/** One HAProxy to test with. */
export interface TestedHaproxy {
  readonly version: HaproxyBranch;
  /** Absolute path of the executable. */
  readonly binary: string;
}

/** What {@link startHaproxy} needs. */
export interface HaproxyStart {
  /** Absolute path of the executable. */
  readonly binary: string;
  /** Working directory of the process. */
  readonly dir: string;
  /** Configuration file, absolute or relative to `dir`. */
  readonly configFile: string;
  /**
   * The `stats socket` that the configuration itself declares, as a path. Default: the harness adds
   * one with level admin in a file of its own.
   */
  readonly workerSocket?: string;
  /** More arguments for the command line, such as `-dr`. Default: none. */
  readonly args?: readonly string[];
  /** Time until both sockets answer. Default: 10,000 ms. */
  readonly timeoutMs?: number;
}

/** A HAProxy that runs. */
export interface RunningHaproxy {
  /** Process id of the master. */
  readonly pid: number;
  /** Path of the worker's command-line socket, level admin. */
  readonly workerSocket: string;
  /** Path of the master's command-line socket. */
  readonly masterSocket: string;
  /** Everything that HAProxy has printed so far. */
  readonly output: () => string;
  /** Reloads through the master socket; `output` is what the new worker said while it started. */
  readonly reload: () => Promise<{ readonly success: boolean; readonly output: string }>;
  /** Ends master and workers at once. Doing it twice is harmless. */
  readonly stop: () => Promise<void>;
}

/** Options of {@link waitFor}. */
export interface WaitOptions {
  /** Default: 10,000 ms. */
  readonly timeoutMs?: number;
  /** Time between two attempts. Default: 20 ms. */
  readonly intervalMs?: number;
  /** What is waited for, for the message of the failure. */
  readonly what?: string;
}

interface Offers {
  readonly branches: Partial<
    Record<HaproxyBranch, { readonly offered: boolean; readonly binary?: string }>
  >;
}

const BRANCHES: readonly HaproxyBranch[] = ['3.0', '3.2', '3.4'];

/** Groups that are still running: killed when the test file, or the whole process, ends. */
const running = new Map<number, () => Promise<void>>();

process.on('exit', () => {
  for (const pid of running.keys()) killGroup(pid, 'SIGKILL');
});

afterAll(async () => {
  await Promise.all([...running.values()].map((stop) => stop()));
});

/**
 * Every HAProxy that the tests must run on, oldest first. 3.0 is always among them; 3.2 and 3.4 are
 * whenever they can be had.
 *
 * @param offersFile what the set-up wrote down. Default: in the cache folder
 * @throws when 3.0 is not there, or when a branch is offered and its binary is not there
 */
export function haproxyVersions(
  offersFile: string = join(cacheFolder(), 'offers.json'),
): TestedHaproxy[] {
  const { branches } = readOffers(offersFile);
  return BRANCHES.flatMap((version) => {
    const branch = branches[version] ?? { offered: version === '3.0' };
    if (branch.binary !== undefined && existsSync(branch.binary)) {
      return [{ version, binary: branch.binary }];
    }
    if (!branch.offered && version !== '3.0') return [];
    throw new Error(`HAProxy ${version} must be tested and is not there: run "npm test" once`);
  });
}

/**
 * Starts HAProxy as a master with a worker and waits until both command-line sockets answer. It is
 * stopped at the end of the test file at the latest.
 *
 * @throws with HAProxy's own output when it ends or does not answer in time
 */
export async function startHaproxy(start: HaproxyStart): Promise<RunningHaproxy> {
  const folder = mkdtempSync(join(tmpdir(), 'hap-'));
  const masterSocket = join(folder, 'm.sock');
  const workerSocket = start.workerSocket ?? join(folder, 'w.sock');
  const files = ['-f', start.configFile];
  if (start.workerSocket === undefined) files.push('-f', writeSocketFile(folder, workerSocket));
  const args = ['-W', '-S', `${masterSocket},level,admin`, ...files, ...(start.args ?? [])];
  const child = spawn(start.binary, args, {
    cwd: start.dir,
    detached: true, // a process group of its own, so that the workers can be killed with it
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = collectOutput(child);
  const pid = await pidOf(child);
  const stop = stopper(child, folder);
  running.set(pid, stop);
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const answers = async (): Promise<boolean> => {
    if (hasEnded()) return true;
    await runtimeCommand(masterSocket, 'show proc');
    return (await runtimeCommand(workerSocket, 'show info')).includes('Pid:');
  };
  try {
    await waitFor(answers, { timeoutMs: start.timeoutMs ?? 10_000, what: 'HAProxy to answer' });
    if (hasEnded()) throw new Error('it has ended');
  } catch (error: unknown) {
    await stop();
    throw new Error(`HAProxy does not start: ${output()}`, { cause: error });
  }
  const reload = async (): Promise<{ success: boolean; output: string }> => {
    const answer = await runtimeCommand(masterSocket, 'reload', 60_000);
    return { success: answer.startsWith('Success=1'), output: answer };
  };
  return { pid, workerSocket, masterSocket, output, reload, stop };
}

/**
 * Sends one line, or one command with its payload, to a command-line socket of HAProxy.
 *
 * @param socket path of the socket
 * @param line without the newline at its end
 * @param timeoutMs until the whole answer is there. Default: 10,000 ms
 * @returns the answer without the empty lines at its end
 */
export function runtimeCommand(socket: string, line: string, timeoutMs = 10_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const connection = connect(socket, () => connection.write(`${line}\n`));
    connection.setTimeout(timeoutMs, () => {
      connection.destroy(new Error(`no answer to "${line}" within ${timeoutMs} ms`));
    });
    connection.on('data', (part: Buffer) => {
      parts.push(part);
      // The master, other than a worker, waits for the client to close first.
      if (/^\n$|\n\n$/.test(part.toString())) connection.end();
    });
    connection.on('error', reject);
    connection.on('end', () => resolve(Buffer.concat(parts).toString().trimEnd()));
  });
}

/**
 * Asks again and again until the answer is neither `false` nor undefined. What the predicate throws
 * counts as "not yet".
 *
 * @returns the first such answer
 * @throws when the time is over, with the predicate's last error as cause
 */
export async function waitFor<T>(
  predicate: () => T | Promise<T>,
  { timeoutMs = 10_000, intervalMs = 20, what = 'the condition' }: WaitOptions = {},
): Promise<Exclude<T, false | undefined>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const asked = await ask(predicate);
    if ('answer' in asked) return asked.answer;
    if (performance.now() >= deadline) {
      throw new Error(`waited ${timeoutMs} ms for ${what} in vain`, { cause: asked.error });
    }
    await sleep(intervalMs);
  }
}

async function ask<T>(
  predicate: () => T | Promise<T>,
): Promise<{ answer: Exclude<T, false | undefined> } | { error: unknown }> {
  try {
    const answer = await predicate();
    if (answer === false || answer === undefined) return { error: undefined };
    return { answer: answer as Exclude<T, false | undefined> };
  } catch (error: unknown) {
    return { error };
  }
}

const givenPorts = new Set<number>();

/** A TCP port that is free on all addresses, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  const port = await new Promise<number>((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
  if (givenPorts.has(port)) return freePort();
  givenPorts.add(port);
  return port;
}

function readOffers(path: string): Offers {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Offers;
  } catch (error: unknown) {
    throw new Error('it is not known which HAProxies there are: run "npm test" once', {
      cause: error,
    });
  }
}

function writeSocketFile(folder: string, socket: string): string {
  const path = join(folder, 'socket.cfg');
  writeFileSync(path, `global\n    stats socket unix@${socket} mode 600 level admin\n`);
  return path;
}

function collectOutput(child: ChildProcess): () => string {
  const parts: Buffer[] = [];
  child.stdout?.on('data', (part: Buffer) => parts.push(part));
  child.stderr?.on('data', (part: Buffer) => parts.push(part));
  return () => Buffer.concat(parts).toString();
}

function pidOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => resolve(child.pid ?? 0));
  });
}

function stopper(child: ChildProcess, folder: string): () => Promise<void> {
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const pid = child.pid ?? 0;
  return async () => {
    if (!running.has(pid)) return;
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM'); // the master ends its workers at once
      await Promise.race([ended, sleep(3_000, undefined, { ref: false })]);
    }
    killGroup(pid, 'SIGKILL'); // old workers that still drain, and all of it if it did not listen
    running.delete(pid);
    rmSync(folder, { recursive: true, force: true });
  };
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // nobody of the group is left
  }
}
