/** What stands in for objects that cannot be served, so that all others can. */
import { changesBetween, IndexedSnapshot } from '../snapshot/apply-batch.ts';
import type { Replacement } from '../snapshot/object-list.ts';
import type { KubeObject, ObjectKey, ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';

/** Where an object is watched. */
export interface Place {
  /** Name in `watchedResources`. */
  readonly resource: string;
  readonly key: ObjectKey;
}

/** One object in one place: the version that cannot be served, and what is rendered instead. */
export interface Substitute extends Place {
  /** Undefined: it is its deletion that cannot be served. */
  readonly refused: KubeObject | undefined;
  /** Undefined: nothing. */
  readonly instead: KubeObject | undefined;
}

/** What is rendered for an object in quarantine: its last accepted version, routes that answer 503, or nothing. */
export type Stand = 'accepted' | 'closed' | 'nothing';

/** An object in quarantine, in all places where it is watched. */
export interface Quarantined {
  readonly object: ObjectRef;
  readonly substitutes: readonly Substitute[];
  readonly stand: Stand;
  /** Keys of what its cells read, and of what it refers to: a change of one of them may be its cure. */
  readonly reads: ReadonlySet<string>;
  /** What is wrong with it. */
  readonly cause: Problem;
  /** Who found it: the render that failed, or HAProxy's checker. */
  readonly foundBy: 'render' | 'check';
}

/** Objects in quarantine by {@link placeId}; one that is watched in two places is in it twice. */
export type Quarantine = ReadonlyMap<string, Quarantined>;

export const NO_QUARANTINE: Quarantine = new Map();

export const placeId = ({ resource, key }: Place): string => `${resource} ${key}`;

/** Every object in quarantine once. */
export const quarantinedObjects = (quarantine: Quarantine): readonly Quarantined[] => [
  ...new Set(quarantine.values()),
];

/** With further objects, or other substitutes for them; the same quarantine when there are none. */
export const withObjects = (
  quarantine: Quarantine,
  objects: readonly Quarantined[],
): Quarantine => {
  if (objects.length === 0) return quarantine;
  const all = new Map(quarantine);
  for (const one of objects) for (const place of one.substitutes) all.set(placeId(place), one);
  return all;
};

/** Without some objects, in all their places; the same quarantine when none of them is in it. */
export const withoutObjects = (
  quarantine: Quarantine,
  objects: ReadonlySet<Quarantined>,
): Quarantine =>
  objects.size === 0 ? quarantine : new Map([...quarantine].filter(([, one]) => !objects.has(one)));

/** A snapshot as it is watched, and as it is rendered with a quarantine. */
export interface Substituted {
  readonly watched: IndexedSnapshot;
  readonly quarantine: Quarantine;
  readonly rendered: IndexedSnapshot;
}

/**
 * The snapshot to render. While nothing was ever in quarantine it is the watched one; afterwards the versions of what is
 * rendered count for themselves, each one after the other.
 *
 * @param before what was made of the snapshot before; undefined for the first one
 */
export const substitute = (
  before: Substituted | undefined,
  watched: IndexedSnapshot,
  quarantine: Quarantine,
): Substituted => {
  const isSame = before === undefined || before.rendered === before.watched;
  if (isSame && quarantine.size === 0) return { watched, quarantine, rendered: watched };
  const known = before ?? { watched, quarantine: NO_QUARANTINE, rendered: watched };
  const places = new Map<string, Place>();
  const note = (place: Place): void => {
    places.set(placeId(place), place);
  };
  changesBetween(known.watched, watched).forEach(note);
  for (const { substitutes } of [...known.quarantine.values(), ...quarantine.values()]) {
    substitutes.forEach(note);
  }
  const rendered = replaced(known.rendered, { places, watched, quarantine });
  return { watched, quarantine, rendered };
};

interface Wanted {
  readonly places: ReadonlyMap<string, Place>;
  readonly watched: IndexedSnapshot;
  readonly quarantine: Quarantine;
}

/** Brings the named places of a snapshot to what is wanted there. */
const replaced = (
  base: IndexedSnapshot,
  { places, watched, quarantine }: Wanted,
): IndexedSnapshot => {
  const stores = new Map(base.watched);
  const changes = [];
  for (const [name, { resource, store }] of base.watched) {
    const replacements: Replacement[] = [];
    for (const place of places.values()) {
      if (place.resource !== name) continue;
      const before = store.byKey(place.key);
      const after = wantedAt(place, watched, quarantine);
      if (before !== after) replacements.push({ key: place.key, before, after });
    }
    if (replacements.length === 0) continue;
    replacements.sort((left, right) => (left.key < right.key ? -1 : 1));
    stores.set(name, { resource, store: store.with(replacements) });
    for (const one of replacements) changes.push({ resource: name, ...one });
  }
  return changes.length === 0 ? base : new IndexedSnapshot(base.version + 1, changes, stores);
};

const wantedAt = (
  place: Place,
  watched: IndexedSnapshot,
  quarantine: Quarantine,
): KubeObject | undefined => {
  const found = quarantine
    .get(placeId(place))
    ?.substitutes.find(({ resource, key }) => resource === place.resource && key === place.key);
  return found === undefined ? objectAt(watched, place) : found.instead;
};

/** The object in a place of a snapshot; undefined also where the snapshot does not watch the resource. */
export const objectAt = (
  snapshot: IndexedSnapshot | undefined,
  { resource, key }: Place,
): KubeObject | undefined => snapshot?.watched.get(resource)?.store.byKey(key);
