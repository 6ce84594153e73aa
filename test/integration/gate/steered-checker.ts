/** A HAProxy of its own for the checker: it judges as it is, until the test says what it shall do instead. */
import { chmodSync, cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** What checks shall do; `judge` is what HAProxy says itself. */
export type Steering = 'judge' | 'refuse' | 'die';

const COMMANDS: Readonly<Record<Steering, string>> = {
  judge: ':',
  refuse: `echo "[ALERT] (1) : config : parsing [haproxy.cfg:1] : unknown keyword 'nonsense'" >&2; exit 1`,
  die: 'kill -9 $$',
};

/** The program, and how it is steered. */
export class SteeredChecker {
  readonly binary: string;
  readonly #root = mkdtempSync(join(tmpdir(), 'chk-'));
  readonly #steering: string;

  constructor(haproxy: string) {
    cpSync(dirname(dirname(haproxy)), this.#root, { recursive: true });
    chmodSync(this.#root, 0o755); // whoever runs checks must get there
    const folder = join(this.#root, 'sbin');
    this.binary = join(folder, 'haproxy');
    this.#steering = join(folder, 'steering');
    renameSync(this.binary, join(folder, 'real'));
    const script = `#!/bin/sh\n[ "$1" != -c ] || . "${this.#steering}"\nexec "${join(folder, 'real')}" "$@"\n`;
    writeFileSync(this.binary, script, { mode: 0o755 });
    this.steer('judge');
  }

  /** From the next check on. */
  steer(how: Steering): void {
    writeFileSync(this.#steering, `${COMMANDS[how]}\n`);
  }

  dispose(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}
