import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { map, NEVER, type Observable, of, Subject, type Subscription } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createKubeClient } from '../../../src/kube/undici-client.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { type Election, leadership, underElection } from '../../../src/streams/leadership.ts';

const settings = { leaseDurationMs: 2_000, renewDeadlineMs: 1_200, retryPeriodMs: 400 };

/** One Lease behind HTTP, compared and set by resourceVersion; 403 for the verbs in `forbidden`. */
class LeaseServer {
  lease: KubeObject | undefined;
  readonly forbidden = new Set<string>();
  readonly paths = new Set<string>();
  readonly #server: Server;
  #version = 0;

  constructor() {
    this.#server = createServer((request, response) => {
      void json(request)
        .catch(() => undefined)
        .then((body) => {
          this.paths.add(`${request.method ?? ''} ${request.url ?? ''}`);
          const [status, answer] = this.#answer(request.method ?? '', body as KubeObject);
          response.writeHead(status, { 'content-type': 'application/json' });
          response.end(JSON.stringify(answer));
        });
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer(method: string, body: KubeObject): readonly [number, unknown] {
    if (this.forbidden.has(method)) return [403, { kind: 'Status', message: 'no right' }];
    const held = this.lease;
    if (method !== 'POST' && held === undefined) return [404, { kind: 'Status' }];
    if (method === 'GET') return [200, held];
    const isNewest = held?.metadata.resourceVersion === body.metadata.resourceVersion;
    if (!isNewest) return [409, { kind: 'Status', message: 'changed' }];
    this.#version += 1;
    const resourceVersion = String(this.#version);
    this.lease = { ...body, metadata: { ...body.metadata, resourceVersion } };
    return [method === 'POST' ? 201 : 200, this.lease];
  }
}

describe('an election over HTTP', () => {
  const servers: LeaseServer[] = [];
  const clients: KubeClient[] = [];
  const running: Subscription[] = [];
  afterEach(async () => {
    running.splice(0).forEach((subscription) => subscription.unsubscribe());
    await Promise.all(clients.splice(0).map((client) => client.close()));
    servers.splice(0).forEach((server) => server.close());
  });

  const serve = async (): Promise<readonly [LeaseServer, KubeClient]> => {
    const server = new LeaseServer();
    servers.push(server);
    const client = createKubeClient({
      server: await server.listen(),
      namespace: 'ns',
      credentials: () => Promise.resolve({ headers: {}, tls: {} }),
    });
    clients.push(client);
    return [server, client];
  };

  const replica =
    (client: KubeClient, identity: string) =>
    (release$: Observable<unknown>): Election =>
      leadership({
        client,
        lease: { namespace: 'ns', name: 'haptic' },
        identity,
        settings: () => settings,
        agentEpoch$: of(0),
        overtaken$: NEVER,
        release$,
        random: Math.random,
        now: () => performance.now(),
      });

  /** Who led which epoch, in order. */
  const follow = (log: string[], name: string, { leader$ }: Election): Subscription => {
    const subscription = leader$.subscribe((leader) => {
      if (leader.leading) log.push(`${name} ${String(leader.epoch)}`);
    });
    running.push(subscription);
    return subscription;
  };

  it('hands over at once in order, and after the lease duration when the leader just vanishes', async () => {
    const [server, client] = await serve();
    const log: string[] = [];
    const stop$ = new Subject<void>();
    const first$ = underElection(replica(client, 'a'), (election) => {
      follow(log, 'a', election);
      return stop$;
    });
    const ended = new Promise<void>((resolve) => {
      running.push(first$.subscribe({ complete: resolve }));
    });
    await vi.waitFor(() => expect(log).toStrictEqual(['a 1']), 5_000);
    const second = follow(log, 'b', replica(client, 'b')(NEVER));
    stop$.complete();
    await ended;
    const released = performance.now();
    await vi.waitFor(() => expect(log).toStrictEqual(['a 1', 'b 2']), {
      timeout: 5_000,
      interval: 5,
    });
    // Two retry periods rather than one: the machine may be busy. The lease duration is five.
    expect(performance.now() - released).toBeLessThan(2 * settings.retryPeriodMs);

    second.unsubscribe();
    const vanished = performance.now();
    follow(log, 'c', replica(client, 'c')(NEVER));
    await vi.waitFor(() => expect(log.at(-1)).toBe('c 3'), { timeout: 10_000, interval: 20 });
    expect(performance.now() - vanished).toBeGreaterThanOrEqual(settings.leaseDurationMs - 50);
    expect([...server.paths].sort()).toStrictEqual([
      'GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/haptic',
      'POST /apis/coordination.k8s.io/v1/namespaces/ns/leases',
      'PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/haptic',
    ]);
  });

  it('tells which right is missing, and leads when it is given', async () => {
    const [server, client] = await serve();
    server.forbidden.add('POST');
    const log: string[] = [];
    const election = replica(client, 'a')(NEVER);
    const told: string[] = [];
    running.push(
      election.problems$
        .pipe(map((problems) => problems.map(({ reason, message }) => `${reason} ${message}`)))
        .subscribe((list) => told.push(list.join())),
    );
    follow(log, 'a', election);
    await vi.waitFor(
      () => expect(told.at(-1)).toMatch(/^LeaseForbidden the verb create .*no right/),
      5_000,
    );
    server.forbidden.clear();
    await vi.waitFor(() => expect(log).toStrictEqual(['a 1']), 5_000);
    expect(told.at(-1)).toBe('');
  });
});
