import {
  asyncScheduler,
  catchError,
  concat,
  EMPTY,
  filter,
  forkJoin,
  ignoreElements,
  map,
  merge,
  type Observable,
  of,
  race,
  retry,
  switchMap,
  take,
  throwError,
  timeout,
  timer,
} from 'rxjs';
import { KubeError } from '../kube/client.ts';
import {
  claimOf,
  getLease,
  type Lease,
  leaseBody,
  type LeaseWrite,
  nextEpoch,
  putLease,
  seeLease,
} from '../kube/lease.ts';
import type { Problem } from '../snapshot/problem.ts';
import {
  agentEpochProblem,
  failAgain,
  leaseEpochProblem,
  type LeaseVerb,
  notReleased,
} from './election-problems.ts';
import type { ElectionOptions, Reports, State, Term } from './election-state.ts';

/** Tries and milliseconds for giving the Lease back. */
const RELEASE = { count: 3, delay: 200, withinMs: 3_000 };
/** What a released Lease says, as other implementations write it. */
const RELEASED_MS = 1_000;

/** What one replica does next, by where it stands. Every step ends in a state; none errors. */
export class ElectionSteps {
  readonly #options: ElectionOptions;
  readonly #overtaken$: Observable<Reports>;
  readonly #now: () => number;

  constructor(options: ElectionOptions, overtaken$: Observable<Reports>) {
    this.#options = options;
    this.#overtaken$ = overtaken$;
    this.#now = options.now ?? (() => asyncScheduler.now());
  }

  /** The state after this one, when its time has come. */
  next(state: State): Observable<State> {
    const { term, pauseMs } = state;
    const due$ = timer(pauseMs);
    if (term === undefined) return due$.pipe(switchMap(() => this.#compete(state)));
    const raise$ = this.#overtaken$.pipe(filter(({ highest }) => this.#mustRaise(term, highest)));
    const renewed$ = merge(due$, raise$).pipe(
      take(1),
      switchMap(() => this.#renew(state, term)),
    );
    // First in the race, so that a renewal that ends together with the term is too late.
    const lost$ = timer(Math.max(0, term.lostAt - this.#now())).pipe(map(() => this.#lost(state)));
    return race(lost$, renewed$);
  }

  /** Gives the Lease back if it is ours, also when a request was in flight whose answer nobody has seen. */
  release(state: State): Observable<State> {
    const { lease: where, identity } = this.#options;
    const over: State = { ...state, term: undefined };
    const released$ = this.#read().pipe(
      switchMap((lease) =>
        lease?.holder === identity
          ? this.#write(lease, {
              holder: '',
              epoch: Math.max(lease.epoch ?? 0, state.held),
              durationMs: RELEASED_MS,
              acquires: false,
            })
          : EMPTY,
      ),
      retry(RELEASE),
      timeout({
        first: RELEASE.withinMs,
        with: () => throwError(() => new Error('no answer in time')),
      }),
      ignoreElements(),
      catchError((error: unknown) => of({ ...over, odd: [notReleased(where, error)] })),
    );
    return concat(of(over), released$);
  }

  #compete(state: State): Observable<State> {
    const { identity } = this.#options;
    const { leaseDurationMs: durationMs } = this.#options.settings();
    return this.#read().pipe(
      switchMap((lease) => {
        const now = this.#now();
        const seen = seeLease(state.seen, lease, now);
        const looked = { ...state, seen, odd: this.#oddIn(lease), pauseMs: this.#pauseMs() };
        const silentMs = now - (seen?.since ?? now);
        return claimOf(lease, { identity, silentMs, durationMs }) === 'held'
          ? of({ ...looked, failing: undefined })
          : this.#take(looked, lease);
      }),
      catchError((error: unknown) => of(this.#failed(state, 'get', error))),
    );
  }

  #take(state: State, lease: Lease | undefined): Observable<State> {
    const verb = lease === undefined ? 'create' : 'update';
    return forkJoin([this.#options.agentEpoch$, this.#overtaken$.pipe(take(1))]).pipe(
      switchMap(([agents, { highest }]) => {
        const epoch = nextEpoch(lease?.epoch, agents, highest, state.held);
        return this.#lead(state, lease, { epoch, raisedAt: -Infinity });
      }),
      catchError((error: unknown) =>
        // Another replica was faster; or there is no namespace to create it in, which is no race.
        of(
          isTouched(error, verb)
            ? { ...state, failing: undefined }
            : this.#failed(state, verb, error),
        ),
      ),
    );
  }

  #renew(state: State, term: Term): Observable<State> {
    const attempt = (lease: Lease): Observable<State> =>
      this.#overtaken$.pipe(
        take(1),
        switchMap(({ highest }) => {
          const isRaised = highest >= term.epoch;
          const epoch = isRaised ? nextEpoch(lease.epoch, highest) : term.epoch;
          const raisedAt = isRaised ? this.#now() : term.raisedAt;
          return this.#lead(state, lease, { epoch, raisedAt });
        }),
      );
    return attempt(term.lease).pipe(
      catchError((error: unknown) =>
        isTouched(error, 'update')
          ? this.#lookAgain(state, attempt)
          : of(this.#failed(state, 'update', error)),
      ),
      catchError((error: unknown) => of(this.#failed(state, 'get', error))),
    );
  }

  /** Somebody has touched the Lease: the term goes on only if it still names us. */
  #lookAgain(state: State, attempt: (lease: Lease) => Observable<State>): Observable<State> {
    const { identity } = this.#options;
    return this.#read().pipe(
      switchMap((lease) =>
        lease?.holder === identity ? attempt(lease) : of(this.#lost(state, lease)),
      ),
    );
  }

  /** Writes the Lease for a term that begins or goes on; leads when that is done. */
  #lead(
    state: State,
    lease: Lease | undefined,
    { epoch, raisedAt }: Pick<Term, 'epoch' | 'raisedAt'>,
  ): Observable<State> {
    const { identity, settings } = this.#options;
    const { leaseDurationMs, renewDeadlineMs } = settings();
    const lostAt = this.#now() + Math.min(renewDeadlineMs, leaseDurationMs);
    const written$ = this.#write(lease, {
      holder: identity,
      // Whatever wrote a higher one there, the value on the Lease never falls.
      epoch: Math.max(epoch, lease?.epoch ?? 0),
      durationMs: leaseDurationMs,
      acquires: state.term === undefined,
    });
    return forkJoin([written$, this.#overtaken$.pipe(take(1))]).pipe(
      map(([written, { absurd }]) => ({
        term: { lease: written, epoch, lostAt, raisedAt },
        held: epoch,
        seen: seeLease(state.seen, written, this.#now()),
        failing: undefined,
        odd: [...this.#oddIn(lease), ...this.#oddReport(absurd)],
        pauseMs: this.#pauseMs(),
      })),
    );
  }

  #lost(state: State, lease?: Lease): State {
    const seen = seeLease(state.seen, lease, this.#now());
    // Where nobody holds it there is nothing to wait for.
    const pauseMs = lease === undefined || lease.holder === '' ? 0 : this.#pauseMs();
    return { ...state, term: undefined, seen, pauseMs };
  }

  #failed(state: State, verb: LeaseVerb, error: unknown): State {
    const { lease: where, settings } = this.#options;
    const patienceMs = 2 * settings().retryPeriodMs;
    const asked = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0;
    return {
      ...state,
      failing: failAgain(state.failing, where, { now: this.#now(), verb, error, patienceMs }),
      pauseMs: Math.max(this.#pauseMs(), Math.min(asked, patienceMs)),
    };
  }

  /** Half to three quarters of the retry period: with the time that agents get, a takeover takes less than one. */
  #pauseMs(): number {
    const { random, settings } = this.#options;
    return Math.round(settings().retryPeriodMs * (0.5 + random() / 4));
  }

  /** Agents that obey another leader of the same epoch report that epoch: both took it while the Lease had been deleted. */
  #mustRaise({ epoch, raisedAt }: Term, reported: number): boolean {
    const isDue = this.#now() - raisedAt >= this.#options.settings().retryPeriodMs;
    return isDue && reported >= epoch;
  }

  #oddIn(lease: Lease | undefined): readonly Problem[] {
    if (lease?.oddEpoch === undefined) return [];
    return [leaseEpochProblem(this.#options.lease, lease)];
  }

  #oddReport(epoch: number | undefined): readonly Problem[] {
    return epoch === undefined ? [] : [agentEpochProblem(this.#options.lease, epoch)];
  }

  #read(): Observable<Lease | undefined> {
    const { client, lease } = this.#options;
    return getLease(client, lease, this.#timeoutMs());
  }

  #write(lease: Lease | undefined, write: Omit<LeaseWrite, 'wallMs'>): Observable<Lease> {
    const { client, lease: where, wallNow = () => asyncScheduler.now() } = this.#options;
    const body = leaseBody(where, lease, { ...write, wallMs: wallNow() });
    return putLease(client, where, { body, timeoutMs: this.#timeoutMs() });
  }

  #timeoutMs(): number {
    return this.#options.settings().retryPeriodMs;
  }
}

/** Whether a write failed because the Lease is no longer what was read. */
const isTouched = (error: unknown, verb: LeaseVerb): boolean =>
  error instanceof KubeError &&
  (error.code === 'conflict' || (verb === 'update' && error.code === 'not-found'));
