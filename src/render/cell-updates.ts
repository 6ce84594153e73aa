/** From results of cells that changed to the records they declare. */
import { leaf, type Chunk } from '../cells/chunk.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { PersistentMap } from '../cells/persistent-map.ts';
import type { Effects } from './language/effects.ts';
import type { CellResult } from './evaluate.ts';
import type { ClaimUpdate } from './ledger.ts';
import type { Lines } from './committed.ts';

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
  for (const { owner, before, after } of updates) {
    const [old, now] = [claimed(before), claimed(after)];
    if (old.length === 0 && now.length === 0) continue;
    if (!sameClaims(old, now) || !sameObject(before?.object, after?.object)) {
      changed.push({ owner, object: after?.object, before: old, after: now });
    }
  }
  return changed;
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

/** Names of everything of one kind that any update mentions. */
export const mentioned = (
  updates: readonly CellUpdate[],
  names: (effects: Effects) => Iterable<string>,
): ReadonlySet<string> => {
  const found = new Set<string>();
  const add = (result: CellResult | undefined): void => {
    if (result !== undefined) for (const name of names(result.effects)) found.add(name);
  };
  for (const { before, after } of updates) {
    add(before);
    add(after);
  }
  return found;
};

/** Lines in the order of their owners, after some updates. */
export const updatedLines = (
  lines: Lines,
  updates: readonly CellUpdate[],
  pairs: (effects: Effects) => readonly (readonly [string, string])[],
): Lines => {
  const byOwner = new Map<string, readonly (readonly [string, string])[] | undefined>();
  const chunks = new Map<string, Chunk | undefined>();
  const pairsOf = (result: CellResult | undefined): readonly (readonly [string, string])[] =>
    result === undefined ? [] : pairs(result.effects);
  for (const { owner, before, after } of updates) {
    const now = pairsOf(after);
    if (now.length === 0 && pairsOf(before).length === 0) continue;
    byOwner.set(owner, now.length === 0 ? undefined : now);
    const text = now
      .map(([key, value]) => (value === '' ? `${key}\n` : `${key} ${value}\n`))
      .join('');
    chunks.set(owner, now.length === 0 ? undefined : leaf(text));
  }
  return { byOwner: lines.byOwner.with(byOwner), chunks: lines.chunks.with(chunks) };
};

/** Results that hold a problem, or ask for statuses. */
export const updatedNotable = (
  notable: PersistentMap<CellResult>,
  updates: readonly CellUpdate[],
): PersistentMap<CellResult> => {
  const changes = new Map<string, CellResult | undefined>();
  for (const { owner, before, after } of updates) {
    if (after !== undefined && isNotable(after)) changes.set(owner, after);
    else if (before !== undefined && isNotable(before)) changes.set(owner, undefined);
  }
  return notable.with(changes);
};

const isNotable = ({ problem, effects }: CellResult): boolean =>
  problem !== undefined || effects.statuses.length > 0 || effects.problems.length > 0;
