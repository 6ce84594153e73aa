import { filter, map, type Observable, of } from 'rxjs';
import { isType, type ConfigEvent, type ControllerStreams, type Notification } from './ports.ts';

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
