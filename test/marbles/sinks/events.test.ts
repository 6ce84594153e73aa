import { asyncScheduler, filter, map, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { KubeError } from '../../../src/kube/client.ts';
import { isType, type Notification } from '../../../src/ports.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import { events, type EventsOptions } from '../../../src/sinks/events.ts';
import { marbles } from '../../support/marbles.ts';
import { failing, ModelApi } from '../../support/model-api.ts';
import { follows, leads, observing } from '../../support/observing.ts';
import { ingressRef, makeRender } from '../../support/renders.ts';
import { refused } from '../../support/world.ts';

const problemOf = (name: string, reason = 'ServiceNotFound', namespace = 'shop'): Problem => ({
  severity: 'error',
  reason,
  message: `Service ${name} does not exist.`,
  nextStep: 'Create it.',
  object: ingressRef(name, namespace),
});

const rendered = (...problems: Problem[]): Notification => ({
  type: 'Rendered',
  render: { ...makeRender(), problems },
  durationMs: 1,
});

const apiWith = (options: ConstructorParameters<typeof ModelApi>[0] = {}): ModelApi => {
  const api = new ModelApi(options);
  api.put(
    '/apis/haproxy-haptic.org/v1alpha1/namespaces/haptic/haproxytemplateconfigs/haptic-config',
    {
      metadata: { uid: 'config-uid' },
    },
  );
  return api;
};

const optionsFor = (client: ModelApi, more: Partial<EventsOptions> = {}): EventsOptions => ({
  client,
  random: () => 0,
  config: { namespace: 'haptic', name: 'haptic-config' },
  identity: 'haptic-0',
  now: () => asyncScheduler.now(),
  ...more,
});

const written = (told$: Observable<Notification>): Observable<string> =>
  told$.pipe(
    filter(isType('Written')),
    map(({ kind }) => kind),
  );

const bodies = (api: ModelApi): readonly Record<string, unknown>[] =>
  api.done.map(({ body }) => body as Record<string, unknown>);

describe('events', () => {
  it(
    'R18: a problem of the newest render is an Event on its object',
    marbles(({ hot, expectObservable, flush }) => {
      const api = apiWith();
      const told$ = observing(
        hot('(rl)', { r: rendered(problemOf('web')), l: leads() }),
        events(optionsFor(api)),
      );
      expectObservable(written(told$), '10s !').toBe('2ms e', { e: 'Event' });
      flush();
      expect(api.done[0]?.path).toBe('/apis/events.k8s.io/v1/namespaces/shop/events');
      expect(bodies(api)[0]).toMatchObject({
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        type: 'Warning',
        reason: 'ServiceNotFound',
        action: 'Render',
        note: 'Service web does not exist. Create it.',
        eventTime: '1970-01-01T00:00:00.001000Z',
        reportingController: 'haproxy-haptic.org/controller',
        reportingInstance: 'haptic-0',
        regarding: { kind: 'Ingress', namespace: 'shop', name: 'web', uid: 'uid-of-web' },
      });
    }),
  );

  it(
    'R18: what lasts is told once an hour, by whichever leader',
    marbles(({ hot, expectObservable, flush }) => {
      const api = apiWith();
      const render = rendered(problemOf('web'));
      const told$ = observing(
        hot('(rl) 9s r 9s f 9s m', { r: render, l: leads(), f: follows, m: leads(2) }),
        events(optionsFor(api)),
      );
      expectObservable(written(told$).pipe(filter(() => false)), '7300s !').toBe('');
      flush();
      // Two hours have three hours of their own in them, each told under another name.
      expect(
        new Set(bodies(api).map(({ metadata }) => (metadata as { name: string }).name)).size,
      ).toBe(3);
      expect(api.done).toHaveLength(3);
    }),
  );

  it(
    'R18: refused configurations, checks and reloads are told about what they concern',
    marbles(({ hot, expectObservable, flush }) => {
      const api = apiWith();
      const pod = { key: 'haptic/haproxy-0/pod-uid/start', name: 'haproxy-0', url: '' };
      const bare: Problem = {
        severity: 'error',
        reason: 'UnknownField',
        message: 'spec.nope is unknown.',
        nextStep: 'Remove it.',
      };
      const told$ = observing(
        hot('(cl) 5s g 5s d', {
          c: { type: 'ConfigRefused', problems: [bare] },
          l: leads(),
          g: {
            type: 'Checked',
            checked: { planId: 'p', verdict: refused('no such option'), durationMs: 1 },
          },
          d: {
            type: 'ReloadDone',
            pod,
            planId: 'p',
            ok: false,
            message: 'bind: in use',
            durationMs: 1,
          },
        }),
        events(optionsFor(api, { limits: { perObjectMs: 0 } })),
      );
      expectObservable(written(told$).pipe(filter(() => false)), '60s !').toBe('');
      flush();
      expect(bodies(api)).toMatchObject([
        {
          reason: 'UnknownField',
          action: 'Load',
          regarding: { name: 'haptic-config', uid: 'config-uid' },
        },
        {
          reason: 'ConfigRefused',
          action: 'Check',
          regarding: { name: 'haptic-config', uid: 'config-uid' },
        },
        {
          reason: 'ReloadFailed',
          action: 'Reload',
          regarding: { kind: 'Pod', name: 'haproxy-0', uid: 'pod-uid' },
        },
      ]);
    }),
  );

  it(
    'R18: a flood is written at a bounded rate, and one object is not told about more often than every ten seconds',
    marbles(({ hot, expectObservable, flush }) => {
      const api = apiWith({ latencyMs: 0 });
      const many = Array.from({ length: 200 }, (_, index) => problemOf(`i${String(index)}`));
      const twice = [problemOf('one'), problemOf('one', 'HostPathConflict')];
      const told$ = observing(
        hot('(rl)', { r: rendered(...twice, ...many), l: leads() }),
        events(optionsFor(api)),
      );
      expectObservable(written(told$).pipe(filter(() => false)), '8s !').toBe('');
      flush();
      const about = (name: string): number =>
        bodies(api).filter(({ regarding }) => (regarding as { name: string }).name === name).length;
      expect(about('one')).toBe(1);
      // A burst of 50, then ten a second.
      expect(api.done.length).toBeGreaterThan(120);
      expect(api.done.length).toBeLessThanOrEqual(131);
    }),
  );

  it(
    'R13: only the leader writes, and nothing after it has lost',
    marbles(({ hot, expectObservable, flush }) => {
      const api = apiWith({ latencyMs: 100 });
      const told$ = observing(
        hot('r 99ms l 149ms f 5s r', { r: rendered(problemOf('web')), l: leads(), f: follows }),
        events(optionsFor(api)),
      );
      expectObservable(told$, '60s !').toBe('');
      flush();
      expect(api.calls.map(({ method }) => method)).toStrictEqual(['GET', 'POST']);
      expect(api.done).toStrictEqual([]);
    }),
  );

  it(
    'R18: a namespace without the right does not silence the others; a server that is away is waited for',
    marbles(({ hot, expectObservable, flush }) => {
      const locked = failing(
        ({ path }) => path.includes('locked'),
        new KubeError('forbidden', 'no'),
      );
      const away = failing(
        ({ method }) => method === 'POST',
        new KubeError('unreachable', 'away'),
        3,
      );
      const api = apiWith({ fails: (request) => locked(request) ?? away(request) });
      const told$ = observing(
        hot('(rl)', { r: rendered(problemOf('a', 'X', 'locked'), problemOf('b')), l: leads() }),
        events(optionsFor(api)),
      );
      const told: string[] = [];
      expectObservable(
        told$.pipe(
          map((event) => told.push(event.type === 'WriteFailed' ? event.outcome : event.type)),
          filter(() => false),
        ),
        '60s !',
      ).toBe('');
      flush();
      expect(told).toStrictEqual([
        'forbidden',
        'unreachable',
        'unreachable',
        'unreachable',
        'Written',
      ]);
    }),
  );
});
