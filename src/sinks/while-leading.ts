import {
  defer,
  distinctUntilChanged,
  EMPTY,
  endWith,
  filter,
  ignoreElements,
  map,
  merge,
  type Observable,
  switchMap,
  takeUntil,
} from 'rxjs';
import { isType, type ControllerStreams, type Notification } from '../ports.ts';

/**
 * Runs `term` as long as this replica leads, anew for each epoch. Loss of leadership and the begin of a shutdown abort
 * what is in flight, so nothing of a term is written after it (R13): the next leader writes what is missing. Completes
 * with the notifications.
 */
export const whileLeading = (
  { notifications$ }: Pick<ControllerStreams, 'notifications$'>,
  term: (epoch: number) => Observable<Notification>,
): Observable<Notification> =>
  defer(() => {
    const epoch$ = merge(
      notifications$.pipe(
        filter(isType('Leadership')),
        map(({ leadership }) => (leadership.leading ? leadership.epoch : undefined)),
      ),
      notifications$.pipe(
        filter(isType('ShuttingDown')),
        map(() => undefined),
      ),
    );
    return epoch$.pipe(
      distinctUntilChanged(),
      switchMap((epoch) => (epoch === undefined ? EMPTY : term(epoch))),
      takeUntil(notifications$.pipe(ignoreElements(), endWith(true))),
    );
  });
