/** What an observer of the pipeline sees, without the pipeline. */
import { connect, type Observable } from 'rxjs';
import { streamsOf } from '../../src/notifications.ts';
import type { Desired, Notification, Observer } from '../../src/ports.ts';
import type { Render } from '../../src/render/render.ts';

/** What an observer emits for these notifications. */
export const observing = (
  notification$: Observable<Notification>,
  observe: Observer,
): Observable<Notification> => notification$.pipe(connect((all$) => observe(streamsOf(all$))));

export const leads = (epoch = 1): Notification => ({
  type: 'Leadership',
  leadership: { leading: true, epoch },
});

export const follows: Notification = { type: 'Leadership', leadership: { leading: false } };

/** The level of an open gate, unless told otherwise. */
export const deploying = (
  target: Render | undefined,
  words: Partial<Desired> = {},
): Notification => ({
  type: 'Deploying',
  desired: {
    epoch: 1,
    phase: 'open',
    target,
    accepted: undefined,
    refused: new Set(),
    servers: undefined,
    reloadNotBeforeMs: 0,
    settings: target?.settings ?? ({ configPublishIntervalMs: 10_000 } as Desired['settings']),
    ...words,
  },
});
