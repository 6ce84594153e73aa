import type { Digest } from '../protocol/protocol.ts';
import { type EventDraft, hourOf } from './event-draft.ts';

/** Limits of an {@link EventQueue}. */
export interface EventLimits {
  /** Events a second, on the long run. Default 10. */
  readonly perSecond?: number;
  /** Events at once after a quiet time. Default 50. */
  readonly burst?: number;
  /** Least time, in milliseconds, between two events about one object. Default 10,000. */
  readonly perObjectMs?: number;
  /** Drafts that wait; the oldest give way. Default 5,000. */
  readonly waiting?: number;
  /** Events that are remembered as told; the oldest are forgotten first. Default 20,000. */
  readonly told?: number;
}

/** Who is not served hears so within seconds, whatever was told before. */
const URGENT = 'Quarantined';

const DEFAULTS: Required<EventLimits> = {
  perSecond: 10,
  burst: 50,
  perObjectMs: 10_000,
  waiting: 5_000,
  told: 20_000,
};

/** Decides which event may go when: nothing twice within its hour, and not too many. Memory is bounded. */
export class EventQueue {
  readonly #limits: Required<EventLimits>;
  readonly #waiting = new Map<Digest, EventDraft>();
  /** Draft → hour in which it was told. */
  readonly #told = new Map<Digest, number>();
  /** Object → when something was told about it last; insertion order is time order. */
  readonly #lastOf = new Map<string, number>();
  #tokens: number;
  #filledAt: number | undefined;

  constructor(limits: EventLimits = {}) {
    this.#limits = { ...DEFAULTS, ...limits };
    this.#tokens = this.#limits.burst;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Takes a draft in, unless it was told in its hour. */
  add(draft: EventDraft, nowMs: number): void {
    if (this.#told.get(draft.id) === hourOf(draft, nowMs)) return;
    this.#waiting.set(draft.id, draft);
    if (this.#waiting.size > this.#limits.waiting) deleteOldest(this.#waiting);
  }

  /** The next draft that may go now, and stays first until it is {@link settled}; undefined when none may. */
  next(nowMs: number): EventDraft | undefined {
    this.#refill(nowMs);
    if (this.#tokens < 1) return undefined;
    for (const draft of this.#waiting.values()) {
      if (this.#objectWaitMs(draft, nowMs) <= 0) return draft;
    }
    return undefined;
  }

  /** Milliseconds until {@link next} may have one; undefined when nothing waits. */
  waitMs(nowMs: number): number | undefined {
    if (this.#waiting.size === 0) return undefined;
    this.#refill(nowMs);
    const tokenMs = Math.max(0, ((1 - this.#tokens) / this.#limits.perSecond) * 1_000);
    let objectMs = Infinity;
    for (const draft of this.#waiting.values()) {
      objectMs = Math.min(objectMs, Math.max(0, this.#objectWaitMs(draft, nowMs)));
      if (objectMs === 0) break;
    }
    return Math.ceil(Math.max(tokenMs, objectMs));
  }

  /** It was told, or never will be in this hour. */
  settled(draft: EventDraft, nowMs: number): void {
    this.#waiting.delete(draft.id);
    this.#tokens -= 1;
    this.#told.delete(draft.id);
    this.#told.set(draft.id, hourOf(draft, nowMs));
    if (this.#told.size > this.#limits.told) deleteOldest(this.#told);
    const object = objectOf(draft);
    this.#lastOf.delete(object);
    this.#lastOf.set(object, nowMs);
    for (const [old, at] of this.#lastOf) {
      if (nowMs - at < this.#limits.perObjectMs) break;
      this.#lastOf.delete(old);
    }
  }

  #objectWaitMs(draft: EventDraft, nowMs: number): number {
    const last = this.#lastOf.get(objectOf(draft));
    return last === undefined || draft.reason === URGENT
      ? 0
      : last + this.#limits.perObjectMs - nowMs;
  }

  #refill(nowMs: number): void {
    // A clock that was set back gives nothing and takes nothing.
    const passedMs = Math.max(0, nowMs - (this.#filledAt ?? nowMs));
    this.#filledAt = nowMs;
    const { burst, perSecond } = this.#limits;
    this.#tokens = Math.min(burst, this.#tokens + (passedMs * perSecond) / 1_000);
  }
}

const objectOf = ({ regarding: { apiVersion, kind, namespace, name } }: EventDraft): string =>
  [apiVersion, kind, namespace, name].join(' ');

const deleteOldest = <K>(map: Map<K, unknown>): void => {
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
};
