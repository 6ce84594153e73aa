import { connect } from 'node:net';

/** No answer, or only a part of one: what the other side did is not known. */
export class SocketError extends Error {
  /** True when nothing was sent, because nobody listens. */
  readonly refused: boolean;
  constructor(message: string, options: { readonly refused: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'SocketError';
    this.refused = options.refused;
  }
}

export interface Exchange {
  /** One line with its newline, or one with a payload and its empty line. */
  readonly text: string;
  /** Milliseconds until the whole answer must be there. */
  readonly timeoutMs: number;
  /** Least bytes of answer that is kept; more is cut. Default: 16 MiB. */
  readonly maxBytes?: number;
}

/**
 * Says one thing to a command-line socket and reads the answer to its end.
 *
 * @throws SocketError
 */
export function exchange(
  path: string,
  { text, timeoutMs, maxBytes = 16 << 20 }: Exchange,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    let sent = false;
    const connection = connect({ path, allowHalfOpen: true });
    const fail = (message: string, cause?: unknown): void => {
      clearTimeout(timer);
      connection.destroy();
      reject(new SocketError(message, { refused: !sent, cause }));
    };
    const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
    connection.on('connect', () => {
      sent = true;
      connection.end(text); // the master keeps the connection open until our side is closed
    });
    connection.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes > maxBytes) fail('the answer is too long');
      else parts.push(part);
    });
    connection.on('error', (error) => fail(`cannot talk to HAProxy: ${error.message}`, error));
    connection.on('end', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(parts).toString());
    });
  });
}
