/**
 * Programs that the harness runs.
 */
import { spawn, type StdioOptions } from 'node:child_process';

/** What came of a program. */
export interface Outcome {
  /** Exit status; -1 when a signal ended it or it could not be started. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a program is run. */
export interface RunOptions {
  /** Default: nothing. */
  readonly stdin?: string;
  /** Default: the working directory of this process. */
  readonly cwd?: string;
  /** The whole environment. Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** After that it is killed. Default: 120,000 ms. */
  readonly timeoutMs?: number;
  /** Sees each piece of standard error as it comes. Default: nobody does. */
  readonly onStderr?: (text: string) => void;
}

/** A command line: the program and its arguments. */
export type Command = readonly [string, ...string[]];

/** A program that failed, with what it said. */
export class ProgramError extends Error {
  readonly code = 'PROGRAM_FAILED';
  readonly outcome: Outcome;

  constructor(command: Command, outcome: Outcome) {
    const said = `${outcome.stderr}${outcome.stdout}`.trim().slice(-4000);
    super(`${command.join(' ').slice(0, 300)} ended with status ${outcome.status}: ${said}`);
    this.outcome = outcome;
  }
}

/** Runs a program to its end. Never rejects. */
export function run(command: Command, options: RunOptions = {}): Promise<Outcome> {
  const { stdin, cwd, env = process.env, timeoutMs = 120_000, onStderr } = options;
  const [program, ...args] = command;
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      ...(cwd === undefined ? {} : { cwd }),
      env,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (part: Buffer) => stdout.push(part));
    child.stderr.on('data', (part: Buffer) => {
      stderr.push(part);
      onStderr?.(part.toString());
    });
    const end = (status: number, addition = ''): void => {
      const text = (parts: Buffer[]): string => Buffer.concat(parts).toString();
      resolve({ status, stdout: text(stdout), stderr: text(stderr) + addition });
    };
    child.on('error', (error) => {
      end(-1, error.message);
    });
    child.on('close', (status, signal) => {
      end(
        status ?? -1,
        signal === null ? '' : `\n(ended by ${signal}, time limit ${timeoutMs} ms)`,
      );
    });
    child.stdin.on('error', () => undefined); // it may end without reading
    child.stdin.end(stdin ?? '');
  });
}

/**
 * Runs a program that must succeed.
 *
 * @returns standard output
 * @throws {ProgramError} when its exit status is not 0
 */
export async function must(command: Command, options: RunOptions = {}): Promise<string> {
  const outcome = await run(command, options);
  if (outcome.status !== 0) throw new ProgramError(command, outcome);
  return outcome.stdout;
}

const PATIENCE_MS = 5_000;

/**
 * Runs a program that shares the terminal of this one, and passes on the signals that end it.
 *
 * @returns exit status; 1 when a signal ended it
 */
export function attach(command: Command, env: NodeJS.ProcessEnv): Promise<number> {
  const [program, ...args] = command;
  const stdio: StdioOptions = 'inherit';
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio });
    const pass = (signal: NodeJS.Signals): void => {
      child.kill(signal);
      // Whoever sends this one waits for an end; at the terminal the program itself decides.
      if (signal === 'SIGTERM') setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS).unref();
    };
    process.on('SIGINT', pass);
    process.on('SIGTERM', pass);
    child.on('error', reject);
    child.on('close', (status) => {
      process.off('SIGINT', pass);
      process.off('SIGTERM', pass);
      resolve(status ?? 1);
    });
  });
}
