import { map, type Observable, of, concat, NEVER } from 'rxjs';
import { retryBackoff } from '../operators/retry-backoff.ts';
import type { AgentClient, Leadership, Pod } from '../ports.ts';

/** The one pod of a standalone instance. */
export const standalonePod = (port: number): Pod => ({
  key: 'standalone',
  name: 'haproxy',
  url: `http://127.0.0.1:${String(port)}`,
});

/**
 * Leadership without an election: the state directory is locked, so this process leads as soon as its agent answers, with
 * an epoch above any the agent has seen. Waits for the agent as long as it takes.
 */
export const standaloneLeader = (client: AgentClient, pod: Pod): Observable<Leadership> =>
  concat(
    client.state(pod, { verify: false }).pipe(
      map(({ highestEpoch }): Leadership => ({ leading: true, epoch: highestEpoch + 1 })),
      retryBackoff({ initialMs: 20, factor: 1.5, maxMs: 1_000 }),
    ),
    NEVER,
  );

/** The set of one pod, for good. */
export const standalonePods = (pod: Pod): Observable<ReadonlyMap<string, Pod>> =>
  concat(of(new Map([[pod.key, pod]])), NEVER);
