import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { ObjectList, type Replacement } from '../../../src/snapshot/object-list.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { kubeObject } from '../../support/watched.ts';

describe('ObjectList', () => {
  // Few changes are placed one by one, many are merged, and unread ones pile up: all of it has to come out the same.
  test.prop([
    fc.array(
      fc.tuple(fc.array(fc.tuple(fc.nat(150), fc.boolean()), { maxLength: 90 }), fc.boolean()),
      { maxLength: 6 },
    ),
  ])('is the sorted list of what is there, however it came about', (batches) => {
    const model = new Map<string, KubeObject>();
    let list = ObjectList.EMPTY;
    for (const [edits, isRead] of batches) {
      const changes = new Map<string, Replacement>();
      for (const [number, stays] of edits) {
        const key = `${number % 3 === 0 ? 'a' : 'a-b'}/${number}`;
        const after = stays ? kubeObject(key) : undefined;
        changes.set(key, { key, before: model.get(key), after });
      }
      for (const { key, after } of changes.values()) {
        if (after === undefined) model.delete(key);
        else model.set(key, after);
      }
      const real = [...changes.values()].filter(({ before, after }) => before ?? after);
      list = real.length === 0 ? list : (list.with(real) ?? ObjectList.EMPTY);
      if (isRead) list.toArray();
    }
    const order = ({ metadata }: KubeObject) => `${metadata.namespace ?? ''}\u0000${metadata.name}`;
    expect(list.toArray()).toStrictEqual(
      [...model.values()].sort((left, right) => (order(left) < order(right) ? -1 : 1)),
    );
  });
});
