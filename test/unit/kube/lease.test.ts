import { describe, expect, it } from 'vitest';
import {
  claimOf,
  EPOCH_ANNOTATION,
  leaseBody,
  nextEpoch,
  readLease,
  usableEpoch,
} from '../../../src/kube/lease.ts';

const where = { namespace: 'ns', name: 'haptic' };
const write = {
  holder: 'me',
  epoch: 7,
  durationMs: 1_500,
  wallMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  acquires: true,
};
const parsed = (json: string) => readLease(JSON.parse(json));

describe('what is written to a Lease', () => {
  it('is a whole object when there is none', () => {
    expect(leaseBody(where, undefined, write)).toStrictEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...where, annotations: { [EPOCH_ANNOTATION]: '7' } },
      spec: {
        holderIdentity: 'me',
        leaseDurationSeconds: 2,
        renewTime: '2026-01-02T03:04:05.006000Z',
        acquireTime: '2026-01-02T03:04:05.006000Z',
        leaseTransitions: 0,
      },
    });
  });

  it('leaves what others wrote there as it is, keys with a meaning in JavaScript included', () => {
    const before = parsed(`{
      "metadata": {"resourceVersion": "9", "uid": "u", "labels": {"a": "b"},
        "annotations": {"__proto__": "x", "constructor": "y"}},
      "spec": {"holderIdentity": "other", "acquireTime": "t", "leaseTransitions": 4, "strategy": "s"}
    }`);
    const after = leaseBody(where, before, write);
    expect(JSON.parse(JSON.stringify(after))).toStrictEqual(
      JSON.parse(`{
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"resourceVersion": "9", "uid": "u", "labels": {"a": "b"},
          "annotations": {"__proto__": "x", "constructor": "y", "${EPOCH_ANNOTATION}": "7"},
          "namespace": "ns", "name": "haptic"},
        "spec": {"holderIdentity": "me", "acquireTime": "2026-01-02T03:04:05.006000Z",
          "renewTime": "2026-01-02T03:04:05.006000Z", "leaseDurationSeconds": 2,
          "leaseTransitions": 5, "strategy": "s"}
      }`),
    );
  });

  it('keeps the time of acquisition while a term goes on', () => {
    const before = parsed('{"metadata": {}, "spec": {"holderIdentity": "me", "acquireTime": "t"}}');
    expect(leaseBody(where, before, { ...write, acquires: false })['spec']).toMatchObject({
      acquireTime: 't',
      leaseTransitions: 0,
    });
  });

  it('counts on from nothing when the count of transitions is broken', () => {
    const before = parsed('{"metadata": {}, "spec": {"leaseTransitions": "many"}}');
    expect(leaseBody(where, before, write)['spec']).toMatchObject({ leaseTransitions: 1 });
  });
});

describe('what is read of a Lease', () => {
  it.each(['null', '"x"', '[]', '{}', '{"metadata": null}'])('refuses %s', (json) => {
    expect(() => parsed(json)).toThrow(expect.objectContaining({ code: 'protocol' }) as Error);
  });

  it('takes a Lease without a spec for released', () => {
    expect(parsed('{"metadata": {}}')).toMatchObject({ holder: '', epoch: undefined });
  });

  it.each([0, -1, 1.5, 1e9, '30', null])('does not use a duration of %j seconds', (seconds) => {
    const json = JSON.stringify({ metadata: {}, spec: { leaseDurationSeconds: seconds } });
    expect(parsed(json).durationMs).toBeUndefined();
  });

  it('shortens an epoch of the length of a book before it is told', () => {
    const json = JSON.stringify({
      metadata: { annotations: { [EPOCH_ANNOTATION]: '9'.repeat(100_000) } },
    });
    expect(parsed(json).oddEpoch).toHaveLength(40);
  });

  it.each(['holderIdentity', 'renewTime', 'acquireTime', 'leaseTransitions'])(
    'is another mark when %s changes, and the same when a hand adds a label',
    (field) => {
      const lease = { metadata: { uid: 'u' }, spec: { [field]: 1 } };
      const { mark } = readLease(lease);
      expect(readLease({ ...lease, spec: { [field]: 2 } }).mark).not.toBe(mark);
      expect(readLease({ ...lease, metadata: { uid: 'u', labels: { a: 'b' } } }).mark).toBe(mark);
    },
  );
});

describe('decisions', () => {
  const lease = (holder: string, seconds?: number) =>
    readLease({ metadata: {}, spec: { holderIdentity: holder, leaseDurationSeconds: seconds } });
  const me = { identity: 'me', durationMs: 30_000 };

  it('a Lease is free, ours or held', () => {
    expect(claimOf(undefined, { ...me, silentMs: 0 })).toBe('free');
    expect(claimOf(lease(''), { ...me, silentMs: 0 })).toBe('free');
    expect(claimOf(lease('me'), { ...me, silentMs: 0 })).toBe('ours');
    expect(claimOf(lease('you'), { ...me, silentMs: 29_999 })).toBe('held');
    expect(claimOf(lease('you'), { ...me, silentMs: 30_000 })).toBe('free');
    expect(claimOf(lease('you', 60), { ...me, silentMs: 30_000 })).toBe('held');
    expect(claimOf(lease('you', 10), { ...me, silentMs: 10_000 })).toBe('free');
  });

  it('an epoch is above all that are known', () => {
    expect(nextEpoch()).toBe(1);
    expect(nextEpoch(undefined, 3, undefined, 2)).toBe(4);
  });

  it.each([1e308, -1, Number.NaN, 1.5, Infinity, 1e15])('%d is no epoch', (value) => {
    expect(usableEpoch(value)).toBeUndefined();
  });
});
