import { byCodeUnits } from '../cells/persistent-map.ts';
import type { Operation } from '../protocol/protocol.ts';
import { entryObstacle } from './command-line.ts';
import { sortedDifferences, type Difference } from './merkle-map.ts';
import type { MapEntry, Plan, PlanMap } from './plan.ts';
import type { ReloadReasons } from './reload-reasons.ts';

/**
 * Operations on maps in three groups. New keys come first and in all maps, since an entry of one map may lead to a key
 * of another; then other values for keys that stay; then keys go. So a key that moves between maps, or that stays, is
 * never missing.
 */
export interface MapChanges {
  readonly adds: Operation[];
  readonly sets: Operation[];
  readonly deletes: Operation[];
}

/**
 * A map that has more than 100 changes and of which more than half changes is replaced: fewer commands, and the worker
 * switches at once. Below, single commands cost less than sending what did not change.
 */
const REPLACE_ABOVE = 100;
const REPLACE_SHARE = 0.5;

/**
 * What leads from a worker's maps to those of a plan.
 *
 * @param loaded maps of the plan that the worker was started from: no other can be named by what it has loaded
 * @param reasons gets what only a reload can bring
 */
export function mapChanges(
  [before, after]: readonly [Plan['maps'], Plan['maps']],
  loaded: Plan['maps'],
  reasons: ReloadReasons,
): MapChanges {
  const changes: MapChanges = { adds: [], sets: [], deletes: [] };
  const changed = sortedDifferences(before, after).filter(
    (difference) => loaded.get(difference.key) !== undefined && isLoaded(difference, reasons),
  );
  const edits = changed.flatMap(({ before: old, after: now }) => {
    if (old === undefined || now === undefined) return [];
    const differences = sortedDifferences(old.entries, now.entries);
    return differences.length === 0 ? [] : [{ old, now, differences }];
  });
  for (const edit of edits) {
    const obstacle = firstObstacle(edit);
    if (obstacle !== undefined)
      reasons.add('unsupported-operation', `map ${edit.now.path}: ${obstacle}`);
    else if (isReplaced(edit)) replace(changes, edit, edits.length === 1);
    else change(changes, edit);
  }
  return changes;
}

interface Edit {
  readonly old: PlanMap;
  readonly now: PlanMap;
  readonly differences: readonly Difference<MapEntry>[];
}

/**
 * False for a map that is not the worker's as the plan has it. One that is new or gone is a file alone: what the worker has
 * loaded cannot name it, or the core would have changed.
 */
function isLoaded({ key, before, after }: Difference<PlanMap>, reasons: ReloadReasons): boolean {
  if (before === undefined || after === undefined) return false;
  if (before.ordered === after.ordered) return true;
  reasons.add('map-ordered', `map ${key}: now ${after.ordered ? '' : 'not '}ordered`);
  return false;
}

function firstObstacle(edit: Edit): string | undefined {
  // A replacement sends every entry, also those that did not change.
  const entries = isReplaced(edit)
    ? [...edit.now.entries.values(), ...(edit.now.ordered ? edit.old.entries.values() : [])]
    : [];
  const changed = edit.differences.flatMap(({ before, after }) => [before, after]);
  for (const entry of [...changed, ...entries]) {
    const obstacle = entry && entryObstacle(entry.key, entry.value);
    if (obstacle !== undefined)
      return `entry ${JSON.stringify(entry?.key.slice(0, 80))} ${obstacle}`;
  }
  return undefined;
}

const isReplaced = ({ now, differences }: Edit): boolean =>
  now.ordered ||
  (differences.length > REPLACE_ABOVE && differences.length > now.entries.size * REPLACE_SHARE);

function change(changes: MapChanges, { now, differences }: Edit): void {
  const map = now.path;
  for (const { key, before, after } of differences) {
    if (after === undefined) changes.deletes.push({ kind: 'map_delete', map, key });
    else if (before === undefined) {
      changes.adds.push({ kind: 'map_add', map, key, value: after.value });
    } else changes.sets.push({ kind: 'map_set', map, key, value: after.value });
  }
}

type Pairs = readonly (readonly [key: string, value: string])[];

/** With other maps changing too, a replacement goes through the same three stages as they do. */
function replace(changes: MapChanges, { old, now }: Edit, alone: boolean): void {
  const [before, after] = [pairsOf(old), pairsOf(now)];
  const widened = [...before, ...without(after, before)];
  const switched = [...after, ...without(before, after)];
  const add = (group: Operation[], entries: Pairs): void =>
    void group.push({ kind: 'map_replace', map: now.path, entries: canonical(now, entries) });
  if (alone) {
    add(changes.sets, after);
    return;
  }
  if (widened.length > before.length) add(changes.adds, widened);
  if (!samePairs(canonical(now, widened), canonical(now, switched))) add(changes.sets, switched);
  if (switched.length > after.length) add(changes.deletes, after);
}

const pairsOf = ({ entries }: PlanMap): Pairs =>
  Array.from(entries.values(), ({ key, value }) => [key, value]);

const without = (pairs: Pairs, others: Pairs): Pairs => {
  const keys = new Set(others.map(([key]) => key));
  return pairs.filter(([key]) => !keys.has(key));
};

const canonical = (map: PlanMap, pairs: Pairs): Pairs =>
  map.ordered ? pairs : pairs.toSorted(([left], [right]) => byCodeUnits(left, right));

const samePairs = (left: Pairs, right: Pairs): boolean =>
  left.length === right.length &&
  left.every(([key, value], at) => right[at]?.[0] === key && right[at][1] === value);
