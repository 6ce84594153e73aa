import {
  concat,
  distinctUntilChanged,
  filter,
  ignoreElements,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  scan,
  switchMap,
  take,
  takeUntil,
  tap,
} from 'rxjs';
import type { KubeClient } from '../kube/client.ts';
import { usableEpoch } from '../kube/lease.ts';
import { latestWins } from '../operators/latest-wins.ts';
import { shareLatest } from '../operators/share-latest.ts';
import {
  type AgentClient,
  isType,
  type Leadership,
  type Notification,
  type Pod,
} from '../ports.ts';
import type { LeaderElectionSettings } from '../render/render.ts';
import { highestAgentEpoch } from './agent-epochs.ts';
import { type Election, leadership } from './leadership.ts';

/** What the election of a replica hangs on. */
export interface ClusterElectionOptions {
  readonly client: KubeClient;
  readonly agents: AgentClient;
  readonly namespace: string;
  readonly identity: string;
  /** Of the configuration in force; the first value lets this replica stand. */
  readonly settings$: Observable<LeaderElectionSettings>;
  readonly pods$: Observable<ReadonlyMap<string, Pod>>;
  /** What happens in the pipeline, told a turn later. */
  readonly feedback$: Observable<Notification>;
  readonly random: () => number;
}

/**
 * The election of one replica: it stands as soon as it has a valid configuration, under the Lease which that names. With
 * `leaderElection.enabled: false` it leads at once, with an epoch above any that agents report.
 *
 * @param release$ emits when nothing is written any more
 */
export const clusterElection = (
  options: ClusterElectionOptions,
  release$: Observable<unknown>,
): Election => {
  const { client, namespace, identity, random, pods$ } = options;
  const agentEpoch$ = highestAgentEpoch({ client: options.agents, pods$ });
  const overtaken$ = options.feedback$.pipe(
    filter(isType('ApplyFailed')),
    map(({ highestEpoch }) => highestEpoch),
    filter((epoch) => epoch !== undefined),
  );
  const settings$ = options.settings$.pipe(shareLatest());
  const elected = (first: LeaderElectionSettings): Election => {
    if (!first.enabled) {
      // Two that both lead would otherwise overtake each other as fast as they can.
      const minIntervalMs = first.retryPeriodMs;
      const paced$ = overtaken$.pipe(latestWins((epoch) => of(epoch), { minIntervalMs }));
      return alone(agentEpoch$, paced$, release$);
    }
    let newest = first;
    const election = leadership({
      client,
      lease: { namespace, name: first.leaseName },
      identity,
      settings: () => newest,
      agentEpoch$,
      overtaken$,
      release$,
      random,
      now: () => performance.now(),
    });
    const following$ = settings$.pipe(
      tap((settings) => (newest = settings)),
      ignoreElements(),
      takeUntil(release$),
    );
    return { ...election, leader$: merge(election.leader$, following$) };
  };
  // It stays, so that whoever listens later hears of the same election.
  const election$ = concat(settings$.pipe(take(1), map(elected)), NEVER).pipe(
    shareLatest(),
    takeUntil(release$),
  );
  return {
    leader$: concat(
      of<Leadership>({ leading: false }),
      election$.pipe(switchMap(({ leader$ }) => leader$)),
    ).pipe(distinctUntilChanged((before, after) => !before.leading && !after.leading)),
    problems$: election$.pipe(switchMap(({ problems$ }) => problems$)),
  };
};

/** Leads without a Lease, above whatever the agents report; what no election gives would fence every agent for good. */
const alone = (
  agentEpoch$: Observable<number>,
  overtaken$: Observable<number>,
  release$: Observable<unknown>,
): Election => ({
  leader$: concat(agentEpoch$, overtaken$).pipe(
    filter((epoch) => usableEpoch(epoch) !== undefined),
    scan((highest, reported) => Math.max(highest, reported + 1), 0),
    distinctUntilChanged(),
    map((epoch) => ({ leading: true, epoch })),
    takeUntil(release$),
  ),
  problems$: of([]),
});
