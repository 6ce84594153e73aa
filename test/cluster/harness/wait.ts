/**
 * Waiting for something that happens elsewhere.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** What is waited for, and how long. */
export interface Wait {
  /** For the message of the failure. */
  readonly what: string;
  readonly timeoutMs: number;
  /** Time between two attempts. Default: 150 ms. */
  readonly intervalMs?: number;
}

/**
 * Tries until it is true.
 *
 * @throws after the time is up
 */
export async function until(
  { what, timeoutMs, intervalMs = 150 }: Wait,
  attempt: () => Promise<boolean>,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await attempt())) {
    if (Date.now() > end) throw new Error(`after ${timeoutMs / 1000} s still waiting for ${what}`);
    await sleep(intervalMs);
  }
}

/** @returns the last lines of every log of a cluster */
export function logEnds(state: string, lines = 12): string {
  const folder = join(state, 'logs');
  return readdirSync(folder)
    .map((name) => {
      const end = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').slice(-lines);
      return `== ${name}\n${end.join('\n')}`;
    })
    .join('\n');
}
