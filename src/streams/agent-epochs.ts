import {
  catchError,
  EMPTY,
  map,
  max,
  merge,
  type Observable,
  of,
  switchMap,
  take,
  takeUntil,
  timer,
} from 'rxjs';
import { usableEpoch } from '../kube/lease.ts';
import type { AgentClient, Pod } from '../ports.ts';

/** Where {@link highestAgentEpoch} asks. */
export interface AgentEpochOptions {
  readonly client: AgentClient;
  /** Replays the newest set, as it is shared with the pipeline. */
  readonly pods$: Observable<ReadonlyMap<string, Pod>>;
  /** Longest wait in milliseconds for pods and their answers. Default 1000. */
  readonly withinMs?: number;
}

/**
 * The highest epoch that any agent reports now, 0 when none does: emits once and completes, when all have answered or when
 * the time is up. Agents that cannot be asked, and epochs that no election gives, do not count. Never errors.
 */
export const highestAgentEpoch = ({
  client,
  pods$,
  withinMs = 1_000,
}: AgentEpochOptions): Observable<number> => {
  const ask = (pod: Pod): Observable<number> =>
    client.state(pod, { verify: false }).pipe(
      map(({ highestEpoch }) => usableEpoch(highestEpoch) ?? 0),
      catchError(() => EMPTY),
    );
  const answers$ = pods$.pipe(
    take(1),
    switchMap((pods) => merge(...[...pods.values()].map(ask))),
    catchError(() => EMPTY),
    takeUntil(timer(withinMs)),
  );
  return merge(of(0), answers$).pipe(max());
};
