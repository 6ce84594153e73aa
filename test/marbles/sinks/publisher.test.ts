import { gunzipSync, gzipSync } from 'node:zlib';
import {
  asyncScheduler,
  concat,
  distinctUntilChanged,
  filter,
  map,
  NEVER,
  type Observable,
  of,
  startWith,
  takeUntil,
  timer,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { KubeError } from '../../../src/kube/client.ts';
import { isType, type Notification } from '../../../src/ports.ts';
import { PART_BYTES } from '../../../src/sinks/published-files.ts';
import { publisher, type PublisherOptions } from '../../../src/sinks/publisher.ts';
import { inVirtualTime, marbles, type RunHelpers } from '../../support/marbles.ts';
import { failing, ModelApi } from '../../support/model-api.ts';
import { deploying, follows, leads, observing } from '../../support/observing.ts';
import { makeRender } from '../../support/renders.ts';
import {
  clientOf,
  configured,
  model,
  passed,
  portsWith,
  refused,
  replaced,
  server,
  watching,
} from '../../support/world.ts';
import { controller } from '../../../src/controller.ts';

const GROUP = '/apis/haproxy-haptic.org/v1alpha1/namespaces/haptic';
const OWNER = `${GROUP}/haproxytemplateconfigs/haptic-config`;
const MAIN = `${GROUP}/haproxycfgs/haptic-config`;

const apiWith = (options: ConstructorParameters<typeof ModelApi>[0] = {}): ModelApi => {
  const api = new ModelApi(options);
  api.put(OWNER, { metadata: { uid: 'owner-uid' } });
  return api;
};

const optionsFor = (client: ModelApi, more: Partial<PublisherOptions> = {}): PublisherOptions => ({
  client,
  random: () => 0,
  owner: { namespace: 'haptic', name: 'haptic-config' },
  compress: (texts) => of(new Uint8Array(gzipSync([...texts].join('')))),
  publishing$: of({ enabled: true, compressionThreshold: 65_536 }),
  now: () => asyncScheduler.now(),
  ...more,
});

const first = makeRender({ config: 'first', files: { 'maps/hosts.map': 'a b\n' } });
const second = makeRender({ config: 'second', files: { 'maps/hosts.map': 'a b\n' } });
const third = makeRender({ config: 'third' });

const marks: Record<string, Notification> = {
  l: leads(),
  m: leads(2),
  f: follows,
  a: deploying(first),
  b: deploying(second),
  c: deploying(third),
  A: deploying(first, { epoch: 2 }),
  x: { type: 'Checked', checked: { planId: first.plan.id, verdict: passed, durationMs: 1 } },
  y: {
    type: 'Checked',
    checked: { planId: second.plan.id, verdict: refused('no'), durationMs: 1 },
  },
  p: deploying(first, { phase: 'pinned' }),
  s: { type: 'ShuttingDown' },
};

/** What the publisher tells for a timeline of notifications. */
const run = (
  { hot }: RunHelpers,
  timeline: string,
  options: PublisherOptions,
): Observable<Notification> => observing(hot(timeline, marks), publisher(options));

const failures = (told$: Observable<Notification>): Observable<string> =>
  told$.pipe(
    filter(isType('WriteFailed')),
    map(({ outcome, repeated }) => `${outcome}${repeated ? ' again' : ''}`),
  );

const writes = (told$: Observable<Notification>): Observable<string> =>
  told$.pipe(
    filter(isType('Written')),
    map(({ kind }) => kind),
  );

const specAt = (api: ModelApi, path: string): Record<string, unknown> =>
  api.objects.get(path)?.['spec'] as Record<string, unknown>;

describe('what is published', () => {
  it(
    'S49, S50: the main file, its maps and the status, owned by the configuration',
    marbles((helpers) => {
      const api = apiWith();
      const written$ = writes(run(helpers, '(alx)', optionsFor(api)));
      // Six calls find out what is there: the owner and one list of each kind.
      helpers.expectObservable(written$, '5s !').toBe('6ms abc', {
        a: 'HAProxyMapFile',
        b: 'HAProxyCfg',
        c: 'HAProxyCfg',
      });
      helpers.flush();
      expect(specAt(api, MAIN)).toMatchObject({
        path: 'haproxy.cfg',
        content: 'first',
        compressed: false,
        part: 1,
        parts: 1,
        checksum: `sha256:${first.plan.config.digest}`,
      });
      const main = api.objects.get(MAIN)!;
      expect(main.metadata).toMatchObject({
        labels: { 'haproxy-haptic.org/config-uid': 'owner-uid' },
        ownerReferences: [
          { kind: 'HAProxyTemplateConfig', name: 'haptic-config', uid: 'owner-uid' },
        ],
      });
      expect(main['status']).toMatchObject({
        planId: first.plan.id,
        conditions: [
          { type: 'ConfigValidated', status: 'True' },
          { type: 'ConfigPinned', status: 'False' },
        ],
      });
    }),
  );

  it(
    'S49, G6: at most one publication each interval, the newest wins, the last one goes',
    marbles((helpers) => {
      const api = apiWith();
      const options = optionsFor(api);
      helpers
        .expectObservable(
          writes(run(helpers, '(al) 1s b 1s a 1s b 1s c 30s a', options)).pipe(
            filter((kind) => kind === 'HAProxyCfg'),
            map(() =>
              api.done
                .filter(({ path }) => path === MAIN)
                .map(({ body }) => (body as { spec: { content: string } }).spec.content)
                .at(-1),
            ),
          ),
          '60s !',
        )
        .toBe('7ms ab 9992ms cd 24007ms ef', {
          a: 'first',
          b: 'first',
          c: 'third',
          d: 'third',
          e: 'first',
          f: 'first',
        });
    }),
  );

  it(
    'S50: a refusal and a pinned gate are conditions; the time of a transition stays',
    marbles((helpers) => {
      const api = apiWith();
      helpers
        .expectObservable(
          run(helpers, '(alx) 20s y 20s p', optionsFor(api)).pipe(filter(() => false)),
          '80s !',
        )
        .toBe('');
      helpers.flush();
      const { conditions } = api.objects.get(MAIN)!['status'] as {
        conditions: Record<string, string>[];
      };
      expect(conditions).toMatchObject([
        {
          type: 'ConfigValidated',
          status: 'False',
          reason: 'Refused',
          lastTransitionTime: '1970-01-01T00:00:20Z',
        },
        { type: 'ConfigPinned', status: 'True', lastTransitionTime: '1970-01-01T00:00:40Z' },
      ]);
    }),
  );

  it(
    'S49: what the fleet no longer runs is pruned, and everything when publishing is switched off',
    marbles((helpers) => {
      const api = apiWith();
      const publishing$ = helpers.cold('a 29s b', {
        a: { enabled: true, compressionThreshold: 10 },
        b: { enabled: false, compressionThreshold: 10 },
      });
      const told$ = run(helpers, '(al) 15s c', optionsFor(api, { publishing$ }));
      helpers.expectObservable(told$.pipe(filter(() => false)), '60s !').toBe('');
      helpers.flush();
      expect(api.effects.filter((effect) => effect.startsWith('DELETE'))).toStrictEqual([
        expect.stringMatching(
          /^DELETE haproxymapfiles\/haptic-config-maps-hosts-map-[0-9a-f]{64}$/,
        ),
        'DELETE haproxycfgs/haptic-config',
      ]);
    }),
  );

  it(
    'S49: a private key in a file that is none for keys is withheld and told',
    marbles((helpers) => {
      const api = apiWith();
      const render = makeRender({
        config: 'fine',
        files: { 'general/note.txt': '-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n' },
      });
      const told$ = observing(
        helpers.hot('(al)', { a: deploying(render), l: leads() }),
        publisher(optionsFor(api)),
      );
      helpers.expectObservable(failures(told$), '5s !').toBe('5ms w', { w: 'withheld' });
      helpers.flush();
      expect(JSON.stringify([...api.objects.values()])).not.toContain('c2VjcmV0');
    }),
  );
});

describe('leadership', () => {
  it(
    'R13: nothing is written after leadership is lost, also not what is in flight',
    marbles((helpers) => {
      const api = apiWith({ latencyMs: 100 });
      const told$ = run(helpers, '(al) 550ms f 10s b', optionsFor(api));
      helpers.expectObservable(told$, '60s !').toBe('');
      helpers.flush();
      expect(api.calls.at(-1)?.method).toBe('PATCH');
      expect(api.done).toStrictEqual([]);
    }),
  );

  it(
    'R13: nothing is written once the shutdown has begun',
    marbles((helpers) => {
      const api = apiWith({ latencyMs: 100 });
      helpers
        .expectObservable(run(helpers, '(al) 550ms s 10s (b|)', optionsFor(api)), '60s !')
        .toBe('10555ms |');
      helpers.flush();
      expect(api.done).toStrictEqual([]);
    }),
  );

  it(
    'S49, G10: a new leader writes nothing that is there already',
    marbles((helpers) => {
      const api = apiWith();
      helpers
        .expectObservable(
          writes(run(helpers, '(al) 30s f 10s (Am)', optionsFor(api))).pipe(startWith('start')),
          '90s !',
        )
        .toBe('s 5ms abc', { s: 'start', a: 'HAProxyMapFile', b: 'HAProxyCfg', c: 'HAProxyCfg' });
      helpers.flush();
      expect(api.calls.filter(({ method }) => method === 'GET')).toHaveLength(10);
    }),
  );
});

it(
  'S18, S49: in the whole controller each leader publishes what it deploys and each pod took',
  marbles(({ cold, expectObservable, flush }) => {
    const api = apiWith();
    const ports = portsWith({
      resources: watching(cold('l 29999ms a', { l: replaced(), a: server('a') })),
      config$: configured(),
      leader$: cold('x 14999ms y 9999ms z', {
        x: { leading: true, epoch: 1 },
        y: { leading: false },
        z: { leading: true, epoch: 2 },
      }),
      agents: clientOf(new Map([['p1', model()]])),
      observers: [publisher(optionsFor(api))],
    });
    const isMain = ({ path }: { readonly path: string }): boolean => path === MAIN;
    expectObservable(
      controller(ports).pipe(
        filter(isType('Written')),
        map(() => api.done.filter(isMain).length),
        distinctUntilChanged(),
      ),
      '60s !',
    ).toBe('6ms nm 34993ms o', { n: 0, m: 1, o: 2 });
    flush();
    expect(api.objects.get(MAIN)?.['status']).toMatchObject({
      podCount: 1,
      deployedToPods: [{ lastOutcome: 'runtime' }],
    });
  }),
);

describe('failures', () => {
  const isMap = ({ path, method }: { path: string; method: string }): boolean =>
    method === 'PATCH' && path.includes('haproxymapfiles');

  it(
    'R18: a right that is missing is told once with verb and resource; the rest is published, later all of it',
    marbles((helpers) => {
      const api = apiWith({ fails: failing(isMap, new KubeError('forbidden', 'no'), 3) });
      const told$ = run(helpers, '(al)', optionsFor(api));
      const told: Notification[] = [];
      helpers
        .expectObservable(failures(told$.pipe(map((event) => (told.push(event), event)))), '60s !')
        .toBe('6ms a 502ms b 1s b', { a: 'forbidden', b: 'forbidden again' });
      helpers.flush();
      expect(told[0]).toMatchObject({
        problem: {
          reason: 'ApiForbidden',
          message: 'May not create and patch haproxymapfiles in namespace haptic.',
        },
      });
      expect(api.effects.map((effect) => effect.split('/')[0])).toStrictEqual([
        'PATCH haproxycfgs',
        'PATCH haptic-config',
        'PATCH haproxymapfiles',
      ]);
    }),
  );

  it(
    'R18: a definition that is not installed is told once and tried later and later',
    marbles((helpers) => {
      const fails = failing(
        ({ path }) => path.includes('haproxycrtlistfiles'),
        new KubeError('not-found', '404'),
      );
      const api = apiWith({ fails });
      const told$ = run(helpers, '(al)', optionsFor(api)).pipe(
        filter(isType('WriteFailed')),
        filter(({ repeated }) => !repeated),
        map(({ problem }) => problem.reason),
      );
      helpers.expectObservable(told$, '300s !').toBe('5ms a', { a: 'ResourceNotServed' });
      helpers.flush();
      // 0.5, 1, 2 … 32, then 60 s apart.
      expect(api.calls.filter(({ path }) => path.includes('haproxycrtlistfiles'))).toHaveLength(11);
    }),
  );

  it(
    'R18: a busy server is asked again when it wants to be',
    marbles((helpers) => {
      const busy = new KubeError('too-many-requests', 'busy', { retryAfterMs: 7_000 });
      const api = apiWith({ fails: failing(isMap, busy, 1) });
      helpers
        .expectObservable(writes(run(helpers, '(al)', optionsFor(api))), '60s !')
        .toBe('7007ms abc', {
          a: 'HAProxyMapFile',
          b: 'HAProxyCfg',
          c: 'HAProxyCfg',
        });
    }),
  );

  it(
    'R18: what the server refuses is told and not sent again until it changes',
    marbles((helpers) => {
      const api = apiWith({ fails: failing(isMap, new KubeError('invalid', 'no such field')) });
      helpers
        .expectObservable(failures(run(helpers, '(al) 15s b 15s a', optionsFor(api))), '90s !')
        .toBe('6ms a', {
          a: 'invalid',
        });
    }),
  );

  it(
    'R18: a write that meets a conflict is tried again',
    marbles((helpers) => {
      const api = apiWith({ fails: failing(isMap, new KubeError('conflict', 'uid'), 1) });
      helpers
        .expectObservable(run(helpers, '(al)', optionsFor(api)).pipe(filter(() => false)), '60s !')
        .toBe('');
      helpers.flush();
      expect(api.effects.filter((effect) => effect.includes('mapfiles'))).toHaveLength(1);
    }),
  );
});

/** Lines that compress badly, as host names with digests in them do. */
const mapText = (entries: number): string => {
  let state = 1;
  const random = (): string => {
    state = Math.imul(state, 1_103_515_245) + 12_345;
    return (state >>> 0).toString(36);
  };
  return Array.from(
    { length: entries },
    () => `${Array.from({ length: 24 }, random).join('')}.example.com be_${random()}\n`,
  ).join('');
};

it('R21, S49: a map of 10,000 entries is split into objects below 1 MiB that give its bytes again', () => {
  const text = mapText(10_000);
  const api = apiWith();
  inVirtualTime(({ hot }) => {
    const render = makeRender({ config: 'c', files: { 'maps/hosts.map': text } });
    observing(hot('(al)', { a: deploying(render), l: leads() }), publisher(optionsFor(api)))
      .pipe(takeUntil(timer(5_000)))
      .subscribe();
  });
  const bodies = api.done.filter(({ path }) => path.includes('mapfiles')).map(({ body }) => body);
  const specs = bodies.map((body) => (body as { spec: { part: number; content: string } }).spec);
  // The first part goes last: with it the file is complete.
  expect(specs.map(({ part }) => part)).toStrictEqual([3, 2, 1]);
  for (const body of bodies) {
    expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(1024 * 1024);
  }
  const parts = specs.toReversed().map(({ content }) => Buffer.from(content, 'base64'));
  expect(gunzipSync(Buffer.concat(parts)).toString()).toBe(text);
});

it('R21, S50: the longest status of a large fleet fits beside the largest part', () => {
  const long = '\u{1f300}'.repeat(1_000);
  const api = apiWith();
  const deployments = Array.from({ length: 1_000 }, (_, index): Notification => {
    const key = `haptic/haproxy-${'x'.repeat(230)}-${String(index)}/uid-${String(index)}/start`;
    const pod = { key, name: String(index), url: '' };
    return {
      type: 'ApplyFailed',
      pod,
      planId: 'p',
      cause: 'rejected',
      message: long,
      retryInMs: 1,
    };
  });
  inVirtualTime(() => {
    const told$ = concat(of(leads(), ...deployments, deploying(first)), NEVER);
    observing(told$, publisher(optionsFor(api)))
      .pipe(takeUntil(timer(15_000)))
      .subscribe();
  });
  const status = api.objects.get(MAIN)?.['status'] as { podCount: number };
  expect(status.podCount).toBe(1_000);
  expect(Buffer.byteLength(JSON.stringify(status)) + (PART_BYTES / 3) * 4).toBeLessThan(1_000_000);
});
