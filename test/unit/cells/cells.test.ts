import { expect, test } from 'vitest';
import { CellIndex, Reads, Slot, isSame } from '../../../src/cells/cells.ts';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';

const reading = (values: Readonly<Record<string, unknown>>): Reads => {
  const reads = new Reads();
  for (const [key, value] of Object.entries(values)) reads.read({ key, look: () => value });
  return reads;
};

test('a cell is valid for its argument only', () => {
  const slot = new Slot<string>(new CellIndex());
  const argument = {};
  slot.keep('a', { argument, result: 'made', reads: new Reads() });
  expect(slot.valid('a', argument)?.result).toBe('made');
  expect(slot.valid('a', {})).toBeUndefined();
});

test('a changed read drops the cells that made it, in every slot, and no others', () => {
  const index = new CellIndex();
  const [one, two] = [new Slot<string>(index), new Slot<string>(index)];
  one.keep('a', { argument: 1, result: 'a', reads: reading({ x: 'old' }) });
  one.keep('b', { argument: 1, result: 'b', reads: reading({ y: 'old' }) });
  two.keep('c', { argument: 1, result: 'c', reads: reading({ x: 'old', y: 'old' }) });
  for (const slot of [one, two]) slot.settle();
  index.refresh('x', () => 'new');
  expect([...one.unsettled]).toEqual(['a']);
  expect([...two.unsettled]).toEqual(['c']);
  expect(one.valid('b', 1)?.result).toBe('b');
});

test('a read that sees the same, or a list of the same elements, drops nothing', () => {
  const index = new CellIndex();
  const slot = new Slot<string>(index);
  const element = {};
  slot.keep('a', { argument: 1, result: 'a', reads: reading({ list: [element] }) });
  index.refresh('list', () => [element]);
  expect(slot.valid('a', 1)?.result).toBe('a');
  index.refresh('list', () => [element, element]);
  expect(slot.valid('a', 1)).toBeUndefined();
});

test('a cell that leaves leaves nothing behind', () => {
  const index = new CellIndex();
  const slot = new Slot<string>(index);
  slot.keep('a', { argument: 1, result: 'a', reads: reading({ x: 1, y: 2 }) });
  expect(index.size).toBe(2);
  slot.drop('a');
  expect([slot.size, index.size]).toEqual([0, 0]);
});

test('a result of the last settle no longer holds when another cell took its place', () => {
  const slot = new Slot<string>(new CellIndex());
  slot.keep('a', { argument: 1, result: 'one', reads: new Reads() });
  slot.settle();
  expect([...slot.unsettled]).toEqual([]);
  slot.keep('a', { argument: 2, result: 'two', reads: new Reads() });
  expect([...slot.unsettled]).toEqual(['a']);
});

test('what has left the collection leaves no cell behind, settled or not', () => {
  const index = new CellIndex();
  const slot = new Slot<string>(index);
  const settled = PersistentMap.from([['old', 1]]);
  const both = PersistentMap.from([
    ['old', 1],
    ['new', 2],
  ]);
  slot.follow(settled, PersistentMap.EMPTY);
  slot.keep('old', { argument: 1, result: 'old', reads: reading({ x: 1 }) });
  slot.settle();
  slot.follow(both, settled);
  slot.keep('new', { argument: 2, result: 'new', reads: reading({ y: 1 }) });
  slot.follow(PersistentMap.EMPTY, settled);
  expect([slot.size, index.size]).toEqual([0, 0]);
  expect([...slot.unsettled]).toEqual(['old']);
});

test('a cell sees the same at its second look', () => {
  const reads = new Reads();
  let count = 0;
  const look = (): number => (count += 1);
  expect([reads.read({ key: 'x', look }), reads.read({ key: 'x', look })]).toEqual([1, 1]);
});

test('two values are the same by identity, lists by their elements', () => {
  const element = {};
  expect(isSame([element], [element])).toBe(true);
  expect(isSame([element], [{}])).toBe(false);
  expect(isSame({}, {})).toBe(false);
  expect(isSame(undefined, undefined)).toBe(true);
});
