/** When an object leaves quarantine. */
import { ReadKeys } from '../render/world.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import type { ObjectChange } from '../snapshot/snapshot.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import {
  objectAt,
  placeId,
  type Quarantine,
  type Quarantined,
  quarantinedObjects,
  withoutObjects,
} from './quarantine.ts';
import { isUnchanged } from './suspects.ts';

/** How often one version was let out because something that it reads had changed, and when it may be again. */
export interface Returns {
  readonly count: number;
  /** Milliseconds on the clock of the caller. */
  readonly notBefore: number;
  /** Something that it reads has changed meanwhile. */
  readonly due: boolean;
}

/** Who is in quarantine, and the returns of everybody by {@link placeId} of its first place. */
export interface Held {
  readonly quarantine: Quarantine;
  readonly returns: ReadonlyMap<string, Returns>;
}

/** What has happened since. */
export interface News {
  /** What was watched. */
  readonly changes: readonly ObjectChange[];
  /** With the changes. */
  readonly snapshot: IndexedSnapshot;
  /** Milliseconds. */
  readonly now: number;
  readonly watched: readonly WatchedResource[];
}

/**
 * Lets out who is another version now, and who reads what has changed, also what changes because somebody else is let out.
 * The same version that comes back again and again waits longer each time, 10 minutes at most, so that it does not hold up
 * the others.
 */
export const release = ({ quarantine, returns }: Held, news: News): Held => {
  const { snapshot, now, watched } = news;
  const keysOf = new ReadKeys(watched);
  const next = new Map(returns);
  for (const change of news.changes) next.delete(placeId(change));
  const inside = new Set(quarantinedObjects(quarantine));
  const out = new Set<Quarantined>();
  const letOut = (objects: readonly Quarantined[]): ObjectChange[] => {
    for (const one of objects) {
      inside.delete(one);
      out.add(one);
    }
    return objects.flatMap((one) => changesOf(one, snapshot));
  };
  const changed = [...inside].filter((one) => isAnother(one, snapshot));
  const due = [...inside].filter((one) => isDue(next.get(idOf(one)), now));
  for (const one of due) next.set(idOf(one), returned(next.get(idOf(one)), now));
  let changes = [...news.changes.filter(isReal), ...letOut(changed), ...letOut(due)];
  while (changes.length > 0 && inside.size > 0) {
    const keys = [...keysOf.ofObjects(changes)];
    const touched = [...inside].filter(({ reads }) => keys.some((key) => reads.has(key)));
    const [early, free] = [[], []] as [Quarantined[], Quarantined[]];
    for (const one of touched) {
      const known = next.get(idOf(one));
      const isEarly = known !== undefined && now < known.notBefore;
      (isEarly ? early : free).push(one);
      next.set(idOf(one), isEarly ? { ...known, due: true } : returned(known, now));
    }
    for (const one of early) inside.delete(one);
    changes = letOut(free);
  }
  return { quarantine: withoutObjects(quarantine, out), returns: next };
};

/** Content that comes or goes because somebody looks at it, or no longer does, is no news. */
const isReal = ({ before, after }: ObjectChange): boolean => !isUnchanged(before, after);

/** When somebody is to be let out although nothing happens; undefined: nobody is. */
export const nextReturn = ({ quarantine, returns }: Held): number | undefined => {
  const times = [...returns].filter(([id, { due }]) => due && quarantine.has(id));
  return times.length === 0 ? undefined : Math.min(...times.map(([, { notBefore }]) => notBefore));
};

/**
 * Who was found by a search is let out by time, too: what it does not go with may have changed, and nobody knows what that
 * is. Each time it waits longer.
 */
export const dueAgain = (
  returns: Held['returns'],
  objects: readonly Quarantined[],
  now: number,
): Held['returns'] => {
  const next = new Map(returns);
  for (const one of objects) {
    const count = next.get(idOf(one))?.count ?? 0;
    const waitMs = Math.min(FIRST_SEARCHED_MS * 4 ** count, LONGEST_PAUSE_MS);
    next.set(idOf(one), { count, notBefore: now + waitMs, due: true });
  }
  return next;
};

const FIRST_SEARCHED_MS = 60_000;
const FREE_RETURNS = 2;
const LONGEST_PAUSE_MS = 600_000;

const pauseMs = (count: number): number =>
  count <= FREE_RETURNS ? 0 : Math.min(1_000 * 4 ** (count - FREE_RETURNS - 1), LONGEST_PAUSE_MS);

const returned = (known: Returns | undefined, now: number): Returns => {
  const count = (known?.count ?? 0) + 1;
  return { count, notBefore: now + pauseMs(count), due: false };
};

const isDue = (known: Returns | undefined, now: number): boolean =>
  known?.due === true && known.notBefore <= now;

const idOf = ({ substitutes: [first] }: Quarantined): string =>
  first === undefined ? '' : placeId(first);

const isAnother = ({ substitutes }: Quarantined, snapshot: IndexedSnapshot): boolean =>
  substitutes.some((one) => !isUnchanged(objectAt(snapshot, one), one.refused));

/** What changes in what is rendered when an object is let out. */
const changesOf = (
  { substitutes }: Quarantined,
  snapshot: IndexedSnapshot,
): readonly ObjectChange[] =>
  substitutes.map(({ resource, key, instead }) => {
    const after = objectAt(snapshot, { resource, key });
    return { resource, key, before: instead, after };
  });
