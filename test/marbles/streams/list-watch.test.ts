import { asyncScheduler, concat, defer, map, NEVER, Observable, of, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { ApiResource } from '../../../src/kube/api-resource.ts';
import { KubeError, type KubeClient, type KubeRequest } from '../../../src/kube/client.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { listWatch, type WatchSignal } from '../../../src/streams/list-watch.ts';
import { inVirtualTime, marbles, type RunHelpers } from '../../support/marbles.ts';

const API: ApiResource = {
  apiVersion: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
};
const SECOND = 1_000;

const object = (name: string, version: number) => ({
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: String(version) },
});
const page = (version: number, ...names: string[]) => ({
  metadata: { resourceVersion: String(version) },
  items: names.map((name) => object(name, version)),
});
const added = (name: string, version: number) => ({ type: 'ADDED', object: object(name, version) });
const bookmark = (version: number) => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: String(version) } },
});
const failure = (code: KubeError['code'], retryAfterMs?: number) =>
  new KubeError(code, code, retryAfterMs === undefined ? {} : { retryAfterMs });

interface Asked {
  readonly at: number;
  readonly verb: 'list' | 'watch';
  readonly version: unknown;
  readonly query: KubeRequest['query'];
}

interface Script {
  readonly lists?: (count: number) => Observable<unknown>;
  readonly watches?: (count: number) => Observable<unknown>;
  readonly random?: () => number;
  readonly forMs: number;
}

/** Runs a list-watch for some virtual time against answers by count; tells what was asked, said and signalled. */
const run = ({ lists, watches, random = () => 0, forMs }: Script) => {
  const asked: Asked[] = [];
  const events: WatchEvent[] = [];
  const signals: WatchSignal[] = [];
  const answer = (verb: Asked['verb'], script: Script['lists']) => (request: KubeRequest) =>
    defer(() => {
      const { query = {} } = request;
      asked.push({ at: asyncScheduler.now(), verb, version: query['resourceVersion'], query });
      return script?.(asked.filter((one) => one.verb === verb).length) ?? NEVER;
    });
  const client: KubeClient = {
    request: answer('list', lists ?? (() => of(page(1)))),
    stream: answer('watch', watches),
    close: () => Promise.resolve(),
  };
  inVirtualTime((helpers: RunHelpers) => {
    const subscription = listWatch({
      client,
      api: API,
      random,
      onSignal: (signal) => signals.push(signal),
    }).subscribe((event) => events.push(event));
    timer(forMs).subscribe(() => subscription.unsubscribe());
    helpers.flush();
  });
  const delays = signals.flatMap((signal) => (signal.type === 'Failed' ? [signal.delayMs] : []));
  return { asked, events, signals, delays, at: (verb: Asked['verb']) => times(asked, verb) };
};

const times = (asked: readonly Asked[], verb: Asked['verb']): readonly number[] =>
  asked.filter((one) => one.verb === verb).map(({ at }) => at);

describe('back-off', () => {
  it('R14: the wait doubles from 0.5 s to 30 s', () => {
    const { delays } = run({ lists: () => throwError(() => failure('server')), forMs: 120_000 });
    expect(delays.map((ms) => ms / SECOND)).toStrictEqual([0.5, 1, 2, 4, 8, 16, 30, 30, 30]);
  });

  it.each(['unreachable', 'timeout'] as const)(
    'R14 R12: a server that cannot be reached (%s) is asked again after 5 s at most',
    (code) => {
      const { delays } = run({ lists: () => throwError(() => failure(code)), forMs: 23_000 });
      expect(delays.map((ms) => ms / SECOND)).toStrictEqual([0.5, 1, 2, 4, 5, 5, 5, 5]);
    },
  );

  it('R14: the jitter takes off up to half of a wait', () => {
    const failing = () => throwError(() => failure('unreachable'));
    const { delays } = run({ lists: failing, random: () => 0.5, forMs: 3_000 });
    expect(delays).toStrictEqual([375, 750, 1_500, 3_000]);
  });

  it('R14: Retry-After is kept when it is longer, up to 30 s', () => {
    const waits = [3 * SECOND, 100, 3_600 * SECOND];
    const { delays } = run({
      lists: (count) => throwError(() => failure('too-many-requests', waits[count - 1])),
      forMs: 30_000,
    });
    expect(delays.slice(0, 3)).toStrictEqual([3_000, 1_000, 30_000]);
  });

  it('R14: a minute that went well starts the waits over, a shorter time does not', () => {
    const { delays } = run({
      watches: (count) =>
        count === 4
          ? concat(of(bookmark(2)), timer(60 * SECOND).pipe(map(() => bookmark(3))), broken())
          : count === 6
            ? concat(of(bookmark(4)), timer(59 * SECOND).pipe(map(() => bookmark(5))), broken())
            : broken(),
      forMs: 150 * SECOND,
    });
    expect(delays.slice(0, 7)).toStrictEqual([500, 1_000, 2_000, 500, 1_000, 2_000, 4_000]);
  });

  it('R14: a quiet watch, of which bookmarks are the only sign, counts as well', () => {
    const bookmarks = (from: number) =>
      timer(59 * SECOND, 60 * SECOND).pipe(map((count) => bookmark(from + count)));
    const { delays, events } = run({
      watches: (count) =>
        count === 1 ? broken() : count === 2 ? until(bookmarks(2), 130 * SECOND) : broken(),
      forMs: 131 * SECOND,
    });
    expect(delays.slice(0, 2)).toStrictEqual([500, 500]);
    expect(events.length).toBe(1);
  });

  it('R14: a version that is always forgotten is listed at growing intervals', () => {
    const { at } = run({ watches: () => throwError(() => failure('gone')), forMs: 16_000 });
    expect(at('list')).toStrictEqual([0, 500, 1_500, 3_500, 7_500, 15_500]);
  });
});

describe('silence', () => {
  it('R14: a watch that is silent for 75 s to 90 s is opened anew from the same version', () => {
    for (const [share, silence] of [
      [0, 75_000],
      [0.999, 89_985],
    ] as const) {
      const { at, asked, delays } = run({ random: () => share, forMs: 95_000 });
      expect(at('watch')).toStrictEqual([0, silence + (delays[0] ?? 0)]);
      expect(asked.at(-1)?.version).toBe('1');
      expect(at('list').length).toBe(1);
    }
  });

  it('R14: bookmarks every minute keep a quiet watch', () => {
    const { at } = run({
      watches: () => timer(61_250, 61_250).pipe(map((count) => bookmark(count + 2))),
      forMs: 280_000,
    });
    expect(at('watch')).toStrictEqual([0]);
  });
});

describe('the end of a watch', () => {
  it('R14: an end in order is no failure, and the next watch goes on at once from the last version', () => {
    const { at, asked, delays, signals } = run({
      watches: (count) => until(of(added('a', 1 + count)), 50_000, true),
      forMs: 170_000,
    });
    expect(at('watch')).toStrictEqual([0, 50_000, 100_000, 150_000]);
    expect(asked.map(({ version }) => version)).toStrictEqual([undefined, '1', '2', '3', '4']);
    expect(delays).toStrictEqual([]);
    expect(signals.filter(({ type }) => type === 'Closed').length).toBe(3);
  });

  it('R14: watches that end as soon as they begin wait longer and longer', () => {
    const { at } = run({ watches: () => of(), forMs: 8_000 });
    expect(at('watch')).toStrictEqual([0, 500, 1_500, 3_500, 7_500]);
  });

  it('R14: the server is asked to end a watch after a time from five to ten minutes', () => {
    const seconds = [0, 0.5, 0.999].map(
      (share) => run({ random: () => share, forMs: 1 }).asked[1]?.query?.['timeoutSeconds'],
    );
    expect(seconds).toStrictEqual([300, 450, 599]);
  });
});

describe('unsubscribing', () => {
  it(
    'R14: aborts the list in flight, or the watch, and nothing follows',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const list = cold(' -----(p|)', { p: page(1, 'a') });
      const watch = cold('-----------a', { a: added('b', 2) });
      const client = (): KubeClient => ({
        request: () => list,
        stream: () => watch,
        close: () => Promise.resolve(),
      });
      const watching$ = listWatch({ client: client(), api: API, random: () => 0 }).pipe(
        map(({ type }) => type.charAt(0)),
      );
      expectObservable(watching$, '  ---^-!         ').toBe('---        ');
      expectObservable(watching$, '  -----^-------!').toBe(' ----------R---');
      expectSubscriptions(list.subscriptions).toBe(['---^-!', '-----^----!']);
      expectSubscriptions(watch.subscriptions).toBe(['----------^--!']);
    }),
  );

  it('R14: two subscribers share nothing', () => {
    let lists = 0;
    inVirtualTime((helpers) => {
      const client: KubeClient = {
        request: () => defer(() => of(page((lists += 1)))),
        stream: () => NEVER,
        close: () => Promise.resolve(),
      };
      const watching$ = listWatch({ client, api: API, random: () => 0 });
      helpers.expectObservable(watching$.pipe(map(() => 'r')), '^!').toBe('r');
      helpers.expectObservable(watching$.pipe(map(() => 'r')), '^!').toBe('r');
    });
    expect(lists).toBe(2);
  });
});

const broken = () => throwError(() => failure('unreachable'));

/** A stream that goes on for so long and then breaks, or ends in order. */
const until = (source: Observable<unknown>, ms: number, inOrder = false): Observable<unknown> =>
  new Observable((subscriber) => {
    subscriber.add(source.subscribe((value) => subscriber.next(value)));
    subscriber.add(
      timer(ms).subscribe(() =>
        inOrder ? subscriber.complete() : subscriber.error(failure('unreachable')),
      ),
    );
  });
