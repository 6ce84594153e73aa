import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What an echo backend answers, as JSON. */
export interface Echo {
  readonly name: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** A backend that answers every request with its own name and what it was asked. */
export interface EchoBackend {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

/** Starts an echo backend on a free port of 127.0.0.1. */
export const startEcho = (name: string): Promise<EchoBackend> =>
  new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      const echo: Echo = { name, path: request.url ?? '', headers: request.headers };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(echo));
    });
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const stop = (): Promise<void> =>
        new Promise((stopped) => {
          server.close(() => stopped());
          server.closeAllConnections();
        });
      resolve({ port: (server.address() as AddressInfo).port, stop });
    });
  });
