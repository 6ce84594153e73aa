/** From results of cells that changed to the records they declare. */
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Effects } from './language/effects.ts';
import type { CellResult } from './evaluate.ts';
import type { ClaimUpdate } from './ledger.ts';
import type { Lines, Pair } from './lines.ts';

/** One cell whose result is another one than in the last complete render. */
export interface CellUpdate {
  readonly owner: string;
  readonly before: CellResult | undefined;
  readonly after: CellResult | undefined;
}

/** Claims of one kind; updates that leave them as they are are left out. */
export const claimUpdates = <Value>(
  updates: readonly CellUpdate[],
  claims: (effects: Effects) => readonly (readonly [string, Value])[],
): readonly ClaimUpdate<Value>[] => {
  const changed: ClaimUpdate<Value>[] = [];
  const claimed = (result: CellResult | undefined): readonly (readonly [string, Value])[] =>
    result === undefined ? [] : claims(result.effects);
  for (const update of updates) {
    const change = changeOf(update, claimed(update.before), claimed(update.after));
    if (change !== undefined) changed.push(change);
  }
  return changed;
};

/** Undefined when the same is claimed for the same object. */
const changeOf = <Value>(
  { owner, before, after }: CellUpdate,
  old: readonly (readonly [string, Value])[],
  now: readonly (readonly [string, Value])[],
): ClaimUpdate<Value> | undefined => {
  if (old.length === 0 && now.length === 0) return undefined;
  if (sameClaims(old, now) && sameObject(before?.object, after?.object)) return undefined;
  return { owner, object: after?.object, before: old, after: now };
};

const sameClaims = <Value>(
  left: readonly (readonly [string, Value])[],
  right: readonly (readonly [string, Value])[],
): boolean =>
  left.length === right.length &&
  left.every(([name, value], index) => name === right[index]?.[0] && value === right[index][1]);

const sameObject = (left: ObjectRef | undefined, right: ObjectRef | undefined): boolean =>
  left === right ||
  (left !== undefined &&
    right !== undefined &&
    left.uid === right.uid &&
    left.kind === right.kind &&
    left.name === right.name &&
    left.namespace === right.namespace);

/** Entries of maps, or lines of lists, that cells declare: to which of them they belong, and what they say. */
interface EntryKind<Entry> {
  readonly of: (effects: Effects) => readonly Entry[];
  readonly group: (entry: Entry) => string;
  readonly pair: (entry: Entry) => Pair;
}

type EntryUpdates = ReadonlyMap<string, readonly ClaimUpdate<string>[]>;

const groupedUpdates =
  <Entry>({ of, group, pair }: EntryKind<Entry>) =>
  (updates: readonly CellUpdate[]): EntryUpdates => {
    const changed = new Map<string, ClaimUpdate<string>[]>();
    for (const update of updates) {
      const [old, now] = [update.before, update.after].map((result) =>
        result === undefined ? [] : of(result.effects),
      ) as [readonly Entry[], readonly Entry[]];
      if (old.length === 0 && now.length === 0) continue;
      for (const name of new Set([...old.map(group), ...now.map(group)])) {
        const pairsOf = (entries: readonly Entry[]): readonly Pair[] =>
          entries.filter((entry) => group(entry) === name).map(pair);
        const change = changeOf(update, pairsOf(old), pairsOf(now));
        if (change === undefined) continue;
        const known = changed.get(name);
        if (known === undefined) changed.set(name, [change]);
        else known.push(change);
      }
    }
    return changed;
  };

/** What changes in the entries of each map; maps of which nothing changes are left out. */
export const mapUpdates = groupedUpdates({
  of: ({ mapEntries }) => mapEntries,
  group: ({ map }) => map,
  pair: ({ key, value }) => [key, value],
});

/** What changes in each certificate list. */
export const listUpdates = groupedUpdates({
  of: ({ certificateLines }) => certificateLines,
  group: ({ list }) => list,
  pair: ({ line }) => [line, ''],
});

/** Lines in the order of their owners, after some updates. */
export const updatedLines = (lines: Lines, updates: readonly ClaimUpdate<string>[]): Lines =>
  lines.with(
    new Map(updates.map(({ owner, after }) => [owner, after.length === 0 ? undefined : after])),
  );
