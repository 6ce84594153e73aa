import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import {
  applyBatch,
  changesBetween,
  emptySnapshot,
  type IndexedSnapshot,
} from '../../../src/snapshot/apply-batch.ts';
import { eventKey } from '../../../src/snapshot/fold.ts';
import { type KubeObject, objectKey } from '../../../src/snapshot/objects.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const RESOURCE = watched('things', {
  indexBy: ['metadata.namespace', 'metadata.labels.app\\.io/name', 'spec.port'],
  labelSelector: {},
  ignoreFields: ['status'],
});

const words = ['a', 'b', '__proto__', 'constructor', 'a-b'];
const word = fc.constantFrom(...words);

const object: fc.Arbitrary<KubeObject> = fc
  .record({
    namespace: word,
    name: word,
    uid: fc.constantFrom('1', '2'),
    label: fc.option(word, { nil: undefined }),
    port: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    status: fc.integer({ min: 0, max: 1 }),
  })
  .map(({ namespace, name, uid, label, port, status }) =>
    kubeObject(`${namespace}/${name}`, {
      metadata: { uid, ...(label !== undefined && { labels: { 'app.io/name': label } }) },
      spec: { port },
      status,
    }),
  );

const event: fc.Arbitrary<WatchEvent> = fc.oneof(
  { weight: 5, arbitrary: object.map((it): WatchEvent => ({ type: 'Upserted', object: it })) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(word, word)
      .map(([namespace, name]): WatchEvent => ({ type: 'Deleted', key: `${namespace}/${name}` })),
  },
  {
    weight: 1,
    arbitrary: fc
      .uniqueArray(object, { selector: objectKey, maxLength: 12 })
      .map((objects): WatchEvent => ({ type: 'Replaced', objects })),
  },
);

/** Batches as a fold makes them: a replacement comes first. */
const batch = fc.array(event, { maxLength: 6 }).map((events) => {
  const folded = new Map<string, WatchEvent>();
  for (const next of events) {
    if (next.type === 'Replaced') folded.clear();
    folded.set(eventKey(next), next);
  }
  return folded;
});

type Model = ReadonlyMap<string, KubeObject>;

const applyToModel = (model: Model, folded: ReadonlyMap<string, WatchEvent>): Model => {
  let next = new Map(model);
  for (const change of folded.values()) {
    if (change.type === 'Replaced') next = new Map(change.objects.map((it) => [objectKey(it), it]));
    else if (change.type === 'Upserted') next.set(objectKey(change.object), change.object);
    else next.delete(change.key);
  }
  return next;
};

const fromScratch = (model: Model): IndexedSnapshot =>
  applyBatch(
    emptySnapshot([RESOURCE]),
    new Map([['things', new Map([['*', { type: 'Replaced', objects: [...model.values()] }]])]]),
  );

const bySorting = (objects: readonly KubeObject[]): readonly KubeObject[] =>
  objects.toSorted((left, right) => {
    const [from, to] = [left, right].map((it) => [it.metadata.namespace ?? '', it.metadata.name]);
    return (from ?? []) < (to ?? []) ? -1 : 1;
  });

const play = (history: readonly ReadonlyMap<string, WatchEvent>[], listing: boolean) => {
  let [snapshot, model]: [IndexedSnapshot, Model] = [emptySnapshot([RESOURCE]), new Map()];
  const snapshots = [snapshot];
  for (const folded of history) {
    const next = applyBatch(snapshot, new Map([['things', folded]]));
    model = applyToModel(model, folded);
    if (listing) next.store('things').list();
    if (next !== snapshot) snapshots.push(next);
    snapshot = next;
  }
  return { snapshot, model, snapshots };
};

describe('snapshots', () => {
  test.prop([fc.array(batch, { maxLength: 30 }), fc.boolean()])(
    'of any history equal one built from scratch (P6)',
    (history, listing) => {
      const { snapshot, model } = play(history, listing);
      expect(snapshot.store('things').list()).toStrictEqual(
        fromScratch(model).store('things').list(),
      );
      expect(snapshot.store('things').size).toBe(model.size);
    },
  );

  test.prop([fc.array(batch, { maxLength: 30 }), fc.boolean()])(
    'answer look-ups as a search through all objects does',
    (history, listing) => {
      const { snapshot } = play(history, listing);
      const store = snapshot.store('things');
      const keysOf = (it: KubeObject): readonly (string | undefined)[] => {
        const port = (it['spec'] as { port?: number }).port;
        return [
          it.metadata.namespace,
          it.metadata.labels?.['app.io/name'],
          port === undefined ? undefined : String(port),
        ];
      };
      const ports = ['1', '2', '3'];
      const questions = words.flatMap((first) => [
        [first],
        ...words.flatMap((second) => [
          [first, second],
          ...ports.map((third) => [first, second, third]),
        ]),
      ]);
      for (const keys of questions) {
        const found = store.list().filter((it) => keys.every((key, at) => keysOf(it)[at] === key));
        expect(store.fetch(...keys)).toStrictEqual(bySorting(found));
      }
      for (const it of store.list()) {
        expect(store.get(it.metadata.namespace ?? '', it.metadata.name)).toBe(it);
      }
    },
  );

  test.prop([fc.array(batch, { maxLength: 20 })])(
    'tell exactly what changed, between neighbours and over several versions',
    (history) => {
      const { snapshots } = play(history, false);
      const contents = (snapshot: IndexedSnapshot): Map<string, KubeObject> =>
        new Map(
          snapshot
            .store('things')
            .list()
            .map((it) => [objectKey(it), it]),
        );
      const pairs = snapshots.flatMap((from, at) =>
        snapshots.slice(at).map((to) => [from, to] as const),
      );
      for (const [from, to] of pairs) {
        const rebuilt = contents(from);
        for (const { key, before, after } of changesBetween(from, to)) {
          expect(before).toBe(rebuilt.get(key));
          expect(before).not.toBe(after);
          if (after === undefined) rebuilt.delete(key);
          else rebuilt.set(key, after);
        }
        expect(rebuilt).toStrictEqual(contents(to));
      }
    },
  );
});
