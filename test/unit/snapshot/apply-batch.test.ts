import { describe, expect, it } from 'vitest';
import { applyBatch, changesBetween, emptySnapshot } from '../../../src/snapshot/apply-batch.ts';
import { eventKey } from '../../../src/snapshot/fold.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const SERVICES = watched('services');

const batch = (...events: readonly WatchEvent[]) =>
  new Map([['services', new Map(events.map((event) => [eventKey(event), event]))]]);
const upsert = (object: KubeObject): WatchEvent => ({ type: 'Upserted', object });
const remove = (key: string): WatchEvent => ({ type: 'Deleted', key });
const replace = (...objects: readonly KubeObject[]): WatchEvent => ({ type: 'Replaced', objects });

const start = (...objects: readonly KubeObject[]) =>
  applyBatch(emptySnapshot([SERVICES]), batch(replace(...objects)));
const brief = (snapshot: ReturnType<typeof start>) =>
  snapshot.changes.map(({ key, before, after }) => [
    key,
    before !== undefined,
    after !== undefined,
  ]);

describe('applyBatch', () => {
  it('takes a replacement, then single changes, and counts versions', () => {
    const first = start(kubeObject('b/x'), kubeObject('a/z'), kubeObject('a-b/y'));
    const second = applyBatch(first, batch(upsert(kubeObject('a/w')), remove('b/x')));
    expect(
      first
        .store('services')
        .list()
        .map(({ metadata }) => metadata.name),
    ).toStrictEqual(['z', 'y', 'x']);
    expect([first.version, second.version]).toStrictEqual([1, 2]);
    expect(brief(second)).toStrictEqual([
      ['a/w', false, true],
      ['b/x', true, false],
    ]);
    expect(
      second
        .store('services')
        .list()
        .map(({ metadata }) => metadata.name),
    ).toStrictEqual(['w', 'z', 'y']);
  });

  it('leaves earlier snapshots as they were', () => {
    const first = start(kubeObject('a/x'));
    const listed = first.store('services').list();
    applyBatch(first, batch(remove('a/x'), upsert(kubeObject('a/y'))));
    expect(first.store('services').list()).toBe(listed);
    expect(first.store('services').get('a', 'x')).toBeDefined();
    expect(first.store('services').size).toBe(1);
  });

  it('compares a replacement with what is there, by key and uid', () => {
    const first = start(
      kubeObject('a/same', { metadata: { uid: '1', resourceVersion: '7' } }),
      kubeObject('a/reborn', { metadata: { uid: '2', resourceVersion: '8' } }),
      kubeObject('a/gone'),
    );
    const kept = first.store('services').get('a', 'same');
    const second = applyBatch(
      first,
      batch(
        replace(
          kubeObject('a/reborn', { metadata: { uid: '3', resourceVersion: '9' } }),
          kubeObject('a/same', { metadata: { uid: '1', resourceVersion: '7' } }),
        ),
      ),
    );
    expect(brief(second)).toStrictEqual([
      ['a/gone', true, false],
      ['a/reborn', true, true],
    ]);
    expect(second.changes[1]?.before?.metadata.uid).toBe('2');
    expect(second.changes[1]?.after?.metadata.uid).toBe('3');
    expect(second.store('services').get('a', 'same')).toBe(kept);
  });

  it.each([
    [
      'the same version',
      { metadata: { resourceVersion: '1' }, spec: 1 },
      { metadata: { resourceVersion: '1' }, spec: 1 },
    ],
    [
      'another version of equal content',
      { metadata: { resourceVersion: '1' }, spec: { a: [1] } },
      { metadata: { resourceVersion: '2' }, spec: { a: [1] } },
    ],
    ['equal content without versions', { spec: { a: 1, b: 2 } }, { spec: { b: 2, a: 1 } }],
  ])('sees no change in %s', (_, before, after) => {
    const first = start(kubeObject('a/x', before));
    expect(applyBatch(first, batch(upsert(kubeObject('a/x', after))))).toBe(first);
  });

  it.each([
    ['a value', { spec: { a: 1 } }, { spec: { a: 2 } }],
    ['a member more', { spec: { a: 1 } }, { spec: { a: 1, b: 1 } }],
    ['a member less', { spec: { a: 1, b: 1 } }, { spec: { a: 1 } }],
    ['an inherited name', { spec: { a: 1 } }, { spec: { constructor: 1 } }],
    ['a list for a mapping', { spec: ['x'] }, { spec: { 0: 'x' } }],
    ['nothing for null', { spec: { a: null } }, { spec: {} }],
    [
      'another uid',
      { metadata: { uid: '1', resourceVersion: '1' } },
      { metadata: { uid: '2', resourceVersion: '1' } },
    ],
    ['a label', { metadata: { labels: { a: 'b' } } }, { metadata: { labels: { a: 'c' } } }],
  ])('sees a change in %s', (_, before, after) => {
    const first = start(kubeObject('a/x', before));
    expect(applyBatch(first, batch(upsert(kubeObject('a/x', after)))).version).toBe(2);
  });

  it('returns the same snapshot for deletions of what is not there (G1)', () => {
    const first = start(kubeObject('a/x'));
    expect(applyBatch(first, batch(remove('a/y')))).toBe(first);
    expect(applyBatch(first, new Map())).toBe(first);
  });

  it('drops ignored fields on entry and sees no change in them', () => {
    const resource = watched('services', { ignoreFields: ['metadata.managedFields', 'status'] });
    const object = (managed: number) =>
      kubeObject('a/x', {
        metadata: { resourceVersion: String(managed), managedFields: [managed] },
        status: { managed },
        spec: 1,
      });
    const first = applyBatch(emptySnapshot([resource]), batch(replace(object(1))));
    expect(first.store('services').get('a', 'x')).toStrictEqual(
      kubeObject('a/x', { metadata: { resourceVersion: '1' }, spec: 1 }),
    );
    expect(applyBatch(first, batch(upsert(object(2))))).toBe(first);
  });

  it('admits what namespaces and selectors select, and drops what stops to match', () => {
    const resource = watched('services', {
      namespaces: ['a', 'b'],
      labelSelector: { app: 'web' },
      fieldSelector: { 'spec.port': '80' },
      ignoreFields: ['spec.port'],
    });
    const object = (key: string, app: string, port: number) =>
      kubeObject(key, { metadata: { labels: { app } }, spec: { port } });
    const first = applyBatch(
      emptySnapshot([resource]),
      batch(
        replace(
          object('a/x', 'web', 80),
          object('b/label', 'db', 80),
          object('b/field', 'web', 81),
          object('c/namespace', 'web', 80),
          kubeObject('a/bare'),
        ),
      ),
    );
    expect(first.store('services').list()).toHaveLength(1);
    expect(first.store('services').get('a', 'x')?.['spec']).toStrictEqual({});
    const second = applyBatch(first, batch(upsert(object('a/x', 'db', 80))));
    expect(brief(second)).toStrictEqual([['a/x', true, false]]);
  });

  it('does not take inherited members for labels', () => {
    const resource = watched('services', { labelSelector: { constructor: 'x' } });
    const first = applyBatch(
      emptySnapshot([resource]),
      batch(replace(kubeObject('a/x', { metadata: { labels: {} } }))),
    );
    expect(first.store('services').size).toBe(0);
  });

  it('keeps objects called constructor and __proto__ apart', () => {
    const first = start(kubeObject('__proto__/constructor'), kubeObject('constructor/__proto__'));
    expect(first.store('services').fetch('__proto__')).toHaveLength(1);
    expect(first.store('services').fetch('__proto__', '__proto__')).toStrictEqual([]);
    expect(first.store('services').get('constructor', '__proto__')).toBeDefined();
    expect(first.store('services').get('toString', 'valueOf')).toBeUndefined();
  });

  it('refuses resources that are not watched', () => {
    const snapshot = emptySnapshot([SERVICES]);
    expect(() => snapshot.store('constructor')).toThrow(RangeError);
    expect(() => applyBatch(snapshot, new Map([['pods', new Map()]]))).toThrow('"pods"');
  });

  it('orders changes by resource and key, whatever the order of the batch', () => {
    const resources = [watched('b'), watched('a')];
    const changes = new Map([
      [
        'a',
        new Map([
          ['n/2', upsert(kubeObject('n/2'))],
          ['n/1', upsert(kubeObject('n/1'))],
        ]),
      ],
      ['b', new Map([['n/3', upsert(kubeObject('n/3'))]])],
    ]);
    const snapshot = applyBatch(emptySnapshot(resources), changes);
    expect(snapshot.changes.map(({ resource, key }) => `${resource} ${key}`)).toStrictEqual([
      'b n/3',
      'a n/1',
      'a n/2',
    ]);
    expect(snapshot.version).toBe(1);
  });
});

describe('changesBetween', () => {
  it('leads over several versions, and leaves out what changed back', () => {
    const first = start(kubeObject('a/x', { spec: 1 }), kubeObject('a/y', { spec: 1 }));
    const objects = [
      kubeObject('a/x', { spec: 2 }),
      kubeObject('a/z', { spec: 1 }),
      kubeObject('a/x', { spec: 3 }),
    ];
    const last = objects.reduce(
      (snapshot, object) => applyBatch(snapshot, batch(upsert(object))),
      first,
    );
    const changes = changesBetween(first, applyBatch(last, batch(remove('a/y'), remove('a/z'))));
    expect(
      changes.map(({ key, before, after }) => [key, before?.['spec'], after?.['spec']]),
    ).toStrictEqual([
      ['a/x', 1, 3],
      ['a/y', 1, undefined],
    ]);
  });
});
