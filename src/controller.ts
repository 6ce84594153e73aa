import {
  connect,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  Subject,
  switchMap,
  take,
  takeUntil,
} from 'rxjs';
import { classifyLevels, reloadIntervalOf } from './gate/levels.ts';
import { beside, departures, isEngine, isRefusal, refusal, streamsOf } from './notifications.ts';
import { handOver } from './operators/hand-over.ts';
import { schedule } from './operators/schedule.ts';
import { shareLatest } from './operators/share-latest.ts';
import { isType, type Desired, type Notification, type Ports } from './ports.ts';
import type { Render } from './render/render.ts';
import { agents } from './sinks/agents.ts';
import { gate, isLevel, isNotification, withSettings } from './streams/gate.ts';
import { type GateVerdict, tellVerdicts, verdictsFrom } from './streams/quarantine.ts';
import { reconcile } from './streams/reconcile.ts';

/**
 * The controller. Sources and ports in, notifications of everything that happens out; nothing runs before the one
 * subscription, and unsubscribing is the hard stop (G14).
 *
 *   config$ ─▶ handOver( watch ─▶ foldByKey ─▶ snapshot$ ─▶ switchMap(render) ) ─▶ render$      every replica
 *   render$ ─▶ gate (verdicts beside the fan-out) ─▶ schedule ─▶ desired$ ─▶ agents, one per pod    the leader
 *   all notifications ─▶ observers: log, metrics, status, publisher
 */
export const controller = (ports: Ports): Observable<Notification> =>
  defer(() => {
    // Sources: all of them end when the shutdown begins.
    const closing$ = ports.shutdown$.pipe(take(1), shareLatest());
    const open = <T>(source$: Observable<T>): Observable<T> => source$.pipe(takeUntil(closing$));
    const config$ = open(ports.config$);
    const problems$ = open(ports.resources.problems$);
    const pods$ = open(ports.pods$).pipe(shareLatest());
    const leader$ = open(ports.leader$).pipe(shareLatest());
    const { resources: source, searchCheck: search = ports.check } = ports;
    const stored$ = ports.storedQuarantine$ ?? EMPTY;

    // What the gate says of a render goes back to where renders are made: objects at fault are left out (R6).
    const given$ = new Subject<GateVerdict>();
    const verdict$ = verdictsFrom(given$);

    // Configurations and objects → renders. A new configuration takes over without a gap (G13).
    const reconciled$ = config$.pipe(
      connect((event$) =>
        merge(
          event$.pipe(filter(isRefusal), map(refusal)),
          event$.pipe(
            filter(isEngine),
            handOver(
              (event) =>
                reconcile(event, { source, verdict$, stored$, leader$, check: search, open }),
              {
                ready: isType('Rendered'),
              },
            ),
          ),
        ),
      ),
    );

    // Renders → what the fleet shall hold → pods. Only the leader of a term lets anything out (G10).
    const deploy = (render$: Observable<Render>, epoch: number): Observable<Notification> =>
      render$.pipe(
        gate({ check: ports.check, epoch }),
        connect((gate$) => {
          const desired$ = gate$.pipe(
            filter(isLevel),
            withSettings(render$),
            schedule({ intervalMs: reloadIntervalOf, classify: classifyLevels }),
            map(({ value, notBeforeMs }): Desired => ({
              ...value,
              reloadNotBeforeMs: notBeforeMs,
              checkerVersion: ports.checkerVersion,
            })),
            shareLatest(),
          );
          return merge(
            gate$.pipe(filter(isNotification), tellVerdicts(given$)),
            desired$.pipe(map((desired): Notification => ({ type: 'Deploying', desired }))),
            agents(desired$, { client: ports.agents, pods$, closing$ }),
          );
        }),
      );

    const notifications$ = reconciled$.pipe(
      connect((shared$) => {
        const render$ = shared$.pipe(
          filter(isType('Rendered')),
          map(({ render }) => render),
          shareLatest(),
        );
        return merge(
          shared$,
          departures(pods$),
          pods$.pipe(map((pods): Notification => ({ type: 'PodsFound', pods }))),
          render$.pipe(ignoreElements()),
          leader$.pipe(
            switchMap((leadership) =>
              leadership.leading ? deploy(render$, leadership.epoch) : EMPTY,
            ),
          ),
          leader$.pipe(map((leadership): Notification => ({ type: 'Leadership', leadership }))),
          problems$.pipe(map((problems): Notification => ({ type: 'SourceProblems', problems }))),
          closing$.pipe(map((): Notification => ({ type: 'ShuttingDown' }))),
        );
      }),
    );
    return notifications$.pipe(
      connect((all$) =>
        merge(all$, ...ports.observers.map((observe) => beside(observe, streamsOf(all$)))),
      ),
    );
  });
