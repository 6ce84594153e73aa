import { filter, type Observable, of } from 'rxjs';
import { expectTypeOf, it } from 'vitest';
import { foldByKey } from '../../src/operators/fold-by-key.ts';
import { forEachKey } from '../../src/operators/for-each-key.ts';
import { schedule, type Scheduled } from '../../src/operators/schedule.ts';
import { settle, type Settled } from '../../src/operators/settle.ts';
import { isType, type Desired, type Notification, type NotificationOf } from '../../src/ports.ts';
import type { Operation, OperationKind } from '../../src/protocol/protocol.ts';
import type { RenderResult } from '../../src/render/render.ts';

// What is wrong here is found by the type check; at run time there is nothing to see.

it('a filter by type narrows the notifications', () => {
  const all$: Observable<Notification> = of();
  const rendered$ = all$.pipe(filter(isType('Rendered')));
  expectTypeOf(rendered$).toEqualTypeOf<Observable<NotificationOf<'Rendered'>>>();
});

it('there is no notification of another name', () => {
  // @ts-expect-error -- a misspelt name must not compile
  isType('Renderd');
});

it('a failed render has no render, a good one no failure', () => {
  expectTypeOf<Extract<RenderResult, { ok: true }>>().not.toHaveProperty('failure');
  expectTypeOf<Extract<RenderResult, { ok: false }>>().not.toHaveProperty('render');
});

it('what the fleet shall hold cannot be changed', () => {
  const change = (desired: Desired): void => {
    // @ts-expect-error -- levels are read-only
    desired.epoch = 2;
  };
  expectTypeOf(change).parameter(0).toEqualTypeOf<Desired>();
});

it('operations are told apart by their kind', () => {
  expectTypeOf<Operation['kind']>().toEqualTypeOf<OperationKind>();
  expectTypeOf<Extract<Operation, { kind: 'map_delete' }>>().not.toHaveProperty('value');
});

it('operators keep the types of keys and values', () => {
  const folded$ = of('a').pipe(foldByKey((value) => value.length, { quietMs: 0 }));
  expectTypeOf(folded$).toEqualTypeOf<Observable<ReadonlyMap<number, string>>>();
  const members$ = folded$.pipe(
    forEachKey((key, value$) => {
      expectTypeOf(key).toEqualTypeOf<number>();
      expectTypeOf(value$).toEqualTypeOf<Observable<string>>();
      return of(key);
    }),
  );
  expectTypeOf(members$).toEqualTypeOf<Observable<number>>();
  const paced$ = of('a').pipe(schedule({ intervalMs: 1, classify: () => 'now' }));
  expectTypeOf(paced$).toEqualTypeOf<Observable<Scheduled<string>>>();
  const settled$ = of('a').pipe(settle(() => 1));
  expectTypeOf(settled$).toEqualTypeOf<Observable<Settled<string, number>>>();
});
