import { describe, expect, it } from 'vitest';
import { foldByKey } from '../../../src/operators/fold-by-key.ts';
import {
  eventKey,
  initialSnapshots,
  isReplacement,
  mergeEvents,
  snapshotStep,
} from '../../../src/snapshot/fold.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { marbles } from '../../support/marbles.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const upsert = (key: string, spec = 0): WatchEvent => ({
  type: 'Upserted',
  object: kubeObject(key, { spec }),
});
const remove = (key: string): WatchEvent => ({ type: 'Deleted', key });
const replace: WatchEvent = { type: 'Replaced', objects: [] };

const fold = () => foldByKey(eventKey, { quietMs: 3, merge: mergeEvents, clears: isReplacement });

describe('folding watch events', () => {
  it(
    'keeps the newest state of each object, whichever way it changed (G1)',
    marbles(({ cold, expectObservable }) => {
      const events = {
        a: upsert('n/a', 1),
        b: upsert('n/b', 1),
        c: upsert('n/a', 2),
        d: remove('n/b'),
      };
      const folded = cold('-abcd----', events).pipe(fold());
      expectObservable(folded, '^--------!').toBe('-------x-', {
        x: new Map([
          ['n/a', events.c],
          ['n/b', events.d],
        ]),
      });
    }),
  );

  it(
    'lets an upsert win over a deletion before it',
    marbles(({ cold, expectObservable }) => {
      const events = { d: remove('n/a'), u: upsert('n/a') };
      expectObservable(cold('du------', events).pipe(fold()), '^------!').toBe('----x---', {
        x: new Map([['n/a', events.u]]),
      });
    }),
  );

  it(
    'forgets what is pending when everything is replaced',
    marbles(({ cold, expectObservable }) => {
      const events = { a: upsert('n/a'), r: replace, b: upsert('n/b') };
      expectObservable(cold('arb------', events).pipe(fold()), '^-------!').toBe('-----x---', {
        x: new Map([
          ['*', events.r],
          ['n/b', events.b],
        ]),
      });
    }),
  );
});

describe('snapshotStep', () => {
  const step = (state: ReturnType<typeof initialSnapshots>, resource: string, event: WatchEvent) =>
    snapshotStep(state, [{ resource, changes: new Map([[eventKey(event), event]]) }]);

  it('shows nothing before every resource has synced, then everything (G4)', () => {
    const one = step(initialSnapshots([watched('a'), watched('b')]), 'a', {
      type: 'Replaced',
      objects: [kubeObject('n/x')],
    });
    const two = step(one, 'a', upsert('n/y'));
    const three = step(two, 'b', replace);
    expect([one.emit, two.emit]).toStrictEqual([undefined, undefined]);
    expect(three.emit?.store('a').size).toBe(2);
    expect(three.emit?.store('b').size).toBe(0);
  });

  it('does not take single changes for a sync', () => {
    const state = step(initialSnapshots([watched('a')]), 'a', upsert('n/x'));
    expect(state.emit).toBeUndefined();
    expect(step(state, 'a', replace).emit?.store('a').size).toBe(0);
  });

  it('shows an empty world once it has synced', () => {
    expect(step(initialSnapshots([watched('a')]), 'a', replace).emit?.version).toBe(0);
  });

  it('shows nothing for a batch that changes nothing, a later replacement included (G1)', () => {
    const synced = step(initialSnapshots([watched('a')]), 'a', {
      type: 'Replaced',
      objects: [kubeObject('n/x', { spec: 0 })],
    });
    expect(step(synced, 'a', upsert('n/x')).emit).toBeUndefined();
    expect(step(synced, 'a', remove('n/z')).emit).toBeUndefined();
    expect(
      step(synced, 'a', { type: 'Replaced', objects: [kubeObject('n/x', { spec: 0 })] }).emit,
    ).toBeUndefined();
    expect(step(synced, 'a', remove('n/x')).emit?.changes).toHaveLength(1);
  });

  it('leaves its states as they were', () => {
    const seed = initialSnapshots([watched('a')]);
    step(seed, 'a', replace);
    expect(step(seed, 'a', upsert('n/x')).emit).toBeUndefined();
  });
});
