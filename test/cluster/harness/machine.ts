/**
 * Machines: process trees in namespaces of their own, which stand for the hosts of a cluster.
 */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { must, type Command } from './run.ts';

/** A machine that runs. */
export interface Machine {
  readonly name: string;
  /** Process id of its first process, as seen from here. */
  readonly pid: number;
}

/** What a machine runs. */
export interface MachinePlan {
  readonly name: string;
  /** Folders that are empty and in memory at each start. Default: none. */
  readonly mounts?: readonly string[];
  /** Daemons: name → command. They are started again whenever they end. */
  readonly units: Readonly<Record<string, Command>>;
  /** Environment of the daemons. */
  readonly env: Readonly<Record<string, string>>;
}

const SCRIPT = fileURLToPath(new URL('machine.sh', import.meta.url));
const POLL_MS = 50;
const HALT_MS = 20_000;

/**
 * Starts a machine whose daemons wait for {@link releaseMachine}.
 *
 * @param state folder of the cluster
 */
export async function startMachine(state: string, plan: MachinePlan): Promise<Machine> {
  const folder = join(state, plan.name);
  rmSync(join(folder, 'units'), { recursive: true, force: true });
  mkdirSync(join(folder, 'units'), { recursive: true });
  mkdirSync(join(state, 'logs'), { recursive: true });
  rmSync(join(folder, 'go'), { force: true });
  writeFileSync(join(folder, 'mounts'), (plan.mounts ?? []).map((path) => `${path}\n`).join(''));
  const exports = Object.entries(plan.env)
    .map(([variable, value]) => `export ${variable}=${quote(value)}\n`)
    .join('');
  for (const [name, command] of Object.entries(plan.units)) {
    const file = join(folder, 'units', name);
    writeFileSync(file, `#!/bin/sh\n${exports}exec ${command.map(quote).join(' ')}\n`);
    chmodSync(file, 0o755);
  }
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const log = openSync(join(state, 'logs', plan.name), 'a');
  const child = spawn('unshare', [...namespaces, 'bash', SCRIPT, state, plan.name], {
    detached: true, // outlives this process, and does not get the signals of its terminal
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  child.on('error', () => undefined); // seen below, by the machine that does not appear
  child.unref();
  for (let waited = 0; waited < HALT_MS; waited += POLL_MS) {
    const machine = findMachine(state, plan.name);
    if (machine !== undefined) return machine;
    await sleep(POLL_MS);
  }
  throw new Error(
    `${plan.name} did not start: ${readFileSync(join(state, 'logs', plan.name), 'utf8')}`,
  );
}

/** Lets the daemons of a machine start. */
export function releaseMachine(state: string, name: string): void {
  writeFileSync(join(state, name, 'go'), '');
}

/** Looks for a machine among the processes, so that nothing needs to have been written down. */
export function findMachine(state: string, name: string): Machine | undefined {
  return listMachines(state).find((machine) => machine.name === name);
}

/** Every machine of a cluster that runs. */
export function listMachines(state: string): Machine[] {
  const processes = readProcesses().filter(
    ({ args }) => args.includes(SCRIPT) && args.includes(state),
  );
  const outer = new Set(
    processes.filter(({ args }) => args[0] === 'unshare').map(({ pid }) => pid),
  );
  return processes
    .filter(({ parent }) => outer.has(parent))
    .map(({ pid, args }) => ({ pid, name: args.at(-1) ?? '' }));
}

/** Whether a machine of any cluster runs, be it of another checkout. */
export function isAnyMachineRunning(): boolean {
  const name = basename(SCRIPT);
  return readProcesses().some(({ args }) => args.some((arg) => basename(arg) === name));
}

/** Ends a machine at once, like a power failure. Its disk stays. */
export async function haltMachine(machine: Machine): Promise<void> {
  // The first process first: then `unshare`, which waits for it, ends by itself and nobody's zombie is left.
  killProcess(machine.pid, 'SIGKILL');
  for (let waited = 0; existsSync(`/proc/${machine.pid}`); waited += POLL_MS) {
    if (waited > HALT_MS) throw new Error(`${machine.name} (process ${machine.pid}) does not end`);
    await sleep(POLL_MS);
  }
}

/** @returns the command that runs another one in the network of a machine, with the files of this one */
export function inNetworkOf(machine: Machine, command: Command): Command {
  return ['nsenter', `--net=/proc/${machine.pid}/ns/net`, '--', ...command];
}

/** Sends a signal to a daemon. After one that ends it, it is started again. */
export async function signalDaemon(
  state: string,
  machine: Machine,
  { daemon, signal }: { readonly daemon: string; readonly signal: NodeJS.Signals },
): Promise<void> {
  const file = join(state, machine.name, 'pids', daemon);
  if (!existsSync(file)) throw new Error(`no ${daemon} runs on ${machine.name}`);
  const pid = readFileSync(file, 'utf8').trim();
  const inside = ['nsenter', '--target', String(machine.pid), '--pid', '--mount', '--'] as const;
  await must([...inside, 'kill', `-${signal.slice('SIG'.length)}`, pid]);
}

/** Holds a daemon back, so that it is not started again after it has ended; or lets it start. */
export function holdDaemon(
  state: string,
  {
    machine,
    daemon,
    held,
  }: { readonly machine: string; readonly daemon: string; readonly held: boolean },
): void {
  const file = join(state, machine, 'held', daemon);
  if (held) writeFileSync(file, '');
  else rmSync(file, { force: true });
}

/** Lets every daemon of a machine start that was held back. */
export function releaseDaemons(state: string, machine: string): void {
  const folder = join(state, machine, 'held');
  for (const daemon of readdirSync(folder)) rmSync(join(folder, daemon), { force: true });
}

/** A process of the host. */
export interface ProcessEntry {
  readonly pid: number;
  /** Process id of its parent. */
  readonly parent: number;
  readonly args: readonly string[];
}

/** All processes that run, those of machines and containers included. */
export function readProcesses(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
        const status = readFileSync(`/proc/${name}/stat`, 'utf8');
        // The name of the program is in parentheses and may contain anything.
        const parent = Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1]);
        return [{ pid: Number(name), parent, args }];
      } catch {
        return []; // it has ended meanwhile
      }
    });
}

function killProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error: unknown) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
