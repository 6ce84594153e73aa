import { describe, expect, test } from 'vitest';
import {
  differences,
  merkleMap,
  merkleMapOf,
  sortedDifferences,
  type MerkleMap,
} from '../../../src/plan/merkle-map.ts';
import { sha256 } from '../../support/plan-world.ts';

interface Item {
  readonly digest: string;
}
const item = (text: string): Item => ({ digest: sha256(text) });
const mapOf = (entries: Readonly<Record<string, string>>): MerkleMap<Item> =>
  merkleMapOf(
    Object.entries(entries).map(([key, text]) => [key, item(text)] as const),
    sha256,
  );
const many = (count: number): MerkleMap<Item> =>
  merkleMapOf(
    Array.from({ length: count }, (_, n) => [`key-${n}`, item(`${n}`)] as const),
    sha256,
  );

describe('a Merkle map', () => {
  test('has one digest for one content, however it came about', () => {
    const once = mapOf({ a: '1', b: '2' });
    const detour = mapOf({ b: 'other', c: '3' }).with(
      new Map([
        ['b', item('2')],
        ['c', undefined],
        ['a', item('1')],
      ]),
    );
    expect(detour.digest).toBe(once.digest);
    expect(detour.size).toBe(2);
    expect(detour.keys()).toEqual(['a', 'b']);
  });

  test('has another digest when a key, a record or who has which changes', () => {
    const digests = [
      mapOf({}),
      mapOf({ a: '1' }),
      mapOf({ a: '2' }),
      mapOf({ b: '1' }),
      mapOf({ a: '1', b: '2' }),
      mapOf({ a: '2', b: '1' }),
    ].map(({ digest }) => digest);
    expect(new Set(digests).size).toBe(digests.length);
  });

  test('keeps keys that objects trip over apart from members of objects', () => {
    const map = merkleMap<Item>(sha256).with(new Map([['__proto__', item('1')]]));
    expect(map.get('__proto__')).toEqual(item('1'));
    expect(map.get('constructor')).toBeUndefined();
    expect(map.keys()).toEqual(['__proto__']);
  });

  test('yields its values in the order of its keys', () => {
    const map = mapOf({ b: '2', a: '1', C: '3' });
    expect(map.keys()).toEqual(['C', 'a', 'b']);
    expect([...map.values()]).toEqual([item('3'), item('1'), item('2')]);
  });

  test('is the same object when a change changes nothing', () => {
    const map = mapOf({ a: '1' });
    expect(map.with(new Map([['a', item('1')]]))).toBe(map);
    expect(map.with(new Map([['b', undefined]]))).toBe(map);
  });

  test('hashes for an update the path to it and nothing else', () => {
    let hashed = 0;
    const counting = (text: string): string => {
      hashed += 1;
      return sha256(text);
    };
    const entries = Array.from({ length: 5_000 }, (_, n) => [`key-${n}`, item(`${n}`)] as const);
    const map = merkleMapOf(entries, counting);
    expect(map.digest).toHaveLength(64);
    hashed = 0;
    const next = map.with(new Map([['key-7', item('changed')]]));
    expect(hashed).toBe(0);
    expect(next.digest).not.toBe(map.digest);
    expect(hashed).toBe(3);
  });
});

describe('differences', () => {
  test('name what was added, changed and removed, and nothing else', () => {
    const before = mapOf({ a: '1', b: '2', c: '3' });
    const after = before.with(
      new Map([
        ['a', undefined],
        ['b', item('changed')],
        ['d', item('4')],
      ]),
    );
    expect(sortedDifferences(before, after)).toEqual([
      { key: 'a', before: item('1'), after: undefined },
      { key: 'b', before: item('2'), after: item('changed') },
      { key: 'd', before: undefined, after: item('4') },
    ]);
  });

  test('are none between maps that were built apart with equal content', () => {
    expect([...differences(many(2_000), many(2_000))]).toEqual([]);
  });

  test('do not look at records of shards that are the same', () => {
    const before = many(2_000);
    const after = before.with(new Map([['key-7', item('changed')]]));
    let reads = 0;
    const spied = before.with(
      new Map(
        before.keys().map((key) => [
          key,
          Object.defineProperty({} as { digest: string }, 'digest', {
            get: () => {
              reads += 1;
              return sha256(key);
            },
          }),
        ]),
      ),
    );
    const next = spied.with(new Map([['key-7', item('changed')]]));
    reads = 0;
    expect(sortedDifferences(spied, next).map(({ key }) => key)).toEqual(['key-7']);
    expect(reads).toBeLessThan(20);
    expect(sortedDifferences(before, after)).toHaveLength(1);
  });

  test('need maps of one make', () => {
    const foreign: MerkleMap<Item> = { ...mapOf({}), size: 0, digest: '' };
    expect(() => differences(mapOf({}), foreign)).toThrow(TypeError);
  });
});
