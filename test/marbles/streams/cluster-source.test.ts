import { concat, EMPTY, interval, map, merge, mergeMap, NEVER, throwError, timer } from 'rxjs';
import { describe, it } from 'vitest';
import { KubeError, type KubeClient } from '../../../src/kube/client.ts';
import type { KubeDiscovery } from '../../../src/kube/discovery.ts';
import { clusterSource } from '../../../src/streams/cluster-source.ts';
import { marbles } from '../../support/marbles.ts';
import { watched } from '../../support/watched.ts';

const noClient: KubeClient = {
  request: () => NEVER,
  stream: () => NEVER,
  close: () => Promise.resolve(),
};

describe('a cluster as the source of resources', () => {
  it(
    'R14: tells of an API server that swallows requests, though each new look-up starts over',
    marbles(({ expectObservable }) => {
      // Looks anew each 30 s, and each look-up fails after 25 s: none of them fails three times.
      const discovery: KubeDiscovery = {
        changes$: interval(30_000).pipe(map(() => undefined)),
        refresh: () => undefined,
        served: () => EMPTY,
        byKind: () => NEVER,
        byPlural: () =>
          timer(25_000).pipe(
            mergeMap(() => throwError(() => new KubeError('timeout', 'GET /api/v1: no answer'))),
          ),
      };
      const source = clusterSource({ client: noClient, discovery, random: () => 0 });
      const reasons$ = merge(
        source.watch(watched('services')).pipe(mergeMap(() => EMPTY)),
        source.problems$.pipe(mergeMap((problems) => concat(problems.map(({ reason }) => reason)))),
      );
      expectObservable(reasons$, '^ 100s !').toBe('85100ms a', { a: 'DiscoveryFailing' });
    }),
  );
});
