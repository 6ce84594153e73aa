import { combineLatest, distinctUntilChanged, filter, map, type Observable, of } from 'rxjs';
import {
  isType,
  type ConfigEvent,
  type ControllerStreams,
  type Leadership,
  type Notification,
} from './ports.ts';
import { sameSettings, type DataplaneSettings, type Render } from './render/render.ts';

/** A leader term under one set of settings. */
export interface Term {
  readonly epoch: number;
  readonly settings: DataplaneSettings;
}

/**
 * The term this replica leads, `undefined` while it follows. It emits the first term with the first render, holds the
 * newest render while following, and starts a term anew when the pacing settings of the configuration change.
 */
export const terms = (
  leader$: Observable<Leadership>,
  render$: Observable<Render>,
): Observable<Term | undefined> => {
  const settings$ = render$.pipe(
    map(({ settings }) => settings),
    distinctUntilChanged(sameSettings),
  );
  return combineLatest([leader$, settings$]).pipe(
    map(([leadership, settings]) =>
      leadership.leading ? { epoch: leadership.epoch, settings } : undefined,
    ),
  );
};

/** A configuration that was refused changes nothing and is told (G13). */
export const refusal = ({
  problems,
}: Extract<ConfigEvent, { ok: false }>): Observable<Notification> =>
  of({ type: 'ConfigRefused', problems });

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
