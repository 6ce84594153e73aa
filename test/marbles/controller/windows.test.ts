import { of } from 'rxjs';
import { describe, it } from 'vitest';
import { marbles } from '../../support/marbles.ts';
import {
  configured,
  deleted,
  engine,
  portsWith,
  rendered,
  replaced,
  thing,
  told,
  upserted,
  watching,
} from '../../support/world.ts';

const [s1, s2, s3] = [thing('Server', 's1'), thing('Server', 's2'), thing('Server', 's3')];
const r1 = thing('Route', 'r1');
const first = { l: replaced(s1), e: replaced() };

describe('windows', () => {
  it(
    'G1: a burst gives one render at the end of its quiet time, each object in its newest state',
    marbles(({ cold, expectObservable }) => {
      const newer = thing('Server', 's2', '2');
      const servers$ = cold('l 499ms a 19ms b 19ms c', {
        ...first,
        a: upserted(s2),
        b: upserted(s3),
        c: upserted(newer),
      });
      const versions = told(
        portsWith({ resources: watching(servers$), config$: configured({ debounceMs: 100 }) }),
        'Rendered',
        ({ render }) =>
          render.snapshot
            .store('servers')
            .list()
            .map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion ?? ''}`)
            .join(' '),
      );
      expectObservable(versions, '2s !').toBe('100ms a 539ms b', {
        a: 's1@1',
        b: 's1@1 s2@2 s3@1',
      });
    }),
  );

  it(
    'G1: changes that cancel out give no render',
    marbles(({ cold, expectObservable }) => {
      const servers$ = cold('l 499ms a 9ms b', { ...first, a: upserted(s2), b: deleted('s2') });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured({ debounceMs: 100 }),
      });
      expectObservable(rendered(ports), '2s !').toBe('100ms a', { a: '|s1' });
    }),
  );

  it(
    'G1, S37: the window of a kind ends at the maximum wait under constant change',
    marbles(({ cold, expectObservable }) => {
      // A change every 60 ms never leaves a quiet time of 100 ms; the maximum wait is 1 s.
      const changes = Array.from({ length: 30 }, () => 'a 59ms').join(' ');
      const servers$ = cold(`l 499ms ${changes}`, { ...first, a: upserted(s2) });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured({ debounceMs: 100 }),
      });
      expectObservable(rendered(ports), '1600ms !').toBe('100ms a 1399ms b', {
        a: '|s1',
        b: '|s1 s2',
      });
    }),
  );

  it(
    'G2, G5: newer snapshots cancel a render, until it has to complete',
    marbles(({ cold, expectObservable }) => {
      // A render takes 300 ms and there is a change every 200 ms: without the maximum wait none would ever complete.
      const names = 'abcdefghik'.split('');
      const values = Object.fromEntries(
        names.map((name) => [name, upserted(thing('Server', name))]),
      );
      const servers$ = cold(`l ${names.map((name) => `199ms ${name}`).join(' ')}`, {
        ...values,
        l: first.l,
      });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured({ renderMs: 300 }),
      });
      // Waits are counted from the oldest change without a completed render: l at 0, then e at 1 s.
      expectObservable(rendered(ports), '3s !').toBe('1100ms a 999ms b 299ms c', {
        a: '|a b c d s1',
        b: '|a b c d e f g h i s1',
        c: '|a b c d e f g h i k s1',
      });
    }),
  );

  it(
    'G3: a kind without a window passes while the window of another one is open',
    marbles(({ cold, expectObservable }) => {
      const base = engine({ renderMs: 0, debounceMs: 0 });
      const watched = base.watched.map((one) => ({
        ...one,
        debounceMs: one.name === 'routes' ? 100 : 0,
      }));
      const servers$ = cold('l 499ms - 9ms b', { ...first, b: upserted(s2) });
      const routes$ = cold('e 499ms a', { ...first, a: upserted(r1) });
      const ports = portsWith({
        resources: watching(servers$, routes$),
        config$: of({ ok: true, engine: { ...base, watched } }),
      });
      expectObservable(rendered(ports), '2s !').toBe('100ms a 409ms b 89ms c', {
        a: '|s1',
        b: '|s1 s2',
        c: 'r1|s1 s2',
      });
    }),
  );

  it(
    'G1: windows of two kinds that end together give one render',
    marbles(({ cold, expectObservable }) => {
      const servers$ = cold('l 499ms a', { ...first, a: upserted(s2) });
      const routes$ = cold('e 499ms b', { ...first, b: upserted(r1) });
      const ports = portsWith({
        resources: watching(servers$, routes$),
        config$: configured({ debounceMs: 100 }),
      });
      expectObservable(rendered(ports), '2s !').toBe('100ms a 499ms b', {
        a: '|s1',
        b: 'r1|s1 s2',
      });
    }),
  );

  it(
    'G4: nothing is rendered before every kind has synced',
    marbles(({ cold, expectObservable }) => {
      const servers$ = cold('l 99ms a', { ...first, a: upserted(s2) });
      const routes$ = cold('700ms r', { r: replaced(r1) });
      const ports = portsWith({ resources: watching(servers$, routes$), config$: configured({}) });
      expectObservable(rendered(ports), '2s !').toBe('700ms a', { a: 'r1|s1 s2' });
    }),
  );

  it(
    'G5: a cancelled render has had no effect',
    marbles(({ cold, expectObservable }) => {
      const servers$ = cold('l 499ms a 49ms b', { ...first, a: upserted(s2), b: upserted(s3) });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured({ renderMs: 100 }),
      });
      const deploying = told(
        ports,
        'Deploying',
        ({ desired }) =>
          `${desired.target === undefined ? '' : desired.target.snapshot.store('servers').size}`,
      );
      expectObservable(deploying, '600ms !').toBe('100ms (ab)', { a: '1', b: '1' });
    }),
  );
});
