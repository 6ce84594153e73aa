import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ApiResource } from '../../../src/kube/api-resource.ts';
import type { KubeClientOptions } from '../../../src/kube/undici-client.ts';
import {
  listWatch,
  type ListWatchOptions,
  type WatchSignal,
} from '../../../src/streams/list-watch.ts';
import type { ApiModel } from '../../support/api-model.ts';
import { FaultServer, statusObject } from '../../support/fault-server.ts';
import { contentOf, plainClient, Watching } from '../../support/watching.ts';

const CONFIG_MAPS: ApiResource = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};
const PATH = '/api/v1/configmaps';

let server: FaultServer;
let model: ApiModel;
let signals: WatchSignal[];
const open: (() => void | Promise<void>)[] = [];

beforeEach(async () => {
  server = await FaultServer.start();
  model = server.collection(PATH);
  signals = [];
});

afterEach(async () => {
  for (const close of open.splice(0)) await close();
  await server.close();
});

/** The shortest waits that the jitter allows. */
const random = (): number => 0.999;

const watch = (
  options: Partial<ListWatchOptions> = {},
  limits: KubeClientOptions = {},
): Watching => {
  const client = plainClient(server.url, {}, limits);
  const watching = new Watching(
    listWatch({
      client,
      random,
      api: CONFIG_MAPS,
      onSignal: (signal) => signals.push(signal),
      ...options,
    }),
  );
  open.push(
    () => watching.stop(),
    () => client.close(),
  );
  return watching;
};

const until = (check: () => void, timeout = 8_000): Promise<void> =>
  vi.waitFor(check, { timeout, interval: 10 });
const converged = (watching: Watching): Promise<void> =>
  until(() => {
    expect(watching.replaced).toBeGreaterThan(0);
    expect(watching.content).toStrictEqual(contentOf(model.objects));
  });
const requests = (verb: 'list' | 'watch') => server.requests.filter((one) => one.verb === verb);
const failures = () => signals.filter((signal) => signal.type === 'Failed');

describe('lists', () => {
  it('R14: a list comes in pages, is passed on once, and says what kind its objects are', async () => {
    for (let index = 0; index < 1_203; index += 1) model.put(`shop/m${index}`);
    const watching = watch();
    await converged(watching);
    expect(watching.events.length).toBe(1);
    expect(requests('list').map(({ query }) => query.get('limit'))).toStrictEqual([
      '500',
      '500',
      '500',
    ]);
    expect(requests('list').every(({ query }) => !query.has('resourceVersion'))).toBe(true);
    expect(watching.get('shop/m7')).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
  });

  it('R14: a page that fails gives no list at all, and the list starts over', async () => {
    for (let index = 0; index < 700; index += 1) model.put(`shop/m${index}`);
    server.fault = ({ verb, count }) =>
      verb === 'list' && count === 2 ? { type: 'status', status: 500 } : undefined;
    const watching = watch();
    await converged(watching);
    expect(watching.replaced).toBe(1);
    expect(requests('list')[2]?.query.has('continue')).toBe(false);
    expect(failures()).toMatchObject([{ verb: 'list', error: { code: 'server', status: 500 } }]);
  });

  it('R14: a list whose later pages have expired starts over', async () => {
    for (let index = 0; index < 700; index += 1) model.put(`shop/m${index}`);
    server.fault = ({ verb, count }) => {
      if (verb === 'list' && count === 2) model.compact();
      return undefined;
    };
    const watching = watch();
    await converged(watching);
    expect(failures()).toMatchObject([{ verb: 'list', error: { code: 'gone' } }]);
  });

  it('R14: changes during a slow list arrive by the watch that follows', async () => {
    model.put('shop/a');
    server.fault = ({ verb }) => (verb === 'watch' ? { type: 'delay', ms: 300 } : undefined);
    const watching = watch();
    await until(() => expect(requests('watch').length).toBe(1));
    model.put('shop/b');
    model.remove('shop/a');
    await converged(watching);
    expect(watching.replaced).toBe(1);
  });

  it('R14: a page that is too large is asked for again with half as many objects', async () => {
    for (let index = 0; index < 400; index += 1)
      model.put(`shop/m${index}`, { data: 'x'.repeat(200) });
    const watching = watch({}, { maxAnswerBytes: 80_000 });
    await converged(watching);
    expect(requests('list').map(({ query }) => query.get('limit'))).toStrictEqual([
      '500',
      '250',
      '250',
    ]);
    expect(watching.events.length).toBe(1);
  });

  it.for([
    ['HTML', { pieces: ['<html>'] }],
    ['no list', { pieces: ['{"metadata":{"resourceVersion":"7"},"items":{}}'] }],
    ['an object without a name', { pieces: ['{"metadata":{"resourceVersion":"7"},"items":[{}]}'] }],
    ['no version', { pieces: ['{"metadata":{},"items":[]}'] }],
    ['null', { pieces: ['null'] }],
  ] as const)('R14: an answer that is %s is no list', async ([, { pieces }]) => {
    model.put('shop/a');
    server.fault = ({ verb, count }) =>
      verb === 'list' && count === 1 ? { type: 'raw', pieces, then: 'end' } : undefined;
    const watching = watch();
    await converged(watching);
    expect(failures()).toMatchObject([{ verb: 'list', error: { code: 'protocol' } }]);
  });
});

describe('watches', () => {
  it('R14: a watch asks for bookmarks, from the version of the list, for five to ten minutes', async () => {
    model.put('shop/a');
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    const [{ query } = { query: new URLSearchParams() }] = requests('watch');
    expect(query.get('allowWatchBookmarks')).toBe('true');
    expect(query.get('resourceVersion')).toBe(String(model.version));
    expect(Number(query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300);
    expect(Number(query.get('timeoutSeconds'))).toBeLessThan(600);
    expect(watching.events.length).toBe(1);
  });

  it('R14: a reset at any byte of a watch loses nothing', { timeout: 60_000 }, async () => {
    model.put('shop/a');
    const offsets = Array.from({ length: 320 }, (_, index) => index);
    const seen = new Set<number>();
    server.fault = ({ verb, query }) => {
      const offset = Number(query.get('offset'));
      if (verb !== 'watch' || seen.has(offset)) return undefined;
      seen.add(offset);
      return { type: 'cut', afterBytes: offset };
    };
    const client = plainClient(server.url);
    open.push(() => client.close());
    const all = offsets.map((offset) => watch({ client, selectors: { offset: String(offset) } }));
    await until(() => expect(seen.size).toBe(offsets.length), 30_000);
    model.put('shop/☃');
    model.remove('shop/a'); // together fewer bytes than there are offsets
    await until(() => {
      for (const watching of all) {
        expect(watching.content).toStrictEqual(contentOf(model.objects));
      }
    }, 30_000);
    expect(all.every(({ replaced }) => replaced === 1)).toBe(true);
  });

  it('R14: characters and lines that are split between pieces are put together', async () => {
    const line = Buffer.from(
      `${JSON.stringify({
        type: 'ADDED',
        object: {
          metadata: { name: 'a', namespace: 'shop', uid: 'u', resourceVersion: '1001' },
          data: { snow: '☃🌨' },
        },
      })}\n`,
    );
    const pieces = Array.from(line, (_, index) => line.subarray(index, index + 1));
    server.fault = ({ verb, count }) =>
      verb === 'watch' && count === 1 ? { type: 'raw', pieces, then: 'stay' } : undefined;
    const watching = watch();
    await until(() => expect(watching.get('shop/a')).toMatchObject({ data: { snow: '☃🌨' } }));
    expect(failures()).toStrictEqual([]);
  });

  it('R14: an end in order goes on from the version of the last line at once, without a list', async () => {
    model.put('shop/a');
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    model.put('shop/b');
    model.put('other/c');
    server.bookmark(PATH);
    await converged(watching);
    await new Promise((resolve) => setTimeout(resolve, 1_050)); // longer than a watch that is not well
    server.endWatches();
    await until(() => expect(requests('watch').length).toBe(2));
    expect(requests('watch')[1]?.query.get('resourceVersion')).toBe(String(model.version));
    expect(requests('list').length).toBe(1);
    expect(failures()).toStrictEqual([]);
  });

  it('R14: a bookmark alone moves the version on', async () => {
    const watching = watch({ namespace: 'shop' });
    await until(() => expect(server.watches).toBe(1));
    model.put('other/a'); // not ours
    const version = String(model.version);
    server.bookmark(PATH);
    await until(() => expect(signals.filter(({ type }) => type === 'Received').length).toBe(3));
    server.resetConnections();
    await until(() => expect(requests('watch').length).toBe(2));
    expect(requests('watch')[1]?.query.get('resourceVersion')).toBe(version);
    expect(watching.events.length).toBe(1);
  });

  it('R14: a version that is forgotten leads to a new list with the version unset', async () => {
    model.put('shop/a');
    model.put('shop/b');
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    const uid = watching.get('shop/a')?.metadata.uid;
    await server.close();
    model.remove('shop/a');
    model.put('shop/a'); // another one of the same name
    model.remove('shop/b');
    model.compact();
    await server.listen();
    await until(() => expect(watching.replaced).toBe(2));
    await converged(watching);
    expect(watching.get('shop/a')?.metadata.uid).not.toBe(uid);
    expect(requests('list').every(({ query }) => !query.has('resourceVersion'))).toBe(true);
  });

  it('R14: an API server that comes back with a lower version is listed anew', async () => {
    model.put('shop/a');
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    await server.close();
    model.restoreAt(10);
    model.put('shop/b');
    await server.listen();
    await until(() => expect(watching.replaced).toBe(2));
    await converged(watching);
  });

  it.for([410, 500] as const)('R14: an ERROR event %i is what its code says', async (code) => {
    model.put('shop/a');
    const event = JSON.stringify({ type: 'ERROR', object: statusObject(code, 'it happened') });
    server.fault = ({ verb, count }) =>
      verb === 'watch' && count === 1
        ? { type: 'raw', pieces: [`${event}\n`], then: 'end' }
        : undefined;
    const watching = watch();
    await until(() => expect(requests('watch').length).toBe(2));
    await converged(watching);
    expect(requests('list').length).toBe(code === 410 ? 2 : 1);
    expect(failures()).toMatchObject([{ verb: 'watch', error: { status: code } }]);
    expect(failures()[0]).toHaveProperty(
      'error.message',
      `watch ${PATH}: status ${code}: it happened`,
    );
  });

  it('R14: an event that fails the watch again and again leads to a new list', async () => {
    const event = JSON.stringify({ type: 'ERROR', object: statusObject(500, 'unreadable') });
    server.fault = ({ verb, count }) =>
      verb === 'watch' && count <= 3
        ? { type: 'raw', pieces: [`${event}\n`], then: 'end' }
        : undefined;
    const watching = watch();
    await until(() => expect(requests('watch').length).toBe(4));
    expect(watching.replaced).toBe(2);
  });

  it.for([
    ['is not JSON', '{"type":\n'],
    ['is longer than 1000 bytes', 'x'.repeat(5_000)],
    ['has a type nobody knows', '{"type":"RENAMED","object":{}}\n'],
    ['is null', 'null\n'],
    ['ends too soon', '{"type":"BOOKMARK"'],
  ] as const)(
    'R14: a line that %s ends the watch, which goes on from where it was',
    async ([, line]) => {
      model.put('shop/a');
      server.fault = ({ verb, count }) =>
        verb === 'watch' && count === 1 ? { type: 'raw', pieces: [line], then: 'end' } : undefined;
      const watching = watch({}, { maxLineBytes: 1_000 });
      await until(() => expect(server.watches).toBe(1));
      expect(requests('list').length).toBe(1);
      expect(failures()).toMatchObject([{ verb: 'watch', error: { code: 'protocol' } }]);
      model.put('shop/b');
      await converged(watching);
    },
  );

  it('R14: events that come twice, and older states that come late, end in the newest state', async () => {
    const added = (version: number) =>
      `${JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'a', namespace: 'shop', uid: 'uid-1', resourceVersion: String(version) } } })}\n`;
    model.put('shop/a'); // 1001
    model.put('shop/a'); // 1002
    server.fault = ({ verb, count }) =>
      verb === 'watch' && count === 1
        ? { type: 'raw', pieces: [added(1_001), added(1_002), added(1_002)], then: 'reset' }
        : undefined;
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    await converged(watching);
  });

  it('R14: an object that was deleted and made again under its name is another one', async () => {
    model.put('shop/a');
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    const uid = watching.get('shop/a')?.metadata.uid;
    model.remove('shop/a');
    model.put('shop/a');
    await converged(watching);
    expect(watching.get('shop/a')?.metadata.uid).not.toBe(uid);
    expect(watching.events.map(({ type }) => type)).toStrictEqual([
      'Replaced',
      'Deleted',
      'Upserted',
    ]);
  });
});

describe('refusals and waits', () => {
  it('R14: 429 waits as long as Retry-After says', async () => {
    server.fault = ({ verb, count }) =>
      verb === 'list' && count === 1
        ? { type: 'status', status: 429, headers: { 'retry-after': '1' } }
        : undefined;
    const watching = watch();
    await converged(watching);
    expect(failures()).toMatchObject([{ delayMs: 1_000, error: { code: 'too-many-requests' } }]);
  });

  it('R14: a server that has always forgotten the version is not asked in a hot loop', async () => {
    server.fault = ({ verb }) => (verb === 'watch' ? { type: 'status', status: 410 } : undefined);
    const watching = watch();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(requests('list').length).toBeGreaterThan(1);
    expect(requests('list').length).toBeLessThan(5);
    expect(watching.ended).toBeUndefined();
  });

  it('R14: a missing right keeps what is there, and is asked for again', async () => {
    model.put('shop/a');
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    server.fault = () => ({ type: 'status', status: 403 });
    model.compact();
    server.resetConnections();
    await until(() => expect(failures().length).toBeGreaterThan(1));
    expect(watching.events.length).toBe(1);
    server.fault = () => undefined;
    model.put('shop/b');
    await converged(watching);
  });

  it('R14: unsubscribing aborts the list in flight, and nothing is said afterwards', async () => {
    model.put('shop/a');
    server.fault = ({ verb }) => (verb === 'list' ? { type: 'delay', ms: 200 } : undefined);
    const watching = watch();
    await until(() => expect(requests('list').length).toBe(1));
    watching.stop();
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(watching.events).toStrictEqual([]);
    expect(requests('watch')).toStrictEqual([]);
    expect(signals.at(-1)).toStrictEqual({ type: 'Stopped' });
  });

  it('R14: unsubscribing closes the watch', async () => {
    const watching = watch();
    await until(() => expect(server.watches).toBe(1));
    watching.stop();
    await until(() => expect(server.watches).toBe(0));
  });
});
