/** The cells of one slot: which of them a snapshot concerns, and what they make now. */
import type { Slot } from '../cells/cells.ts';
import type { Chunk } from '../cells/chunk.ts';
import { OrderedChunks } from '../cells/ordered-chunks.ts';
import { PersistentMap } from '../cells/persistent-map.ts';
import type { CellUpdate } from './cell-updates.ts';
import type { CommittedSlot, SlotPlan } from './committed.ts';
import { evaluateCell, type CellResult, type Surroundings } from './evaluate.ts';

/** Before the first render of a slot. */
export const NO_SLOT: CommittedSlot = {
  collection: PersistentMap.EMPTY,
  results: PersistentMap.EMPTY,
  chunks: OrderedChunks.EMPTY,
};

export interface SlotWork {
  readonly plan: SlotPlan;
  readonly slot: Slot<CellResult>;
  readonly around: Surroundings;
  readonly counts: { evaluated: number };
}

/** What the cell of a key makes now: kept, or evaluated; undefined when its element is gone. */
export const cellsOf =
  ({ plan: { tag, collection, map, declaresBackends }, slot, around, counts }: SlotWork) =>
  (key: string): CellResult | undefined => {
    const element = collection.get(key);
    if (element === undefined) return undefined;
    const kept = slot.valid(key, element);
    if (kept !== undefined) return kept.result;
    counts.evaluated += 1;
    const { result, reads } = evaluateCell({ tag, element, map, declaresBackends }, around);
    return slot.keep(key, { argument: element, result, reads }).result;
  };

/** What a cell prints, if anything. */
export const textOf = (result: CellResult | undefined): Chunk | undefined =>
  result === undefined || result.chunk.size === 0 ? undefined : result.chunk;

/** Keys whose element is another one than in the last complete render, or whose cell is. */
export function* changedKeys(
  now: PersistentMap<unknown>,
  before: PersistentMap<unknown>,
  { unsettled }: Slot<CellResult>,
): Generator<string> {
  // Those of earlier renders: a cell that is evaluated now becomes unsettled, too.
  const earlier = new Set(unsettled);
  for (const { key } of now.differences(before)) {
    earlier.delete(key);
    yield key;
  }
  yield* earlier;
}

/** Updates that take all cells of a slot away. */
export const goneCells = (
  slot: string,
  collection: PersistentMap<unknown>,
  results: PersistentMap<CellResult>,
): CellUpdate[] =>
  collection
    .keys()
    .map((key) => ({ owner: `${slot}|${key}`, before: results.get(key), after: undefined }));
