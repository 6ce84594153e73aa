import { expect, test } from 'vitest';
import { KnownBad } from '../../../agent/apply/known-bad.ts';
import { LIMITS } from '../../../src/protocol/protocol.ts';

const [ONE, OTHER] = ['a'.repeat(64), 'b'.repeat(64)];

test('a refusal is remembered for a minute, with the words of HAProxy, and for its plan alone', () => {
  const bad = new KnownBad();
  bad.add(ONE, 'no such thing', 1_000);
  expect(bad.find(ONE, 1_000 + LIMITS.knownBadMs - 1)).toBe('no such thing');
  expect(bad.find(OTHER, 1_000)).toBeUndefined();
  expect(bad.find(ONE, 1_000 + LIMITS.knownBadMs)).toBeUndefined();
});

test('a plan that is refused again is remembered from then on', () => {
  const bad = new KnownBad();
  bad.add(ONE, 'once', 0);
  bad.add(ONE, 'twice', 50_000);
  expect(bad.find(ONE, 50_000 + LIMITS.knownBadMs - 1)).toBe('twice');
});
