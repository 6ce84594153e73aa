import { LIMITS } from '../../src/protocol/protocol.ts';
import { SocketError, exchange } from './socket.ts';
import { messageOf } from '../failures.ts';

/** What came of asking the master for a reload. */
export type ReloadAnswer =
  | { readonly kind: 'done' }
  /** HAProxy read the files and said no; the old worker goes on. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Nobody listens: HAProxy does not run. */
  | { readonly kind: 'down'; readonly message: string }
  /** Asked, and no clear answer. */
  | { readonly kind: 'lost'; readonly message: string };

/** Longest text of HAProxy that is handed on, in characters. */
const MESSAGE_LENGTH = 8_192;

/** HAProxy's master process, through the socket of its `-S` option. */
export class Master {
  readonly #socket: string;

  constructor(socket: string) {
    this.#socket = socket;
  }

  /** Asks for a reload and waits until HAProxy says what came of it. Never throws. */
  async reload(): Promise<ReloadAnswer> {
    try {
      const answer = await exchange(this.#socket, {
        text: 'reload\n',
        timeoutMs: LIMITS.reloadTimeoutMs,
      });
      if (answer.startsWith('Success=1')) return { kind: 'done' };
      if (answer.startsWith('Success=0')) return { kind: 'refused', message: complaint(answer) };
      return { kind: 'lost', message: 'the master gave no clear answer' };
    } catch (error: unknown) {
      const down = error instanceof SocketError && error.refused;
      return { kind: down ? 'down' : 'lost', message: messageOf(error) };
    }
  }

  /** Pids of all workers, the old ones that still finish connections too; `undefined`: the master does not answer. */
  async workers(): Promise<readonly number[] | undefined> {
    try {
      const text = await exchange(this.#socket, {
        text: 'show proc\n',
        timeoutMs: LIMITS.commandTimeoutMs,
      });
      if (!text.startsWith('#<PID>')) return undefined;
      return [...text.matchAll(/^(\d+)\s+worker\s/gm)].map(([, pid]) => Number(pid));
    } catch {
      return undefined;
    }
  }
}

/** The alerts in what a failed reload printed, or all of it when there are none. */
function complaint(answer: string): string {
  const lines = answer.split('\n').slice(2);
  const alerts = lines.filter((line) => line.startsWith('[ALERT]'));
  return (alerts.length > 0 ? alerts : lines).join('\n').trim().slice(0, MESSAGE_LENGTH);
}
