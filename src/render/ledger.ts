/** Who declares what under which name, so that two cells that disagree are found and told. */
import { byCodeUnits, PersistentMap } from '../cells/persistent-map.ts';
import type { ObjectRef } from '../snapshot/objects.ts';

export interface Claim<Value> {
  /** Sorts: of several claims that agree the first one counts. */
  readonly owner: string;
  readonly object: ObjectRef | undefined;
  readonly value: Value;
}

/** What one cell declared before and declares now. */
export interface ClaimUpdate<Value> {
  readonly owner: string;
  readonly object: ObjectRef | undefined;
  readonly before: readonly (readonly [string, Value])[];
  readonly after: readonly (readonly [string, Value])[];
}

type Claims<Value> = readonly Claim<Value>[];

/** Immutable; an update costs the names it touches. */
export class Ledger<Value> {
  readonly #agree: (left: Value, right: Value) => boolean;
  readonly #claims: PersistentMap<Claims<Value>>;
  /** Names with claims that do not agree. */
  readonly conflicts: PersistentMap<Claims<Value>>;

  private constructor(
    agree: (left: Value, right: Value) => boolean,
    claims: PersistentMap<Claims<Value>>,
    conflicts: PersistentMap<Claims<Value>>,
  ) {
    this.#agree = agree;
    this.#claims = claims;
    this.conflicts = conflicts;
  }

  static empty<Value>(agree: (left: Value, right: Value) => boolean): Ledger<Value> {
    return new Ledger<Value>(agree, PersistentMap.EMPTY, PersistentMap.EMPTY);
  }

  /** The ledger after some updates, and what now counts under each name they touched. */
  with(updates: readonly ClaimUpdate<Value>[]): {
    readonly ledger: Ledger<Value>;
    readonly touched: ReadonlyMap<string, Value | undefined>;
  } {
    const changed = new Map<string, Claims<Value>>();
    const claimsOf = (name: string): Claims<Value> =>
      changed.get(name) ?? this.#claims.get(name) ?? [];
    for (const { owner, object, before, after } of updates) {
      for (const [name] of before) {
        changed.set(
          name,
          claimsOf(name).filter((claim) => claim.owner !== owner),
        );
      }
      for (const [name, value] of after) {
        const others = claimsOf(name);
        changed.set(
          name,
          others.length === 0 ? [{ owner, object, value }] : [...others, { owner, object, value }],
        );
      }
    }
    return this.#settled(changed);
  }

  #settled(changed: Map<string, Claims<Value>>): ReturnType<Ledger<Value>['with']> {
    const touched = new Map<string, Value | undefined>();
    const claims = new Map<string, Claims<Value> | undefined>();
    const conflicts = new Map<string, Claims<Value> | undefined>();
    for (const [name, unsorted] of changed) {
      const sorted = unsorted.length < 2 ? unsorted : [...unsorted].sort(byOwner);
      const first = sorted[0];
      const differs =
        first !== undefined &&
        sorted.length > 1 &&
        sorted.some((claim) => claim !== first && !this.#agree(first.value, claim.value));
      touched.set(name, first?.value);
      claims.set(name, first === undefined ? undefined : sorted);
      if (differs) conflicts.set(name, sorted);
      else if (this.conflicts.has(name)) conflicts.set(name, undefined);
    }
    const ledger = new Ledger(
      this.#agree,
      this.#claims.with(claims),
      this.conflicts.with(conflicts),
    );
    return { ledger, touched };
  }
}

const byOwner = (left: { owner: string }, right: { owner: string }): number =>
  byCodeUnits(left.owner, right.owner);
