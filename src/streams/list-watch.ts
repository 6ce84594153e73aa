import {
  asyncScheduler,
  concat,
  defer,
  EMPTY,
  expand,
  filter,
  finalize,
  map,
  type Observable,
  reduce,
  repeat,
  tap,
  throwError,
} from 'rxjs';
import { type ApiResource, collectionPath } from '../kube/api-resource.ts';
import { KubeError, type KubeClient, type KubeRequest } from '../kube/client.ts';
import { longestWaitMs } from '../kube/kube-error.ts';
import { failOnSilence } from '../operators/fail-on-silence.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import { type KubeObject, objectKey } from '../snapshot/objects.ts';
import type { WatchEvent } from '../snapshot/watch.ts';
import { afterError, LISTING, type ListWatchState, watchingFrom } from './list-watch-state.ts';
import { type ListPage, readListPage, readWatchLine, type WatchLine } from './watch-line.ts';

/** What is listed and watched, and with what. */
export interface ListWatchOptions {
  readonly client: KubeClient;
  readonly api: ApiResource;
  /** Absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string;
  /** Selectors that the server applies: `labelSelector`, `fieldSelector`. Default: none. */
  readonly selectors?: Readonly<Record<string, string>>;
  /** Asks for metadata alone. Default false. */
  readonly metadataOnly?: boolean;
  /** What is passed on of an object; undefined = it is not selected. Default: the object as it is. */
  readonly admit?: (object: KubeObject) => KubeObject | undefined;
  /** Source of randomness, from 0 up to 1. */
  readonly random: () => number;
  /** Told what happens, for metrics and problems. */
  readonly onSignal?: (signal: WatchSignal) => void;
}

/** What happens at one list-watch. */
export type WatchSignal =
  /** A list begins: the first one, or a re-list. */
  | { readonly type: 'Listing' }
  /** The whole list is there. */
  | { readonly type: 'Synced' }
  /** A watch is open. */
  | { readonly type: 'Watching' }
  /** A page, a line or the head of a watch came in. */
  | { readonly type: 'Received' }
  /** The server ended a watch in order, as it does every few minutes. */
  | { readonly type: 'Closed' }
  /** A list or watch failed and is tried again after the wait. */
  | {
      readonly type: 'Failed';
      readonly verb: 'list' | 'watch';
      readonly error: KubeError;
      /** Failures in a row. */
      readonly attempt: number;
      readonly delayMs: number;
    }
  /** Unsubscribed. */
  | { readonly type: 'Stopped' };

const PAGE_TIMEOUT_MS = 60_000;
const HEAD_TIMEOUT_MS = 30_000;
/** A server that ends watches sooner than this is not well: the next one waits. */
const SHORTEST_WATCH_MS = 1_000;

/**
 * Lists a collection and watches it from there on: one `Replaced` with everything, then single changes; another `Replaced`
 * whenever the server has forgotten where we were. It neither errors nor completes: what fails is tried again, after 0.5 s
 * to 30 s with jitter (5 s while the server cannot be reached), and starts over at 0.5 s after a minute that went well. A wait that the server asks for is kept, up
 * to 30 s.
 *
 * Lists are paged and ask for no version, so each is at least as new as everything seen before it; a list at version 0
 * could be older. An incomplete list is never passed on. Watches go on from the version of the last line, bookmarks
 * included; versions are never compared by size. A watch that is silent for 75 s to 90 s is taken for dead, for bookmarks
 * come every minute. Unsubscribing aborts the request in flight.
 */
export const listWatch = (options: ListWatchOptions): Observable<WatchEvent> =>
  defer(() => {
    const { random } = options;
    const signal = options.onSignal ?? (() => undefined);
    let state: ListWatchState = LISTING;
    let failedVerb: 'list' | 'watch' = 'list';

    const list$ = defer(() => {
      if (state.phase !== 'Listing') return EMPTY;
      signal({ type: 'Listing' });
      return wholeList(options, state.limit).pipe(
        map(({ version, objects }): Step => {
          state = watchingFrom(version);
          signal({ type: 'Synced' });
          return { type: 'Replaced', objects };
        }),
      );
    });
    const oneWatch$ = defer(() => {
      if (state.phase !== 'Watching') return EMPTY;
      const openedAt = asyncScheduler.now();
      const closed$ = defer(() => {
        if (asyncScheduler.now() - openedAt < SHORTEST_WATCH_MS) return tooShort(options);
        signal({ type: 'Closed' });
        return EMPTY;
      });
      const lines$ = watchLines(options, state.version).pipe(
        map((line): Step => {
          state = watchingFrom(line.version);
          return stepOf(line, options);
        }),
      );
      return concat(lines$, closed$);
    });
    return concat(list$, oneWatch$.pipe(repeat())).pipe(
      tap({
        error: (error: unknown) => {
          failedVerb = state.phase === 'Listing' ? 'list' : 'watch';
          state = afterError(state, asKubeError(error));
        },
      }),
      retryBackoff({
        initialMs: 500,
        maxMs: longestWaitMs,
        jitter: 0.5,
        random,
        resetAfterMs: 60_000,
        retryAfter: (error) => asKubeError(error).retryAfterMs,
        onRetry: ({ error, attempt, delayMs }) => {
          const failure = { error: asKubeError(error), attempt, delayMs };
          signal({ type: 'Failed', verb: failedVerb, ...failure });
        },
      }),
      filter((step) => step !== ALIVE),
      finalize(() => signal({ type: 'Stopped' })),
    );
  });

/** What a bookmark is downstream: nothing but a sign of life, which the back-off counts from. */
const ALIVE = Symbol('alive');

type Step = WatchEvent | typeof ALIVE;

const stepOf = ({ change }: WatchLine, { admit }: ListWatchOptions): Step => {
  if (change === undefined) return ALIVE;
  const object = change.deleted || admit === undefined ? change.object : admit(change.object);
  return change.deleted || object === undefined
    ? { type: 'Deleted', key: objectKey(change.object) }
    : { type: 'Upserted', object };
};

interface WholeList {
  readonly version: string;
  readonly objects: readonly KubeObject[];
}

/** All pages of one list, or an error. */
const wholeList = (options: ListWatchOptions, limit: number): Observable<WholeList> =>
  defer(() => {
    const { client, api, admit = (object: KubeObject) => object } = options;
    const name = `GET ${pathOf(options)}`;
    const page = (token: string): Observable<ListPage> =>
      client
        .request({
          ...requestOf(options, { limit, ...(token === '' ? {} : { continue: token }) }),
          ...(options.metadataOnly === true ? { accept: metadataOf('List') } : {}),
          timeoutMs: PAGE_TIMEOUT_MS,
        })
        .pipe(
          map((answer) => readListPage(answer, api, name)),
          tap(({ next }) => {
            options.onSignal?.({ type: 'Received' });
            if (next !== '' && next === token) throw inconsistent(name);
          }),
        );
    const objects: KubeObject[] = [];
    return page('').pipe(
      expand(({ next }) => (next === '' ? EMPTY : page(next))),
      reduce<ListPage, WholeList | undefined>((whole, { version, objects: found }) => {
        // All pages of a list are of one moment and say so.
        if (whole !== undefined && whole.version !== version) throw inconsistent(name);
        for (const object of found) {
          const admitted = admit(object);
          if (admitted !== undefined) objects.push(admitted);
        }
        return { version, objects };
      }, undefined),
      map((whole) => {
        if (whole === undefined) throw inconsistent(name);
        return whole;
      }),
    );
  });

/** The lines of one watch request. */
const watchLines = (options: ListWatchOptions, version: string): Observable<WatchLine> =>
  defer(() => {
    const { client, api, random } = options;
    const name = `watch ${pathOf(options)}`;
    const silenceMs = 75_000 + Math.floor(15_000 * random());
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: version,
      timeoutSeconds: 300 + Math.floor(300 * random()),
    };
    return client
      .stream({
        ...requestOf(options, query),
        ...(options.metadataOnly === true ? { accept: metadataOf('') } : {}),
        timeoutMs: HEAD_TIMEOUT_MS,
        onHead: () => {
          options.onSignal?.({ type: 'Received' });
          options.onSignal?.({ type: 'Watching' });
        },
      })
      .pipe(
        failOnSilence({
          afterMs: silenceMs,
          error: () => new KubeError('timeout', `${name}: silent for ${silenceMs} ms`),
        }),
        map((line) => {
          options.onSignal?.({ type: 'Received' });
          return readWatchLine(line, api, name);
        }),
      );
  });

const requestOf = (
  options: ListWatchOptions,
  query: NonNullable<KubeRequest['query']>,
): KubeRequest => ({
  method: 'GET',
  path: pathOf(options),
  query: { ...options.selectors, ...query },
});

const pathOf = ({ api, namespace }: ListWatchOptions): string =>
  collectionPath({ ...api, ...(namespace === undefined ? {} : { namespace }) });

const metadataOf = (suffix: 'List' | ''): string =>
  `application/json;as=PartialObjectMetadata${suffix};g=meta.k8s.io;v=v1`;

const inconsistent = (name: string): KubeError =>
  new KubeError('protocol', `${name}: the pages do not belong together`);

const tooShort = (options: ListWatchOptions): Observable<never> =>
  throwError(
    () => new KubeError('unreachable', `watch ${pathOf(options)}: ended as soon as it began`),
  );

/** A client errors with KubeErrors only; anything else is a defect of ours, which must not end the stream. */
const asKubeError = (error: unknown): KubeError =>
  error instanceof KubeError
    ? error
    : new KubeError('protocol', error instanceof Error ? error.message : String(error), {
        cause: error,
      });
