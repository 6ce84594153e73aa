import { concat, map, NEVER, type Observable, scan, startWith } from 'rxjs';
import { retryBackoff } from '../operators/retry-backoff.ts';
import type { AgentClient, Leadership, Pod } from '../ports.ts';

/** The one pod of a standalone instance; each start of its HAProxy makes it another pod, as in a cluster. */
export const standalonePod = (port: number, start = 0): Pod => ({
  key: `standalone/${String(start)}`,
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

/** The set of the one pod, anew for each restart of HAProxy: what it holds then has to be learnt. */
export const standalonePods = (
  port: number,
  restarts$: Observable<unknown>,
): Observable<ReadonlyMap<string, Pod>> =>
  restarts$.pipe(
    scan((start) => start + 1, 0),
    startWith(0),
    map((start) => standalonePod(port, start)),
    map((pod) => new Map([[pod.key, pod]])),
  );
