import {
  catchError,
  combineLatest,
  concat,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  repeat,
  startWith,
  tap,
  timer,
} from 'rxjs';
import { objectPath } from '../kube/api-resource.ts';
import type { KubeClient } from '../kube/client.ts';
import { latestWins } from '../operators/latest-wins.ts';
import { schedule } from '../operators/schedule.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { ControllerStreams, Notification, Observer } from '../ports.ts';
import { textAt } from '../routing/fields.ts';
import type { Problem } from '../snapshot/problem.ts';
import { CallFailed } from './call-failed.ts';
import { eventWrite } from './event-draft.ts';
import { Drafts } from './event-drafts.ts';
import { type EventLimits, EventQueue } from './event-queue.ts';
import { CONFIGURATION } from './published-files.ts';
import { whileLeading } from './while-leading.ts';
import {
  createWriter,
  type ObjectWrite,
  type Writer,
  type WriterOptions,
} from './write-objects.ts';

/** Options of {@link events}. */
export interface EventsOptions extends WriterOptions {
  /** The configuration; what has no object of its own is told about it. */
  readonly config: { readonly namespace: string; readonly name: string };
  /** Name of this replica. */
  readonly identity: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly limits?: EventLimits;
}

/** Problems are looked at once a second at most, and again each minute, since some are due again. */
const LOOK_MS = 1_000;
const AGAIN_MS = 60_000;

/**
 * Writes Events about objects: what the newest render found wrong with them, what HAProxy's checker refused because of
 * them, configurations that were refused, reloads that failed. Nothing is told twice in an hour, by whichever leader, and
 * no more than the limits allow; only the leader writes.
 */
export const events =
  (options: EventsOptions): Observer =>
  (streams) =>
    defer(() => {
      // What is, rather than what happens: a new leader finds it as it stood when its term began.
      const render$ = streams.render$.pipe(shareLatest());
      const refused$ = streams.notifications$.pipe(
        mergeMap((event) => {
          if (event.type === 'ConfigRefused') return [event.problems];
          return event.type === 'ConfigLoaded' ? [NO_PROBLEMS] : [];
        }),
        startWith(NO_PROBLEMS),
        shareLatest(),
      );
      return merge(
        render$.pipe(ignoreElements()),
        refused$.pipe(ignoreElements()),
        whileLeading(streams, () => term(options, { ...streams, render$, refused$ })),
      );
    });

const NO_PROBLEMS: readonly Problem[] = [];

interface Term extends ControllerStreams {
  readonly refused$: Observable<readonly Problem[]>;
}

const term = (
  options: EventsOptions,
  { render$, refused$, notifications$ }: Term,
): Observable<Notification> =>
  defer(() => {
    const queue = new EventQueue(options.limits);
    const writer = createWriter(options);
    const drafts = new Drafts(options.config);
    const open$ = combineLatest({
      problems: render$.pipe(
        map(({ problems }) => problems),
        startWith(NO_PROBLEMS),
      ),
      refused: refused$,
      again: timer(0, AGAIN_MS),
    }).pipe(
      schedule({
        intervalMs: LOOK_MS,
        classify: (last, next) =>
          last?.again === next.again &&
          last.problems === next.problems &&
          last.refused === next.refused
            ? 'none'
            : 'later',
      }),
      map(({ value: { problems, refused } }) => [
        ...drafts.problems(refused, 'Load'),
        ...drafts.problems(problems, 'Render'),
      ]),
    );
    const attempt$ = draining(queue, writer, options);
    return merge(open$, notifications$.pipe(map((event) => drafts.happened(event)))).pipe(
      tap((added) => {
        for (const draft of added) queue.add(draft, options.now());
      }),
      filter(() => queue.size > 0),
      latestWins(() => writer.untilDone(attempt$)),
    );
  });

/** Writes what waits, one event after the other, each when it may go. Ends when nothing waits. */
const draining = (
  queue: EventQueue,
  writer: Writer,
  { client, config, now, identity }: EventsOptions,
): Observable<Notification> => {
  let configUid: string | undefined;
  const learn$ = defer(() =>
    configUid === undefined
      ? configurationUid(client, config).pipe(
          tap((uid) => {
            configUid = uid;
          }),
          ignoreElements(),
        )
      : EMPTY,
  );
  const one$ = defer(() => {
    const nowMs = now();
    const draft = queue.next(nowMs);
    if (draft === undefined) return EMPTY;
    const settled = (): void => {
      queue.settled(draft, now());
    };
    const write = (): ObjectWrite =>
      eventWrite(draft, { nowMs, instance: identity, configUid: configUid ?? '' });
    return writer
      .run((writeOne) => writeOne({ write, done: settled, refused: settled }))
      .pipe(
        catchError((error: unknown) => {
          // A namespace without the right, or one that is being deleted, must not silence the others.
          if (!(error instanceof CallFailed) || error.code !== 'forbidden') throw error;
          settled();
          return EMPTY;
        }),
      );
  });
  const pause = (): Observable<unknown> => {
    const waitMs = queue.waitMs(now());
    return waitMs === undefined ? EMPTY : timer(Math.min(waitMs, LOOK_MS));
  };
  return concat(learn$, one$.pipe(repeat({ delay: pause })));
};

/** Events without it are not shown by `kubectl describe`; without the right to read it they are written all the same. */
const configurationUid = (
  client: KubeClient,
  config: EventsOptions['config'],
): Observable<string> =>
  client.request({ method: 'GET', path: objectPath({ ...CONFIGURATION, ...config }) }).pipe(
    map((object) => textAt(object, 'metadata', 'uid') ?? ''),
    catchError((error: unknown) => {
      const failure = CallFailed.of({ verb: 'get', resource: CONFIGURATION, ...config }, error);
      if (failure.code === 'not-found' || failure.code === 'forbidden') return of('');
      throw failure;
    }),
  );
