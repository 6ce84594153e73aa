import {
  asapScheduler,
  asyncScheduler,
  connect,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  type Observer,
  observeOn,
  of,
  type OperatorFunction,
  scan,
  Subject,
  switchMap,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { sha256 } from '../digest.ts';
import { shareLatest } from '../operators/share-latest.ts';
import { switchMapWithin } from '../operators/switch-map-within.ts';
import {
  type Checker,
  isType,
  type Notification,
  type NotificationOf,
  type RenderEngine,
} from '../ports.ts';
import { nextDue, quarantineStep } from '../quarantine/machine.ts';
import { quarantinedObjects, type Substituted } from '../quarantine/quarantine.ts';
import {
  initialQuarantine,
  type QuarantineEvent,
  type QuarantineFacts,
  type QuarantineState,
} from '../quarantine/state.ts';
import { type StoredQuarantine, toStored } from '../quarantine/stored.ts';
import { withQuarantineProblems } from '../quarantine/tell.ts';
import type { RenderFailure, RenderResult } from '../render/render.ts';
import { emptySnapshot, IndexedSnapshot } from '../snapshot/apply-batch.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { searchCulprits } from './search-culprits.ts';

/** What the gate says about a render. */
export type GateVerdict = NotificationOf<'Accepted' | 'Refused'>;

const isVerdict = (notification: Notification): notification is GateVerdict =>
  notification.type === 'Accepted' || notification.type === 'Refused';

/** Tells verdicts where they are wanted, and passes everything on. */
export const tellVerdicts =
  (given$: Observer<GateVerdict>): MonoTypeOperatorFunction<Notification> =>
  (notification$) =>
    notification$.pipe(
      tap((notification) => {
        if (isVerdict(notification)) given$.next(notification);
      }),
    );

/** Verdicts as they come; who comes late hears what was accepted last. */
export const verdictsFrom = (verdict$: Observable<GateVerdict>): Observable<GateVerdict> =>
  merge(
    verdict$.pipe(filter(isType('Accepted')), shareLatest()),
    verdict$.pipe(filter(isType('Refused'))),
  );

/** Options of {@link renderWithQuarantine}. */
export interface QuarantineOptions {
  readonly engine: RenderEngine;
  /** One render; emits one result. */
  readonly render: (snapshot: Snapshot) => Observable<RenderResult>;
  readonly verdict$: Observable<GateVerdict>;
  /** What was in quarantine before. */
  readonly stored: StoredQuarantine | undefined;
  /** What another leader had in quarantine. */
  readonly stored$: Observable<StoredQuarantine>;
  /** For searches; the gate has one of its own. */
  readonly check: Checker;
  /** Longest time in milliseconds that newer snapshots may go on cancelling a render (G2). */
  readonly maxWaitMs: number;
}

/** The machine's events; a failure is also told, unless somebody in quarantine cures it. */
type Event = QuarantineEvent & { readonly failure?: RenderFailure; readonly durationMs?: number };

interface Step {
  readonly state: QuarantineState;
  readonly event: Event | undefined;
}

/**
 * Renders each snapshot without the objects that cannot be served (R6). Who fails a render, or is named by a
 * refusal of the gate, goes into quarantine, and the rest is rendered at once; where nobody is named, the objects at fault are
 * searched beside it. Quarantine ends when the object, something that it reads, or the configuration changes.
 *
 * Kept: the render in progress as `switchMapWithin` says, the search in progress until its verdict no longer matters.
 * Cancelled: everything, on unsubscribing. Completes with the snapshots, when their last render has ended.
 */
export const renderWithQuarantine = ({
  engine,
  render,
  verdict$,
  stored,
  stored$,
  check,
  maxWaitMs,
}: QuarantineOptions): OperatorFunction<IndexedSnapshot, Notification> => {
  const now = (): number => asyncScheduler.now();
  return (snapshot$) =>
    defer(() => {
      const told$ = new Subject<Event>();
      const done$ = new Subject<void>();
      const watched$ = snapshot$.pipe(
        map((snapshot): Event => ({ type: 'watched', snapshot, now: now() })),
        tap({ complete: () => done$.next() }),
      );
      const restored$ = stored$.pipe(map((known): Event => ({ type: 'restored', stored: known })));
      const feedback$ = merge(told$, verdict$.pipe(mergeMap(verdictEvents)), restored$).pipe(
        // What happens comes back a turn later, never from inside what it changes.
        observeOn(asapScheduler),
        takeUntil(done$),
      );
      const one = ({ rendered, quarantine }: Substituted): Observable<Notification> =>
        defer(() => {
          const startedAt = now();
          return render(rendered).pipe(
            mergeMap((result): readonly Notification[] => {
              const durationMs = now() - startedAt;
              if (result.ok) {
                told$.next({ type: 'rendered', snapshot: rendered });
                const told = withQuarantineProblems(result.render, quarantine);
                return [
                  { type: 'Rendered', render: told, durationMs },
                  completed(true, durationMs),
                ];
              }
              const { failure } = result;
              if (result.awaits === true) return [];
              const { problems } = failure;
              told$.next({ type: 'failed', snapshot: rendered, problems, failure, durationMs });
              return [];
            }),
          );
        });
      const searches = (state$: Observable<QuarantineState>): Observable<never> =>
        state$.pipe(
          map(({ wanted }) => wanted),
          distinctUntilChanged(),
          switchMap((wanted) =>
            wanted === undefined
              ? EMPTY
              : searchCulprits(wanted, { engine, check }).pipe(
                  tap((found) => told$.next({ type: 'searched', wanted, found, now: now() })),
                ),
          ),
          ignoreElements(),
        );
      const returns = (state$: Observable<QuarantineState>): Observable<never> =>
        state$.pipe(
          map(nextDue),
          distinctUntilChanged(),
          switchMap((at) =>
            at === undefined ? EMPTY : timer(Math.max(0, at - now())).pipe(map(() => at)),
          ),
          // A timer may be early by the clock, and is not set twice for the same time.
          tap((at) => told$.next({ type: 'due', now: Math.max(at, now()) })),
          ignoreElements(),
        );
      const initial: Step = {
        state: initialQuarantine({ ...factsOf(engine), digest: sha256 }, stored),
        event: undefined,
      };
      return merge(watched$, feedback$).pipe(
        scan(({ state }, event): Step => ({ state: quarantineStep(state, event), event }), initial),
        connect((step$) => {
          const state$ = step$.pipe(map(({ state }) => state));
          return merge(
            step$.pipe(mergeMap(uncured)),
            state$.pipe(
              // What a configuration that does not render has in quarantine is nobody's business.
              filter(({ rendered }) => rendered !== undefined),
              distinctUntilChanged((left, right) => left.quarantine === right.quarantine),
              map(notification),
            ),
            state$.pipe(
              map(({ current }) => current),
              filter((current) => current !== undefined),
              // The problems of a render tell who is in quarantine.
              distinctUntilChanged(
                (left, right) =>
                  left.rendered === right.rendered && left.quarantine === right.quarantine,
              ),
              switchMapWithin(one, { maxWaitMs }),
            ),
            searches(state$).pipe(takeUntil(done$)),
            returns(state$).pipe(takeUntil(done$)),
          );
        }),
      );
    });
};

const factsOf = (engine: RenderEngine): Omit<QuarantineFacts, 'digest'> => ({
  generation: engine.generation,
  watched: engine.watched,
  protective: engine.protective,
  readsFor: (objects) => engine.readsFor(objects),
});

const notification = ({ quarantine, current, facts }: QuarantineState): Notification => {
  const objects = quarantinedObjects(quarantine);
  const { generation, digest, watched: resources } = facts;
  const watched = current?.watched ?? emptySnapshot(resources);
  const stored = (): StoredQuarantine => toStored(objects, { generation, watched, digest });
  return { type: 'Quarantine', objects, stored };
};

const completed = (ok: boolean, durationMs: number): Notification => ({
  type: 'ReconciliationCompleted',
  ok,
  durationMs,
});

/** A failed render that is not rendered again at once without the object that failed it. */
const uncured = ({ state, event }: Step): readonly Notification[] => {
  if (event?.type !== 'failed' || event.failure === undefined) return [];
  if (state.complaint?.problems !== event.problems) return [];
  const { failure, durationMs = 0 } = event;
  return [{ type: 'RenderFailed', failure, durationMs }, completed(false, durationMs)];
};

const verdictEvents = (verdict: GateVerdict): Observable<Event> => {
  const { snapshot, generation } = verdict.render;
  if (!(snapshot instanceof IndexedSnapshot)) return EMPTY;
  return of(
    verdict.type === 'Accepted'
      ? { type: 'accepted', snapshot, generation }
      : { type: 'refused', snapshot, generation, problems: verdict.problems },
  );
};
