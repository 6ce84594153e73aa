import { concatWith, map, NEVER, type Observable, of, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { forEachKey } from '../../src/operators/for-each-key.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { WatchedResource, WatchEvent } from '../../src/snapshot/watch.ts';
import { type Fleet, type FleetSettings, haproxyPods } from '../../src/streams/haproxy-pods.ts';
import { marbles } from '../support/marbles.ts';
import { kubeObject } from '../support/watched.ts';

interface PodWords {
  readonly uid?: string;
  readonly ip?: string | undefined;
  readonly container?: string;
  readonly state?: 'running' | 'waiting' | 'terminated';
  readonly agent?: string;
  readonly phase?: string;
  readonly deleted?: boolean;
  readonly created?: string;
  readonly status?: Readonly<Record<string, unknown>>;
}

const podObject = (name: string, words: PodWords = {}): KubeObject => {
  const { uid = `uid-${name}`, ip = '10.0.0.1', container = 'c1', state = 'running' } = words;
  return kubeObject(`ns/${name}`, {
    kind: 'Pod',
    metadata: {
      uid,
      labels: { app: 'haproxy' },
      creationTimestamp: words.created ?? '2026-01-01T00:00:00Z',
      ...(words.deleted === true && { deletionTimestamp: '2026-01-02T00:00:00Z' }),
    },
    spec: { containers: [{ name: 'haproxy' }] },
    status: {
      phase: words.phase ?? 'Running',
      podIP: ip,
      initContainerStatuses: [{ name: 'agent', containerID: words.agent ?? 'a1' }],
      containerStatuses: [
        { name: 'haproxy', containerID: container, restartCount: 0, state: { [state]: {} } },
      ],
      ...words.status,
    },
  });
};

const listed = (...objects: KubeObject[]): WatchEvent => ({ type: 'Replaced', objects });
const written = (name: string, words: PodWords = {}): WatchEvent => ({
  type: 'Upserted',
  object: podObject(name, words),
});
const settings: FleetSettings = { podSelector: { app: 'haproxy' }, port: 5555 };
const open = <T>(...values: T[]): Observable<T> => of(...values).pipe(concatWith(NEVER));

const fleet = (
  watch: (resource: WatchedResource) => Observable<WatchEvent>,
  settings$: Observable<FleetSettings> = open(settings),
): Observable<Fleet> => haproxyPods({ resources: { watch }, namespace: 'ns', settings$ });

const keys = (events$: Observable<WatchEvent>): Observable<string> =>
  fleet(() => events$).pipe(map(({ pods }) => [...pods.keys()].join(' ')));

/** The names and reasons of what is left out of a list of one. */
const reasonFor = (object: KubeObject): string | undefined => {
  let found: Fleet | undefined;
  fleet(() => of(listed(object)))
    .pipe(tap((value) => (found = value)))
    .subscribe()
    .unsubscribe();
  return found?.rejected.get(object.metadata.name);
};

describe('pods of the fleet', () => {
  it(
    'S26: are known by uid and container start, and their agents by address and port',
    marbles(({ expectObservable }) => {
      const fleet$ = fleet(() => open(listed(podObject('a'))));
      const pod = { key: 'ns/a/uid-a/c1', name: 'a', url: 'https://10.0.0.1:5555' };
      expectObservable(fleet$.pipe(map(({ pods }) => [...pods])), '1s !').toBe('p', {
        p: [[pod.key, pod]],
      });
    }),
  );

  it(
    'join and leave',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold<WatchEvent>('l 9ms b 9ms d', {
        l: listed(podObject('a')),
        b: written('b', { ip: '10.0.0.2' }),
        d: { type: 'Deleted', key: 'ns/a' },
      });
      expectObservable(keys(events$), '1s !').toBe('x 9ms y 9ms z', {
        x: 'ns/a/uid-a/c1',
        y: 'ns/a/uid-a/c1 ns/b/uid-b/c1',
        z: 'ns/b/uid-b/c1',
      });
    }),
  );

  it(
    'join when their address is known, and say until then why they are left out',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold<WatchEvent>('l 9ms b', {
        l: listed(podObject('a', { status: { podIP: undefined } })),
        b: written('a'),
      });
      const told$ = fleet(() => events$).pipe(
        map(({ pods, rejected }) => `${String(pods.size)} ${rejected.get('a') ?? ''}`),
      );
      expectObservable(told$, '1s !').toBe('x 9ms y', { x: '0 it has no IP address', y: '1 ' });
    }),
  );

  it(
    'are another pod after a restart of HAProxy, and the same after a restart of the agent',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold<WatchEvent>('l 9ms a 9ms h', {
        l: listed(podObject('a')),
        a: written('a', { agent: 'a2' }),
        h: written('a', { container: 'c2' }),
      });
      expectObservable(keys(events$), '1s !').toBe('x 19ms y', {
        x: 'ns/a/uid-a/c1',
        y: 'ns/a/uid-a/c2',
      });
    }),
  );

  it(
    'are another pod when a new one has the name or the address of an old one',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold<WatchEvent>('l 9ms u 9ms d 9ms b', {
        l: listed(podObject('a')),
        u: written('a', { uid: 'new' }),
        d: { type: 'Deleted', key: 'ns/a' },
        b: written('b'),
      });
      expectObservable(keys(events$), '1s !').toBe('x 9ms y 9ms e 9ms z', {
        x: 'ns/a/uid-a/c1',
        y: 'ns/a/new/c1',
        e: '',
        z: 'ns/b/uid-b/c1',
      });
    }),
  );

  it(
    'of two with one address only the one that stays, else the younger, is spoken to',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold<WatchEvent>('l 9ms b 9ms c', {
        l: listed(podObject('b', { created: '2026-01-01T00:00:00Z' })),
        b: written('a', { created: '2026-01-03T00:00:00Z' }),
        c: written('a', { created: '2026-01-03T00:00:00Z', deleted: true }),
      });
      const told$ = fleet(() => events$).pipe(
        map(({ pods, rejected }) => JSON.stringify([[...pods.values()][0]?.name, ...rejected])),
      );
      expectObservable(told$, '1s !').toBe('x 9ms y 9ms z', {
        x: '["b"]',
        y: '["a",["b","a has its address"]]',
        z: '["b",["a","b has its address"]]',
      });
    }),
  );

  it(
    'that are deleted stay, as leaving, until their HAProxy has ended',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold<WatchEvent>('l 9ms d 9ms t', {
        l: listed(podObject('a')),
        d: written('a', { deleted: true }),
        t: written('a', { deleted: true, state: 'terminated' }),
      });
      const told$ = fleet(() => events$).pipe(
        map(({ pods, leaving }) => [pods.size, leaving.size].join()),
      );
      expectObservable(told$, '1s !').toBe('x 9ms y 9ms z', { x: '1,0', y: '1,1', z: '0,0' });
    }),
  );

  it('that crash stay: what mends them may be an apply', () => {
    expect(reasonFor(podObject('a', { state: 'waiting' }))).toBeUndefined();
    expect(reasonFor(podObject('a', { state: 'terminated' }))).toBeUndefined();
  });

  it.each([
    ['Failed', podObject('a', { phase: 'Failed' }), 'its phase is Failed'],
    ['Succeeded', podObject('a', { phase: 'Succeeded' }), 'its phase is Succeeded'],
    ['without uid', podObject('a', { uid: '' }), 'it has no uid'],
    [
      'whose HAProxy waits for its image',
      podObject('a', {
        status: {
          containerStatuses: [
            { name: 'haproxy', containerID: '', state: { waiting: { reason: 'ErrImagePull' } } },
          ],
        },
      }),
      'its container haproxy has not started: ErrImagePull',
    ],
    [
      'not scheduled yet',
      podObject('a', { status: { containerStatuses: undefined } }),
      'its container haproxy has not started',
    ],
    [
      'of something else',
      { ...podObject('a', { status: { containerStatuses: [] } }), spec: { containers: [{}] } },
      'it has no container haproxy',
    ],
    ['with a host for an address', podObject('a', { ip: 'evil.test' }), 'it has no IP address'],
    ['with a zone', podObject('a', { ip: 'fe80::1%eth0' }), 'it has no IP address'],
    [
      'with a broken status',
      { ...podObject('a'), status: 'x' },
      'its container haproxy has not started',
    ],
  ])('%s are left out with the reason', (_, object, reason) => {
    expect(reasonFor(object)).toBe(reason);
  });

  it.each([
    [{ containerID: 'c9', state: { running: { startedAt: 't1' } } }, 'c9'],
    [{ state: { running: { startedAt: 't1' } }, restartCount: 4 }, 't1'],
    [{ state: { running: {} }, restartCount: 4 }, 'restart-4'],
    [{ state: { running: {} } }, 'restart-0'],
    [{ state: { waiting: {} }, restartCount: 2 }, 'restart-2'],
  ])('are told apart by what the container status has: %j', (status, start) =>
    marbles(({ expectObservable }) => {
      const object = podObject('a', {
        status: { containerStatuses: [{ name: 'sidecar' }, { name: 'haproxy', ...status }] },
      });
      expectObservable(keys(open(listed(object))), '1s !').toBe('x', {
        x: `ns/a/uid-a/${start}`,
      });
    })(),
  );

  it(
    'S26: with an IPv6 address have it in brackets',
    marbles(({ expectObservable }) => {
      const fleet$ = fleet(() => open(listed(podObject('a', { ip: 'fd00::7' }))));
      expectObservable(fleet$.pipe(map(({ pods }) => [...pods.values()][0]?.url)), '1s !').toBe(
        'u',
        {
          u: 'https://[fd00::7]:5555',
        },
      );
    }),
  );
});

describe('a new configuration', () => {
  it(
    'with another selector takes over when its pods are listed, and pods of both stay untouched',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const first$ = cold<WatchEvent>('l', {
        l: listed(podObject('a'), podObject('b', { ip: '10.0.0.2' })),
      });
      const second$ = cold<WatchEvent>('5ms l', {
        l: listed(podObject('b', { ip: '10.0.0.2' }), podObject('c', { ip: '10.0.0.3' })),
      });
      const settings$ = cold('s 9ms t', {
        s: settings,
        t: { ...settings, podSelector: { app: 'other' } },
      });
      const work$ = fleet(
        ({ labelSelector }) => (labelSelector['app'] === 'other' ? second$ : first$),
        settings$,
      ).pipe(
        map(({ pods }) => pods),
        forEachKey((_, pod$) => pod$.pipe(map(({ name }) => name))),
      );
      expectObservable(work$, '1s !').toBe('(ab) 11ms c');
      expectSubscriptions(first$.subscriptions).toBe('^ 9ms !');
    }),
  );

  it(
    'with the same selector does not list again, and with another port moves the agents',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const watch$ = cold<WatchEvent>('l', { l: listed(podObject('a')) });
      const settings$ = cold('s 9ms t', {
        s: settings,
        t: { podSelector: { ...settings.podSelector }, port: 6000 },
      });
      const urls$ = fleet(() => watch$, settings$).pipe(
        map(({ pods }) => [...pods].map(([key, { url }]) => `${key} ${url}`).join()),
      );
      expectObservable(urls$, '1s !').toBe('x 9ms y', {
        x: 'ns/a/uid-a/c1 https://10.0.0.1:5555',
        y: 'ns/a/uid-a/c1 https://10.0.0.1:6000',
      });
      expectSubscriptions(watch$.subscriptions).toBe('^ 999ms !');
    }),
  );

  it(
    'with an empty selector is a problem and changes no pod',
    marbles(({ cold, expectObservable }) => {
      const settings$ = cold('s 9ms t 9ms u', {
        s: settings,
        t: { ...settings, podSelector: {} },
        u: settings,
      });
      const told$ = fleet(() => open(listed(podObject('a'))), settings$).pipe(
        map(({ pods, problems }) => `${String(pods.size)} ${problems[0]?.reason ?? ''}`),
      );
      expectObservable(told$, '1s !').toBe('x 9ms y 9ms x', { x: '1 ', y: '1 PodSelectorEmpty' });
    }),
  );

  it(
    'whose selector finds no pod is a problem until one is there',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold<WatchEvent>('l 9ms p 9ms r', {
        l: listed(),
        p: written('a', { status: { podIP: '' } }),
        r: written('a'),
      });
      const told$ = fleet(() => events$).pipe(
        map(({ problems }) => problems.map(({ message }) => message).join()),
      );
      expectObservable(told$, '1s !').toBe('x 9ms y 9ms z', {
        x: 'no pod has the labels app=haproxy',
        y: 'no pod with the labels app=haproxy can be configured yet',
        z: '',
      });
    }),
  );

  it(
    'a watch is of one namespace and the selector',
    marbles(({ expectObservable }) => {
      const asked: WatchedResource[] = [];
      const watch = (resource: WatchedResource): Observable<WatchEvent> => {
        asked.push(resource);
        return open(listed());
      };
      expectObservable(fleet(watch).pipe(map(({ pods }) => pods.size)), '1s !').toBe('n', { n: 0 });
      expectObservable(of(0).pipe(map(() => asked.map(({ namespaces }) => namespaces)))).toBe(
        '(n|)',
        {
          n: [['ns']],
        },
      );
    }),
  );
});
