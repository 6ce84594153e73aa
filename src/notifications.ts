import {
  catchError,
  connect,
  defer,
  filter,
  map,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  pairwise,
  startWith,
} from 'rxjs';
import {
  isType,
  type ConfigEvent,
  type ControllerStreams,
  type Notification,
  type Observer,
  type Pod,
} from './ports.ts';

type Engine = Extract<ConfigEvent, { ok: true }>;
type Refusal = Extract<ConfigEvent, { ok: false }>;

export const isEngine = (event: ConfigEvent): event is Engine => event.ok;
export const isRefusal = (event: ConfigEvent): event is Refusal => !event.ok;

/** A configuration that was refused changes nothing and is told (G13). */
export const refusal = ({ ok: _, ...refused }: Refusal): Notification => ({
  type: 'ConfigRefused',
  ...refused,
});

/** Pods that were there and are not any more. */
export const departures = (pods$: Observable<ReadonlyMap<string, Pod>>): Observable<Notification> =>
  pods$.pipe(
    startWith<ReadonlyMap<string, Pod>>(new Map()),
    pairwise(),
    mergeMap(([before, after]) =>
      [...before]
        .filter(([key]) => !after.has(key))
        .map(([, pod]): Notification => ({ type: 'PodGone', pod })),
    ),
  );

/** An observer beside the pipeline: if it fails, that is told, and nothing else ends. */
export const beside = (observe: Observer, streams: ControllerStreams): Observable<Notification> =>
  defer(() => observe(streams)).pipe(
    catchError((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      return of<Notification>({ type: 'ObserverFailed', message });
    }),
  );

/** Lets an observer see everything that comes out of the pipeline, what other observers tell included. */
export const observedBy = (observe: Observer): MonoTypeOperatorFunction<Notification> =>
  connect((all$) => merge(all$, beside(observe, streamsOf(all$))));

/** The streams observers see (S56), cut out of everything that happens. */
export const streamsOf = (all$: Observable<Notification>): ControllerStreams => ({
  snapshot$: all$.pipe(
    filter(isType('Snapshot')),
    map(({ snapshot }) => snapshot),
  ),
  render$: all$.pipe(
    filter(isType('Rendered')),
    map(({ render }) => render),
  ),
  desired$: all$.pipe(
    filter(isType('Deploying')),
    map(({ desired }) => desired),
  ),
  notifications$: all$,
});
