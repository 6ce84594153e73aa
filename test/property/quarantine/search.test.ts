/** The search of changes at fault, over models of what goes together. */
import { fc, test } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import { search } from '../../../src/quarantine/search.ts';

type Model = (some: readonly number[]) => boolean;

const run = (changes: readonly number[], canServe: Model, startIsGood = false) => {
  const steps = search(changes, { startIsGood });
  let asked = 0;
  for (let step = steps.next(); ;) {
    if (step.done === true) return { found: step.value, asked };
    asked += 1;
    step = steps.next(canServe(step.value));
  }
};

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at);

describe('search', () => {
  test.prop([fc.integer({ min: 0, max: 300 }), fc.array(fc.nat(299), { maxLength: 12 })])(
    'R6: finds exactly the changes that are bad by themselves',
    (count, bad) => {
      const { found } = run(upTo(count), (some) => !some.some((change) => bad.includes(change)));
      expect(found).toStrictEqual(upTo(count).filter((change) => bad.includes(change)));
    },
  );

  const pairs = fc.array(fc.tuple(fc.nat(59), fc.nat(59)), { maxLength: 6 });
  test.prop([pairs, fc.array(fc.nat(59), { maxLength: 4 })])(
    'R6: without what it finds all the rest can be served, and with any of it not',
    (together, alone) => {
      const canServe: Model = (some) => {
        const chosen = new Set(some);
        return (
          !alone.some((change) => chosen.has(change)) &&
          !together.some(([left, right]) => left !== right && chosen.has(left) && chosen.has(right))
        );
      };
      const found = run(upTo(60), canServe).found ?? [];
      const rest = upTo(60).filter((change) => !found.includes(change));
      expect(canServe(rest)).toBe(true);
      for (const change of found) expect(canServe([...rest, change])).toBe(false);
    },
  );

  test.prop([fc.integer({ min: 2, max: 400 }), fc.nat(399), fc.nat(399)])(
    'R6: of two changes that do not go together the later one is at fault',
    (count, one, other) => {
      const [low, high] = [Math.min(one, other) % count, Math.max(one, other) % count];
      fc.pre(low < high);
      const { found } = run(upTo(count), (some) => !(some.includes(low) && some.includes(high)));
      expect(found).toStrictEqual([high]);
    },
  );

  test.prop([fc.integer({ min: 1, max: 5_000 }), fc.array(fc.nat(4_999), { maxLength: 20 })])(
    'asks about the logarithm of the changes for each one at fault',
    (count, bad) => {
      const { asked, found } = run(upTo(count), (some) => !some.some((one) => bad.includes(one)));
      const each = Math.ceil(Math.log2(count + 1)) + 2;
      expect(asked).toBeLessThanOrEqual(2 + (found?.length ?? 0) * each);
    },
  );

  it('finds nothing where all can be served, and asks once', () => {
    expect(run([1, 2, 3], () => true)).toStrictEqual({ found: [], asked: 1 });
    expect(run([], () => true)).toStrictEqual({ found: [], asked: 1 });
    expect(run([], () => false, true)).toStrictEqual({ found: [], asked: 0 });
  });

  it('says so when even none of them can be served', () => {
    expect(run([1, 2, 3], () => false).found).toBeUndefined();
    expect(run([], () => false).found).toBeUndefined();
  });

  it('does not ask for the start when it is known to be good', () => {
    const asked: (readonly number[])[] = [];
    run([1, 2], (some) => (asked.push(some), some.length === 0), true);
    expect(asked).not.toContainEqual([]);
  });

  it('does not blame what needs something that itself needs something later', () => {
    const canServe: Model = (some) =>
      !some.includes(2) &&
      (!some.includes(0) || some.includes(1)) &&
      (!some.includes(1) || some.includes(3));
    expect(run([0, 1, 2, 3], canServe).found).toStrictEqual([2]);
  });

  it('does not blame what needs something later', () => {
    // 0 needs 2; 1 is bad by itself.
    const canServe: Model = (some) => !some.includes(1) && (!some.includes(0) || some.includes(2));
    expect(run([0, 1, 2], canServe).found).toStrictEqual([1]);
  });
});
