import type { ReloadReason } from './change-set.ts';

const MOST = 32;

/** Collects why a change needs a reload: 32 for people, the rest as a count. Lives inside one diff. */
export class ReloadReasons {
  readonly #reasons: ReloadReason[] = [];
  readonly #causes = new Set<ReloadReason['cause']>();
  #count = 0;

  add(cause: ReloadReason['cause'], message: string): void {
    this.#count += 1;
    this.#causes.add(cause);
    if (this.#count <= MOST) this.#reasons.push({ cause, message });
  }

  /** True when there is none. */
  get empty(): boolean {
    return this.#count === 0;
  }

  /** True when every cause is among these. */
  only(causes: ReadonlySet<ReloadReason['cause']>): boolean {
    return this.#causes.isSubsetOf(causes);
  }

  /** In the order they were found; the last of more than 32 says how many there are. */
  list(): readonly ReloadReason[] {
    const last = this.#reasons[MOST - 1];
    if (this.#count <= MOST || last === undefined) return this.#reasons;
    const more = this.#count - MOST;
    return [
      ...this.#reasons.slice(0, -1),
      { cause: last.cause, message: `${last.message} (and ${more} more reasons)` },
    ];
  }
}
