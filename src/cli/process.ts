import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { Observable } from 'rxjs';

export type ProcessEvent =
  | { readonly type: 'started'; readonly pid: number }
  | { readonly type: 'line'; readonly stream: 'stdout' | 'stderr'; readonly text: string };

export interface ProcessOptions {
  /** What messages call it. Default: the last part of `command`. */
  readonly name?: string;
  readonly command: string;
  readonly arguments: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** How long the process has to end after SIGTERM before it is killed, in milliseconds. Default 5000. */
  readonly graceMs?: number;
}

/** Lines of standard error that are repeated when a process failed. */
const LAST_WORDS = 10;

/** The process ended by itself. */
export class ProcessEnded extends Error {
  override readonly name = 'ProcessEnded';
}

/**
 * Runs a process while subscribed and emits its start and its output line by line. Its end is an error, whatever the
 * status, with its last words when it failed; unsubscribing ends it with SIGTERM, after the grace time with SIGKILL.
 */
export const childProcess = (options: ProcessOptions): Observable<ProcessEvent> =>
  new Observable((subscriber) => {
    const name = options.name ?? basename(options.command);
    const child = spawn(options.command, options.arguments, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: options.environment ?? {},
      // A group of its own: Ctrl-C in the terminal is for the controller, which ends its children in order.
      detached: true,
    });
    let ended = false;
    let lastWords: readonly string[] = [];
    child.on('error', (error) => {
      ended = true;
      subscriber.error(new ProcessEnded(`${name} cannot run: ${error.message}`, { cause: error }));
    });
    child.on('spawn', () => {
      subscriber.next({ type: 'started', pid: child.pid ?? 0 });
    });
    child.on('close', (code, signal) => {
      ended = true;
      const failed = code !== null && code !== 0 && lastWords.length > 0;
      const why = failed ? `: ${lastWords.join(' / ')}` : '';
      subscriber.error(new ProcessEnded(`${name} ended with ${howEnded(code, signal)}${why}`));
    });
    for (const stream of ['stdout', 'stderr'] as const) {
      createInterface({ input: child[stream] }).on('line', (text) => {
        if (stream === 'stderr' && text.trim() !== '')
          lastWords = [...lastWords, text].slice(-LAST_WORDS);
        subscriber.next({ type: 'line', stream, text });
      });
    }
    return () => {
      if (ended) return;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), options.graceMs ?? 5_000);
      child.on('close', () => {
        clearTimeout(timer);
      });
    };
  });

/** A master that ends because its worker was killed gives 128 and the signal as its status. */
const howEnded = (code: number | null, signal: string | null): string => {
  if (signal !== null) return `signal ${signal}`;
  const number = (code ?? 0) - 128;
  const [name] = Object.entries(constants.signals).find(([, one]) => one === number) ?? [];
  return name === undefined ? `status ${String(code)}` : `status ${String(code)} (${name})`;
};
