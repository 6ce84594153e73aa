import { PersistentMap } from '../cells/persistent-map.ts';
import type { SlotPlan } from './committed.ts';
import type { RootResult } from './evaluate.ts';
import type { SlotRequest } from './language/slots.ts';
import type { RootTemplate } from './language/template-set.ts';
import type { SnapshotWorld } from './world.ts';
import type { Item } from './language/writer.ts';

/** An item in which each slot has got its id. */
export type PlacedItem = Item<SlotPlan>;

export interface PlacedRoot {
  readonly root: RootTemplate;
  readonly result: RootResult;
  readonly items: readonly PlacedItem[];
  readonly slots: readonly SlotPlan[];
}

const digits = (number: number): string => String(number).padStart(6, '0');

/** Owner of what a template itself declares; sorts before the owners of its cells. */
export const rootOwner = (index: number): string => digits(index);

export const cellOwner = (slot: SlotPlan, key: string): string => `${slot.id}|${key}`;

/** Gives every slot of a template its id and the collection it goes over now. */
export const placeSlots = (
  { root, index, result }: { root: RootTemplate; index: number; result: RootResult },
  world: SnapshotWorld,
  backendTag: string | undefined,
): PlacedRoot => {
  const repetitions = new Map<string, number>();
  const slots: SlotPlan[] = [];
  const place = ({ tag, over }: SlotRequest): SlotPlan => {
    const repetition = repetitions.get(tag.id) ?? 0;
    repetitions.set(tag.id, repetition + 1);
    const { source, line, column } = tag.place;
    const position = `${source}:${digits(line)}:${digits(column)}#${digits(repetition)}`;
    const slot = {
      id: `${rootOwner(index)}|${position}`,
      tag,
      collection: over instanceof PersistentMap ? over : world.collection(over),
      map: root.kind === 'map' ? root.name : undefined,
      declaresBackends: tag.id === backendTag,
    };
    slots.push(slot);
    return slot;
  };
  const placeItem = (item: Item<SlotRequest>): PlacedItem => {
    if (item.type === 'slot') return { type: 'slot', slot: place(item.slot) };
    return item.type === 'section' ? { ...item, items: item.items.map(placeItem) } : item;
  };
  return { root, result, items: result.items.map(placeItem), slots };
};
