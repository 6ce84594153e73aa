import { LIMITS, type Digest } from '../../src/protocol/protocol.ts';

/** Plans whose files this HAProxy itself has refused a short while ago, with its words. */
export class KnownBad {
  readonly #refusals = new Map<Digest, { readonly message: string; readonly untilMs: number }>();

  /** @param nowMs milliseconds of the monotonic clock */
  add(planId: Digest, message: string, nowMs: number): void {
    for (const [old, { untilMs }] of this.#refusals) {
      if (untilMs <= nowMs) this.#refusals.delete(old);
    }
    this.#refusals.set(planId, { message, untilMs: nowMs + LIMITS.knownBadMs });
  }

  /** @returns HAProxy's words; `undefined` when it may be tried */
  find(planId: Digest, nowMs: number): string | undefined {
    const refusal = this.#refusals.get(planId);
    return refusal !== undefined && refusal.untilMs > nowMs ? refusal.message : undefined;
  }
}
