import { filter, map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Discovery } from '../../../src/kube/api-resource.ts';
import { isType, type Notification } from '../../../src/ports.ts';
import type { StatusPatch } from '../../../src/render/render.ts';
import { templateStatus } from '../../../src/sinks/template-status.ts';
import { marbles } from '../../support/marbles.ts';
import { ModelApi } from '../../support/model-api.ts';
import { deploying, leads, observing } from '../../support/observing.ts';
import { makeRender } from '../../support/renders.ts';

const discovery: Discovery = {
  byPlural: () => of(undefined),
  byKind: (apiVersion, kind) =>
    of(kind === 'Widget' ? { apiVersion, kind, plural: 'widgetry', namespaced: true } : undefined),
};

const patchOf = (name: string, ready: boolean, kind = 'Widget'): StatusPatch => ({
  object: { apiVersion: 'example.com/v1', kind, namespace: 'shop', name, uid: `uid-${name}` },
  status: { ready },
});

const runs = (id: string, ...statuses: StatusPatch[]): Notification =>
  deploying({ ...makeRender({ id }), statuses });

describe('statuses that templates ask for', () => {
  it(
    'S51: they are applied to the plural that discovery knows, once, and taken away when no template asks any more',
    marbles(({ hot, expectObservable, flush }) => {
      const api = new ModelApi();
      const path = '/apis/example.com/v1/namespaces/shop/widgetry/one';
      api.put(path, {});
      const told$ = observing(
        hot('(al) 5s b 5s c 5s d', {
          l: leads(),
          a: runs('1', patchOf('one', false), patchOf('x', true, 'Unknown')),
          b: runs('2', patchOf('one', false)),
          c: runs('3', patchOf('one', true)),
          d: runs('4'),
        }),
        templateStatus({ client: api, discovery, random: () => 0 }),
      );
      expectObservable(
        told$.pipe(
          filter(isType('Written')),
          map(({ kind }) => kind),
        ),
        '60s !',
      ).toBe('1ms a 10004ms a 5000ms a', { a: 'Widget' });
      flush();
      expect(api.done.map(({ body }) => (body as { status: unknown }).status)).toStrictEqual([
        { ready: false },
        { ready: true },
        {},
      ]);
      expect(api.done[0]?.query).toStrictEqual({ fieldManager: 'haptic-templates', force: true });
      expect(api.done[0]?.path).toBe(`${path}/status`);
    }),
  );
});
