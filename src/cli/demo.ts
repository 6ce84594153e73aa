import { createServer, type Server } from 'node:http';
import { distinct, mergeMap, Observable } from 'rxjs';
import type { KubeObject } from '../snapshot/objects.ts';

/** The loopback endpoints of EndpointSlices: where demo backends can answer. */
export const demoPorts = (slices: readonly KubeObject[]): readonly number[] => {
  const ports = new Set<number>();
  for (const slice of slices) {
    const endpoints = arrayOf(slice['endpoints']);
    const onLoopback = endpoints.some((endpoint) =>
      arrayOf(field(endpoint, 'addresses')).includes('127.0.0.1'),
    );
    if (!onLoopback) continue;
    for (const port of arrayOf(slice['ports'])) {
      const number = field(port, 'port');
      if (isPort(number)) ports.add(number);
    }
  }
  return [...ports].sort((a, b) => a - b);
};

/** Manifests may say anything; privileged ports are not for a demo. */
const isPort = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) > 1_023 && Number(value) < 65_536;

const arrayOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;

/** What became of a port: a demo backend listens on it, or why none does. */
export interface DemoPort {
  readonly port: number;
  readonly error: string | undefined;
}

/**
 * Small HTTP servers on loopback while subscribed, one for each different port; each tells who answered. A port that is
 * taken spoils no other: somebody's own backend may be there.
 */
export const demoBackends = (port$: Observable<number>): Observable<DemoPort> =>
  port$.pipe(distinct(), mergeMap(demoBackend));

const demoBackend = (port: number): Observable<DemoPort> =>
  new Observable((subscriber) => {
    const server: Server = createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(
        `demo backend on port ${String(port)}: ${request.method ?? ''} ${request.headers.host ?? ''}${request.url ?? ''}\n`,
      );
    });
    server.on('error', ({ message }) => {
      subscriber.next({ port, error: message });
    });
    server.listen(port, '127.0.0.1', () => {
      subscriber.next({ port, error: undefined });
    });
    return () => {
      server.close();
      server.closeAllConnections();
    };
  });
