import {
  asyncScheduler,
  combineLatest,
  defer,
  distinctUntilChanged,
  interval,
  map,
  merge,
  type Observable,
  Subject,
  switchMap,
  takeUntil,
  tap,
  timer,
  withLatestFrom,
} from 'rxjs';
import { forEachKey } from '../operators/for-each-key.ts';
import { latestWins } from '../operators/latest-wins.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { AgentClient, AgentNotification, Desired, Pod } from '../ports.ts';
import type { Digest } from '../protocol/protocol.ts';
import type { Render } from '../render/render.ts';
import { Convergence, type Level } from './convergence.ts';
import type { KnownRenders } from './knowledge.ts';

/** What the agent sinks need. */
export interface AgentsOptions {
  readonly client: AgentClient;
  readonly pods$: Observable<ReadonlyMap<string, Pod>>;
  /** Emits when no new work may start. */
  readonly closing$: Observable<unknown>;
}

/** Renders kept by plan id, so that a pod that lags behind is understood without asking for its plan. */
const RENDERS_KEPT = 32;

/**
 * Brings every pod to the newest level, each at its own pace (G8): one apply at a time per pod, the newest level next, the
 * last one always; a slow or dead pod delays no other. Every drift interval each agent re-hashes its tree (G11).
 */
export const agents = (
  desired$: Observable<Desired>,
  options: AgentsOptions,
): Observable<AgentNotification> =>
  defer(() => {
    const renders = rememberRenders();
    const aimed$ = desired$.pipe(tap(renders.remember), map(aimed), shareLatest());
    return options.pods$.pipe(
      forEachKey((_key, pod$: Observable<Pod>) =>
        onePod(pod$, aimed$, { ...options, known: renders.find }),
      ),
    );
  });

type Aim = Omit<Level, 'pod'>;

const aimed = (desired: Desired): Aim => ({
  desired,
  reloadNotBefore: asyncScheduler.now() + desired.reloadNotBeforeMs,
});

const onePod = (
  pod$: Observable<Pod>,
  aimed$: Observable<Aim>,
  options: AgentsOptions & { readonly known: KnownRenders },
): Observable<AgentNotification> =>
  defer(() => {
    const again$ = new Subject<number>();
    const convergence = new Convergence({
      ...options,
      again: (afterMs) => {
        again$.next(afterMs);
      },
    });
    const level$ = combineLatest([pod$, aimed$]).pipe(
      // A pod that joins does not wait for the pace of what came before it (G12).
      map(([pod, aim], index): Level => ({
        ...aim,
        pod,
        ...(index === 0 && { reloadNotBefore: 0 }),
      })),
      shareLatest(),
    );
    const drift$ = level$.pipe(
      map(({ desired }) => desired.settings.driftPreventionIntervalMs),
      distinctUntilChanged(),
      switchMap((ms) => interval(ms)),
      tap(() => {
        convergence.verify();
      }),
    );
    const retry$ = again$.pipe(switchMap((afterMs) => timer(afterMs)));
    const wake$ = merge(drift$, retry$).pipe(
      withLatestFrom(level$),
      map(([, level]) => level),
      takeUntil(options.closing$),
    );
    const changed$ = level$.pipe(distinctUntilChanged(sameAim));
    return merge(changed$, wake$).pipe(latestWins((level) => convergence.run(level)));
  });

/** Acceptance alone moves no pod: it travels with the next apply. */
const sameAim = (before: Level, after: Level): boolean =>
  before.pod === after.pod &&
  before.desired.epoch === after.desired.epoch &&
  before.desired.target === after.desired.target &&
  before.desired.servers === after.desired.servers &&
  before.desired.refused === after.desired.refused;

const rememberRenders = () => {
  const renders = new Map<Digest, Render>();
  const keep = (render: Render | undefined): void => {
    if (render === undefined) return;
    renders.delete(render.plan.id);
    renders.set(render.plan.id, render);
    const oldest = renders.keys().next();
    if (renders.size > RENDERS_KEPT && oldest.done !== true) renders.delete(oldest.value);
  };
  return {
    remember: ({ accepted, target }: Desired): void => {
      keep(target);
      keep(accepted);
    },
    find: (planId: Digest): Render | undefined => renders.get(planId),
  };
};
