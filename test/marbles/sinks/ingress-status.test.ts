import { concatWith, filter, map, NEVER, type Observable, of, takeUntil, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { KubeError } from '../../../src/kube/client.ts';
import { isType, type Notification, type ResourceSource } from '../../../src/ports.ts';
import { ingressStatus, type IngressStatusOptions } from '../../../src/sinks/ingress-status.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import type { IndexedSnapshot } from '../../../src/snapshot/apply-batch.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { inVirtualTime, marbles } from '../../support/marbles.ts';
import { failing, ModelApi } from '../../support/model-api.ts';
import { changed, ingress, ingressClass, service, snapshotOf } from '../../support/objects.ts';
import { deploying, follows, leads, observing } from '../../support/observing.ts';
import { makeRender } from '../../support/renders.ts';
import { replaced, upserted } from '../../support/world.ts';

const balancer = (...ips: string[]): KubeObject => ({
  ...service('haproxy', {
    namespace: 'haptic',
    spec: { type: 'LoadBalancer' },
  }),
  status: { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } },
});

const sourceOf = (event$: Observable<WatchEvent>): ResourceSource => ({
  watch: () => event$.pipe(concatWith(NEVER)),
  problems$: NEVER,
});

const pathOf = ({ metadata: { namespace = '', name } }: KubeObject): string =>
  `/apis/networking.k8s.io/v1/namespaces/${namespace}/ingresses/${name}`;

const optionsFor = (
  client: ModelApi,
  more: Partial<IngressStatusOptions> = {},
): IngressStatusOptions => ({
  client,
  random: () => 0,
  resources: sourceOf(of(replaced(balancer('192.0.2.1')))),
  service: { namespace: 'haptic', name: 'haproxy' },
  classes: { name: 'haptic', controller: 'haproxy-haptic.org/controller', withoutObject: false },
  namespaces: [],
  ...more,
});

const runs = (snapshot: IndexedSnapshot, epoch = 1): Notification =>
  deploying({ ...makeRender({ id: `v${String(snapshot.version)}` }), snapshot }, { epoch });

/** An API server that holds the same objects as a snapshot. */
const holding = (
  objects: readonly KubeObject[],
  options: ConstructorParameters<typeof ModelApi>[0] = {},
): ModelApi => {
  const api = new ModelApi(options);
  for (const object of objects) if (object.kind === 'Ingress') api.put(pathOf(object), object);
  return api;
};

const addressesOf = (api: ModelApi, object: KubeObject): unknown =>
  (
    api.objects.get(pathOf(object))?.['status'] as
      { loadBalancer?: { ingress?: unknown } } | undefined
  )?.loadBalancer?.ingress;

const [a, b] = [ingress('a'), ingress('b')];
const foreign = ingress('foreign', { className: 'other' });
const objects = [ingressClass('haptic'), ingressClass('other', 'example.com/other'), a, b, foreign];
const snapshot = snapshotOf(objects);

const silently = (told$: Observable<Notification>): Observable<Notification> =>
  told$.pipe(filter(() => false));

describe('addresses', () => {
  it(
    'S51: those of the Service go to every Ingress of our classes that the fleet runs, and to no other',
    marbles(({ hot, expectObservable, flush }) => {
      const api = holding(objects);
      const told$ = observing(
        hot('(dl)', { d: runs(snapshot), l: leads() }),
        ingressStatus(optionsFor(api)),
      );
      expectObservable(told$.pipe(map(({ type }) => type)), '10s !').toBe('2ms (ww)', {
        w: 'Written',
      });
      flush();
      expect(addressesOf(api, a)).toStrictEqual([{ ip: '192.0.2.1' }]);
      expect(addressesOf(api, foreign)).toBeUndefined();
      expect(api.effects).toStrictEqual(['PATCH a/status', 'PATCH b/status']);
    }),
  );

  it(
    'S51: what an Ingress has already is not written, nor again when endpoints change',
    marbles(({ hot, expectObservable, flush }) => {
      const api = holding([
        b,
        { ...a, status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } },
      ]);
      const endpoints = changed(snapshot, [service('x')]);
      const told$ = observing(
        hot('(dl) 5s e', { d: runs(snapshot), e: runs(endpoints), l: leads() }),
        ingressStatus(optionsFor(api)),
      );
      expectObservable(silently(told$), '20s !').toBe('');
      flush();
      expect(api.effects).toStrictEqual(['PATCH b/status']);
    }),
  );

  it(
    'S51: when they change all are rewritten; an Ingress that leaves our class loses them',
    marbles(({ hot, cold, expectObservable, flush }) => {
      const api = holding(objects);
      const event$ = cold('s 9s t', {
        s: replaced(balancer('192.0.2.1')),
        t: upserted(balancer('192.0.2.2')),
      });
      const left = changed(snapshot, [ingress('b', { className: 'other' })]);
      const told$ = observing(
        hot('(dl) 20s e', { d: runs(snapshot), e: runs(left), l: leads() }),
        ingressStatus(optionsFor(api, { resources: sourceOf(event$) })),
      );
      expectObservable(silently(told$), '60s !').toBe('');
      flush();
      expect(api.effects).toHaveLength(5);
      expect(addressesOf(api, a)).toStrictEqual([{ ip: '192.0.2.2' }]);
      expect(addressesOf(api, b)).toBeUndefined();
    }),
  );

  it(
    'S51: addresses that a leader before gave to an Ingress outside our classes are taken away, others stay',
    marbles(({ hot, expectObservable, flush }) => {
      const status = { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } };
      const managedFields = [{ manager: 'haptic', subresource: 'status' }];
      const other = ingress('theirs', { className: 'other' });
      const api = holding([
        { ...foreign, status, metadata: { ...foreign.metadata, managedFields } } as KubeObject,
        { ...other, status },
      ]);
      const told$ = observing(
        hot('(dl)', { d: runs(snapshotOf([...objects.slice(0, 2), foreign, other])), l: leads() }),
        ingressStatus(optionsFor(api)),
      );
      expectObservable(silently(told$), '10s !').toBe('');
      flush();
      expect(addressesOf(api, foreign)).toBeUndefined();
      expect(addressesOf(api, other)).toStrictEqual([{ ip: '192.0.2.9' }]);
    }),
  );

  it(
    'S51: without the Service statuses stay as they are, and that is told',
    marbles(({ hot, expectObservable, flush }) => {
      const api = holding(objects);
      const told$ = observing(
        hot('(dl)', { d: runs(snapshot), l: leads() }),
        ingressStatus(optionsFor(api, { resources: sourceOf(of(replaced())) })),
      );
      expectObservable(
        told$.pipe(
          filter(isType('WriteFailed')),
          map(({ problem }) => problem.reason),
        ),
        '10s !',
      ).toBe('1ms m', { m: 'PublishServiceNotFound' });
      flush();
      expect(api.done).toStrictEqual([]);
    }),
  );
});

describe('writes', () => {
  it(
    'R13: nothing is written after leadership is lost; the next term lists and writes what is missing',
    marbles(({ hot, expectObservable, flush }) => {
      const api = holding(objects, { latencyMs: 100 });
      const told$ = observing(
        hot('(dl) 146ms f 10s (em)', {
          d: runs(snapshot),
          l: leads(),
          f: follows,
          e: runs(snapshot, 2),
          m: leads(2),
        }),
        ingressStatus(optionsFor(api)),
      );
      expectObservable(told$.pipe(map(({ type }) => type)), '60s !').toBe('10351ms (ww)', {
        w: 'Written',
      });
      flush();
      expect(api.calls.filter(({ method }) => method === 'PATCH')).toHaveLength(4);
    }),
  );

  it(
    'R18: a namespace without the right does not keep others from being written',
    marbles(({ hot, expectObservable, flush }) => {
      const elsewhere = ingress('c', { namespace: 'locked' });
      const api = holding([...objects, elsewhere], {
        fails: failing(
          ({ path, method }) => method === 'PATCH' && path.includes('locked'),
          new KubeError('forbidden', 'no'),
        ),
      });
      const told$ = observing(
        hot('(dl)', { d: runs(snapshotOf([...objects, elsewhere])), l: leads() }),
        ingressStatus(optionsFor(api)),
      );
      const first$ = told$.pipe(
        filter(isType('WriteFailed')),
        filter(({ repeated }) => !repeated),
        map(({ problem }) => problem.message),
      );
      expectObservable(first$, '200s !').toBe('2ms f', {
        f: 'May not patch ingresses/status in namespace locked.',
      });
      flush();
      expect(api.effects).toStrictEqual(['PATCH a/status', 'PATCH b/status']);
    }),
  );

  it('S51: 3,000 Ingresses are written with few calls in flight, one for each, the newest addresses last', () => {
    const many = Array.from({ length: 3_000 }, (_, index) => ingress(`i${String(index)}`));
    const api = holding(many, { latencyMs: 5 });
    inVirtualTime(({ hot, cold }) => {
      const event$ = cold('s 499ms t', {
        s: replaced(balancer('192.0.2.1')),
        t: upserted(balancer('192.0.2.2')),
      });
      observing(
        hot('(dl)', { d: runs(snapshotOf([ingressClass('haptic'), ...many])), l: leads() }),
        ingressStatus(optionsFor(api, { resources: sourceOf(event$) })),
      )
        .pipe(takeUntil(timer(60_000)))
        .subscribe();
    });
    expect(api.maxInFlight).toBe(8);
    for (const object of many) {
      expect(addressesOf(api, object)).toStrictEqual([{ ip: '192.0.2.2' }]);
    }
    // Those that had not been written when the addresses changed were written once.
    expect(api.done.length).toBeGreaterThan(3_000);
    expect(api.done.length).toBeLessThan(4_000);
  });
});
