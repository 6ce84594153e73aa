import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Observable } from 'rxjs';
import { debugVars, readiness, type Status } from './status.ts';

/** What the HTTP server answers from. */
export interface HttpOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly status: () => Status;
  /** The Prometheus exposition. */
  readonly metrics: () => Promise<string>;
  /** The paths it answers. Default: all. */
  readonly paths?: readonly HttpPath[];
}

/** What this server knows to answer. */
export type HttpPath = '/healthz' | '/readyz' | '/metrics' | '/debug/vars';

/**
 * Serves `/healthz`, `/readyz`, `/metrics` and `/debug/vars` while subscribed; emits the port it listens on. A port that is
 * taken is an error of the Observable.
 */
export const httpServer = (options: HttpOptions): Observable<number> =>
  new Observable((subscriber) => {
    const server = createServer((request, response) => {
      void respond(options, request, response);
    });
    server.on('error', (error) => {
      subscriber.error(error);
    });
    server.listen(options.port, options.host, () => {
      const address = server.address();
      if (address !== null && typeof address === 'object') subscriber.next(address.port);
    });
    return () => {
      server.close();
      server.closeAllConnections();
    };
  });

type Reply = readonly [status: number, contentType: string, body: string];
const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

const routes: Readonly<Record<HttpPath, (options: HttpOptions) => Reply | Promise<Reply>>> = {
  '/healthz': () => [200, TEXT, 'ok\n'],
  '/readyz': ({ status }) => {
    const { ready, reasons } = readiness(status());
    return [ready ? 200 : 503, TEXT, ready ? 'ok\n' : `${reasons.join('\n')}\n`];
  },
  '/metrics': async ({ metrics }) => [
    200,
    'text/plain; version=0.0.4; charset=utf-8',
    await metrics(),
  ],
  '/debug/vars': ({ status }) => [
    200,
    JSON_TYPE,
    `${JSON.stringify(debugVars(status()), undefined, 2)}\n`,
  ],
};

const respond = async (
  options: HttpOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const [status, contentType, body] = await answer(options, request);
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' });
  response.end(request.method === 'HEAD' ? undefined : body);
};

const ALL = Object.keys(routes) as HttpPath[];

const answer = async (options: HttpOptions, { method, url }: IncomingMessage): Promise<Reply> => {
  if (method !== 'GET' && method !== 'HEAD') return [405, TEXT, 'only GET and HEAD\n'];
  // Not through URL, which throws on what anybody may send.
  const [path = ''] = (url ?? '').split('?');
  const { paths = ALL } = options;
  const known = paths.find((one) => one === path);
  if (known === undefined) return [404, TEXT, `there is ${paths.join(', ')}\n`];
  try {
    return await routes[known](options);
  } catch (error) {
    return [500, TEXT, `${error instanceof Error ? error.message : String(error)}\n`];
  }
};
