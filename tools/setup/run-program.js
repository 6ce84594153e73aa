import { spawnSync } from 'node:child_process';

/** An expected failure of the set-up: its message is for the person at the terminal, without a stack. */
export class SetupError extends Error {
  /** Whether it says that a host could not be reached. */
  get isOffline() {
    return isOffline(this.message);
  }
}

/**
 * Whether what npm or apt printed says that a host could not be reached.
 *
 * @param {string} text
 */
export function isOffline(text) {
  return /E(NOTFOUND|CONNREFUSED|TIMEDOUT|AI_AGAIN|NETUNREACH)|could not (connect|resolve)|unable to connect|temporary failure|timed out/i.test(
    text,
  );
}

/**
 * Tells the person at the terminal what the set-up is doing.
 *
 * @param {string} message one line
 */
export function progress(message) {
  process.stderr.write(`haptic: ${message}\n`);
}

/**
 * Runs a program to its end and captures what it prints.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, timeoutMs?: number }} [options] time-out: 5 minutes
 * @returns {{ ok: boolean, stdout: string, stderr: string }} not ok when it could not be started too
 */
export function runProgram(program, args, options = {}) {
  const { cwd, env = process.env, timeoutMs = 300_000 } = options;
  const result = spawnSync(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env,
    encoding: 'utf8',
    timeout: timeoutMs,
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const error = result.error === undefined ? '' : `${program}: ${result.error.message}\n`;
  return {
    ok: result.status === 0,
    stdout: result.stdout ?? '',
    stderr: error + (result.stderr ?? ''),
  };
}
