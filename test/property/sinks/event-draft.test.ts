import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { eventDraft, eventWrite, hourOf, NOTE_BYTES } from '../../../src/sinks/event-draft.ts';
import { EventQueue } from '../../../src/sinks/event-queue.ts';

const text = fc.string({ unit: 'binary', maxLength: 2_000 });
const regarding = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constantFrom('Pod', 'Ingress'),
  namespace: fc.constantFrom('', 'shop'),
  name: text,
  uid: fc.constantFrom('', 'u-1'),
});
const draft = fc
  .record({
    regarding,
    type: fc.constant('Warning' as const),
    reason: text,
    action: fc.constant('Render'),
    note: text,
  })
  .map(eventDraft);

describe('events', () => {
  test.prop([draft, fc.integer({ min: 0, max: 4e12 })])(
    'R8: any problem gives an event that the API takes, equal in every replica for an hour',
    (one, nowMs) => {
      const write = eventWrite(one, { nowMs, instance: 'haptic-0', configUid: '' });
      expect(Buffer.byteLength(one.note)).toBeLessThanOrEqual(NOTE_BYTES);
      expect(one.note).not.toMatch(/\p{Cc}/u);
      expect(one.reason.length).toBeLessThanOrEqual(128);
      expect(write.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?\.[0-9a-f]{64}$/);
      expect(write.name.length).toBeLessThanOrEqual(253);
      expect(write.namespace).not.toBe('');
      const later = eventWrite(one, {
        nowMs: nowMs + 3_600_000,
        instance: 'haptic-1',
        configUid: '',
      });
      expect(later.name).not.toBe(write.name);
      expect(hourOf(one, nowMs + 3_600_000)).toBe(hourOf(one, nowMs) + 1);
    },
  );

  test.prop([text])('R8: what a message quotes of a key or certificate is left out', (around) => {
    const note = `${around.slice(0, 100)} -----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY----- end`;
    const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'a', name: 'b', uid: '' };
    const parts = { regarding: ref, type: 'Warning' as const, reason: 'R', action: 'A', note };
    expect(eventDraft(parts).note).not.toContain('c2VjcmV0');
  });
});

test.prop([
  fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 30_000 })), {
    maxLength: 200,
  }),
])('R18: the queue keeps its rates and its bounds, whatever comes when', (arrivals) => {
  const queue = new EventQueue({
    perSecond: 2,
    burst: 3,
    perObjectMs: 1_000,
    waiting: 20,
    told: 30,
  });
  const sent: { readonly object: string; readonly atMs: number }[] = [];
  let nowMs = 0;
  let serial = 0;
  for (const [object, pauseMs] of arrivals) {
    nowMs += pauseMs;
    serial += 1;
    const ref = {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'a',
      name: `o${String(object)}`,
      uid: '',
    };
    const note = String(serial);
    queue.add(
      eventDraft({ regarding: ref, type: 'Warning', reason: 'R', action: 'A', note }),
      nowMs,
    );
    for (let next = queue.next(nowMs); next !== undefined; next = queue.next(nowMs)) {
      queue.settled(next, nowMs);
      sent.push({ object: next.regarding.name, atMs: nowMs });
    }
    expect(queue.size).toBeLessThanOrEqual(20);
  }
  for (const { atMs } of sent) {
    const within = sent.filter((other) => other.atMs >= atMs && other.atMs < atMs + 1_000);
    expect(within.length).toBeLessThanOrEqual(3 + 2);
    expect(new Set(within.map(({ object }) => object)).size).toBe(within.length);
  }
});

test('R6: who is in quarantine is told at once, whatever was told of the object before', () => {
  const queue = new EventQueue({ perObjectMs: 10_000 });
  const about = (reason: string) => {
    const object = { apiVersion: 'v1', kind: 'Ingress', namespace: 'a', name: 'b', uid: '' };
    return eventDraft({ regarding: object, type: 'Warning', reason, action: 'Render', note: '' });
  };
  for (const reason of ['ServiceNotFound', 'RefusedByHAProxy', 'Quarantined']) {
    queue.add(about(reason), 0);
  }
  const told: string[] = [];
  for (let next = queue.next(0); next !== undefined; next = queue.next(0)) {
    told.push(next.reason);
    queue.settled(next, 0);
  }
  expect(told).toStrictEqual(['ServiceNotFound', 'Quarantined']);
});
