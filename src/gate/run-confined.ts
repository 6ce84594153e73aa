import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { Observable } from 'rxjs';
import type { CheckerRun } from './alerts.ts';

/** What {@link runConfined} runs. */
export interface RunOptions {
  readonly commandLine: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Bytes of output that are kept; what follows is read and dropped. */
const MOST_OUTPUT = 256 * 1024;
/** Below the controller and the workers, which share the machine. */
const NICENESS = 10;

/**
 * Runs a command in a process group of its own and emits how it ended. Unsubscribing kills the group; nothing of it
 * outlives the observable. Errors when the command cannot be started.
 */
export const runConfined = ({ commandLine, cwd, env }: RunOptions): Observable<CheckerRun> =>
  new Observable((subscriber) => {
    const [file, ...args] = commandLine;
    const child = spawn(file, args, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { pid } = child;
    if (pid !== undefined) lowerPriority(pid);
    const parts: Buffer[] = [];
    let size = 0;
    const keep = (part: Buffer): void => {
      if (size < MOST_OUTPUT) parts.push(part.subarray(0, MOST_OUTPUT - size));
      size += part.length;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    let alive = pid !== undefined;
    const end = (): void => {
      if (alive && pid !== undefined) killGroup(pid);
      alive = false;
    };
    child.once('error', (error) => subscriber.error(error));
    // What it left behind in its group dies with it, at once: later the group's id may be somebody else's.
    child.once('exit', end);
    child.once('close', (status, signal) => {
      subscriber.next({ status, signal, stderr: Buffer.concat(parts).toString() });
      subscriber.complete();
    });
    return end;
  });

const lowerPriority = (pid: number): void => {
  try {
    setPriority(pid, NICENESS);
  } catch {
    // it has ended already
  }
};

const killGroup = (pid: number): void => {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // nobody of the group is left
  }
};
