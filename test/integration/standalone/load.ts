/** Constant traffic through HAProxy, on connections that are kept and on new ones, and what became of each request. */
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

/** What the traffic is. */
export interface LoadOptions {
  readonly port: number;
  readonly host: string;
  readonly path?: string;
}

/** Traffic that runs. */
export interface Load {
  /** Requests answered so far, by the name of the backend that answered. */
  readonly answers: ReadonlyMap<string, number>;
  /** What went wrong, a line each. */
  readonly errors: readonly string[];
  readonly stop: () => Promise<void>;
}

/** Clients of each sort, each with one request at a time and a short pause after it. */
const CLIENTS = 3;
const PAUSE_MS = 4;

/** Starts the traffic. Backends answer JSON with their `name`, see the echo backend. */
export const startLoad = (options: LoadOptions): Load => {
  const answers = new Map<string, number>();
  const errors: string[] = [];
  const kept = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  let running = true;
  const client = async (agent: Agent | false): Promise<void> => {
    while (running) {
      try {
        const name = await answered(options, agent);
        answers.set(name, (answers.get(name) ?? 0) + 1);
      } catch (error: unknown) {
        errors.push(`${agent === false ? 'new' : 'kept'} connection: ${String(error)}`);
      }
      await pause(PAUSE_MS);
    }
  };
  const clients = Array.from({ length: CLIENTS }, () => [client(kept), client(false)]).flat();
  return {
    answers,
    errors,
    stop: async () => {
      running = false;
      await Promise.all(clients);
      kept.destroy();
    },
  };
};

/** The name of who answered; a connection that was closed while it was idle is tried once more, as every client does. */
const answered = (options: LoadOptions, agent: Agent | false, again = true): Promise<string> =>
  new Promise((resolve, reject) => {
    const call = request(
      {
        host: '127.0.0.1',
        port: options.port,
        path: options.path ?? '/',
        headers: { host: options.host },
        agent,
        timeout: 20_000,
      },
      (response) => {
        let body = '';
        response.on('data', (part: Buffer) => (body += part.toString()));
        response.on('error', reject);
        response.on('end', () => {
          if (response.statusCode !== 200) {
            reject(new Error(`status ${String(response.statusCode)}: ${body.slice(0, 100)}`));
          } else resolve((JSON.parse(body) as { readonly name: string }).name);
        });
      },
    );
    call.on('timeout', () => call.destroy(new Error('no answer within 20 s')));
    call.on('error', (error: NodeJS.ErrnoException) => {
      const wasIdle = call.reusedSocket && error.code === 'ECONNRESET';
      if (wasIdle && again) answered(options, agent, false).then(resolve, reject);
      else reject(error);
    });
    call.end();
  });
