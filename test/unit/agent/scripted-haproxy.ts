import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createLog } from '../../../agent/log.ts';
import { createPod, type Pod } from '../../../agent/pod.ts';

/** The parts of an agent in a directory, its sockets beside it; nothing is recovered yet. */
export const podIn = (base: string): Promise<Pod> =>
  createPod(
    {
      baseDir: base,
      config: 'haproxy.cfg',
      masterSocket: join(base, 'master.sock'),
      workerSocket: join(base, 'worker.sock'),
      stateFile: join(base, '.haptic-agent.json'),
      listen: { host: '127.0.0.1', port: 0 },
      metricsListen: undefined,
      access: { kind: 'token', tokenFile: '' },
      bootstrap: undefined,
      reloadIntervalMs: 0,
      bodyIdleMs: 1_000,
    },
    createLog(() => undefined),
  );

/** A command-line socket that says what a test wants, also what a real HAProxy cannot be made to say. */
export class ScriptedSocket {
  /** What was said to it, a line each. */
  readonly heard: string[] = [];
  readonly #server: Server;

  /** @param answer `undefined`: hangs up without a word; `null`: says nothing and does not hang up */
  constructor(path: string, answer: (line: string) => string | null | undefined) {
    this.#server = createServer({ allowHalfOpen: true }, (connection: Socket) => {
      connection.on('error', () => undefined);
      connection.once('data', (part: Buffer) => {
        const line = part.toString().trim();
        this.heard.push(line);
        const text = answer(line);
        if (text === undefined) connection.destroy();
        else if (text !== null) connection.end(text);
      });
    });
    this.#server.listen(path);
  }

  close(): void {
    this.#server.close();
  }
}

/** The answer of a worker to `show info`. */
export const infoOf = (pid: number, startSec: number): string =>
  `Name: HAProxy\nVersion: 3.0.11\nPid: ${pid}\nStart_time_sec: ${startSec}\n\n`;
