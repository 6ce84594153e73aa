import {
  catchError,
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  expand,
  ignoreElements,
  map,
  merge,
  NEVER,
  Observable,
  of,
  scan,
  startWith,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import { shareLatest } from '../operators/share-latest.ts';
import type { Leadership } from '../ports.ts';
import type { Problem } from '../snapshot/problem.ts';
import {
  addReport,
  type ElectionOptions,
  NO_REPORT,
  NOBODY,
  type State,
} from './election-state.ts';
import { ElectionSteps } from './election-steps.ts';

/** Who leads, and what hinders the election; both streams share one election, which runs while either has a subscriber. */
export interface Election {
  /** `leading: false` at once, then each change. Each term has a higher epoch than the one before, whoever led it. */
  readonly leader$: Observable<Leadership>;
  /** The newest list of all open problems. */
  readonly problems$: Observable<readonly Problem[]>;
}

/**
 * The election of a leader by a Lease: at most one replica leads at a time, and each term has a higher epoch.
 *
 * A replica takes the Lease when there is none, when it was released, when it is its own, or when it did not change for
 * the holder's lease duration, by this replica's clock since it last saw a change; clocks of replicas are never compared.
 * It first asks the agents, then writes max(Lease, agents, own)+1 where nobody has written meanwhile, and only then leads.
 * It renews, with jitter, at least each retry period and stops leading when `renewDeadlineMs` have passed since the start
 * of the last request that succeeded, whatever is in flight; at once when the Lease is gone or another's. Unsubscribing
 * is the hard stop: it writes nothing, and the Lease runs out.
 */
export const leadership = (options: ElectionOptions): Election => {
  const state$ = elect(options).pipe(shareLatest());
  return {
    leader$: state$.pipe(
      map(({ term }) => term?.epoch),
      distinctUntilChanged(),
      map((epoch) => (epoch === undefined ? { leading: false } : { leading: true, epoch })),
    ),
    problems$: state$.pipe(map(problemsOf), distinctUntilChanged(sameProblems)),
  };
};

/**
 * Runs what an election guards: the Lease is held until the run has ended, so until it has written its last, and only then
 * given back, so that another replica takes over at once. An error of the run is passed on after that. Unsubscribing is the
 * hard stop of both.
 *
 * @param elect an election that ends with `release$`
 * @param run what listens to the election
 */
export const underElection = <T>(
  elect: (release$: Observable<unknown>) => Election,
  run: (election: Election) => Observable<T>,
): Observable<T> =>
  defer(() => {
    const release$ = new Subject<void>();
    const election = elect(release$);
    let failed$: Observable<never> = EMPTY;
    const guarded$ = run(election).pipe(
      catchError((error: unknown) => {
        failed$ = new Observable((failed) => failed.error(error));
        return EMPTY;
      }),
      tap({ complete: () => release$.next() }),
    );
    return concat(
      merge(election.leader$.pipe(ignoreElements()), guarded$),
      defer(() => failed$),
    );
  });

const elect = (options: ElectionOptions): Observable<State> =>
  defer(() => {
    const overtaken$ = merge(options.overtaken$, NEVER).pipe(
      scan(addReport, NO_REPORT),
      startWith(NO_REPORT),
      shareLatest(),
    );
    const steps = new ElectionSteps(options, overtaken$);
    let last = NOBODY;
    const terms$ = of(NOBODY).pipe(
      expand((state) => steps.next(state)),
      tap((state) => (last = state)),
    );
    return concat(
      merge(overtaken$.pipe(ignoreElements()), terms$).pipe(takeUntil(options.release$)),
      defer(() => steps.release(last)),
    );
  });

const problemsOf = ({ failing, odd }: State): readonly Problem[] =>
  failing?.problem === undefined ? odd : [failing.problem, ...odd];

const sameProblems = (before: readonly Problem[], after: readonly Problem[]): boolean =>
  before.length === after.length &&
  before.every(({ message }, index) => message === after[index]?.message);
