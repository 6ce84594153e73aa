import { defer, map, NEVER, Subject, throwError, timer } from 'rxjs';
import { expect, it } from 'vitest';
import { KubeError, type KubeClient } from '../../../src/kube/client.ts';
import { createDiscovery } from '../../../src/kube/discovery.ts';
import { inVirtualTime } from '../../support/marbles.ts';

const LIST = {
  resources: [
    { name: 'ingresses', kind: 'Ingress', namespaced: true },
    { name: 'ingresses/status', kind: 'Ingress', namespaced: true },
    { name: 'ingressclasses', kind: 'IngressClass', namespaced: false },
    { name: '__proto__', kind: 7 },
    null,
  ],
};
const V1 = 'networking.k8s.io/v1';
const PATH = '/apis/networking.k8s.io/v1';

/** A client that answers by path after 10 ms; what is not there is a 404. */
const clientOf = (answers: Record<string, () => unknown>, asked: string[] = []): KubeClient => ({
  request: ({ path }) =>
    defer(() => {
      asked.push(path);
      return timer(10).pipe(
        map(() => {
          const answer = answers[path];
          if (answer === undefined) throw new KubeError('not-found', path);
          return answer();
        }),
      );
    }),
  stream: () => NEVER,
  close: () => Promise.resolve(),
});

it('a resource is found by its plural in the first version that serves it, and by its kind', () => {
  const discovery = createDiscovery(clientOf({ [PATH]: () => LIST, '/api/v1': () => LIST }));
  inVirtualTime(({ expectObservable }) => {
    const ingresses = { apiVersion: V1, kind: 'Ingress', plural: 'ingresses', namespaced: true };
    const classes = {
      apiVersion: V1,
      kind: 'IngressClass',
      plural: 'ingressclasses',
      namespaced: false,
    };
    const versions = ['networking.k8s.io/v2', V1];
    expectObservable(discovery.byPlural(versions, 'ingresses')).toBe('10ms (a|)', { a: ingresses });
    expectObservable(discovery.byKind(V1, 'IngressClass')).toBe('10ms (a|)', { a: classes });
    expectObservable(discovery.byKind('v1', 'Nothing')).toBe('10ms (a|)', { a: undefined });
    expectObservable(discovery.byPlural(['v1', V1], '__proto__')).toBe('10ms (a|)', {
      a: undefined,
    });
  });
});

it('an answer is shared, kept for 30 s, and asked for again after a refresh', () => {
  const asked: string[] = [];
  const discovery = createDiscovery(clientOf({ [PATH]: () => LIST }, asked));
  const look = (): void => {
    discovery.byKind(V1, 'Ingress').subscribe();
  };
  const counts: number[] = [];
  inVirtualTime(({ flush }) => {
    const changes = discovery.changes$.subscribe();
    for (const at of [0, 0, 29_000, 31_000, 40_000]) {
      timer(at).subscribe(() => {
        if (at === 40_000) discovery.refresh();
        look();
        counts.push(asked.length);
      });
    }
    timer(40_200).subscribe(() => {
      look();
      counts.push(asked.length);
      changes.unsubscribe();
    });
    flush();
  });
  expect(counts).toStrictEqual([1, 1, 1, 2, 2, 3]);
});

it('an error is passed on and not kept', () => {
  let count = 0;
  const discovery = createDiscovery(
    clientOf({
      [PATH]: () => {
        count += 1;
        if (count === 1) throw new KubeError('server', 'down');
        return count === 2 ? {} : LIST;
      },
    }),
  );
  inVirtualTime(({ expectObservable }) => {
    const look$ = discovery.byKind(V1, 'Ingress').pipe(map((found) => found?.plural));
    expectObservable(look$).toBe('10ms #', {}, new KubeError('server', 'down'));
    expectObservable(look$, '20ms ^').toBe(
      '30ms #',
      {},
      new KubeError('protocol', `${V1}: the answer is not a list of resources`),
    );
    expectObservable(look$, '40ms ^').toBe('50ms (a|)', { a: 'ingresses' });
  });
});

it('changes are told every 30 s, and at once, 1 s and 5 s after a definition changed', () => {
  const definitions = new Subject<void>();
  const discovery = createDiscovery(
    { ...clientOf({}), request: () => throwError(() => new KubeError('server', 'down')) },
    { crdChanges$: definitions },
  );
  inVirtualTime(({ expectObservable, cold }) => {
    cold('3s a').subscribe(() => definitions.next());
    expectObservable(discovery.changes$.pipe(map(() => 'c')), '^ 40s !').toBe(
      '3s c 999ms c 3999ms c 21999ms c',
    );
  });
});
