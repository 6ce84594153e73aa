/** A quarantine as it is kept for whoever takes over, as plain data. */
import type { DigestFunction } from '../plan/plan.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import { hasContent } from '../snapshot/content.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import {
  objectAt,
  type Place,
  placeId,
  type Quarantine,
  type Quarantined,
  type Stand,
} from './quarantine.ts';

/** Of one configuration; nothing of it holds under another one. */
export interface StoredQuarantine {
  readonly generation: string;
  readonly objects: readonly StoredObject[];
}

/** One object of a {@link StoredQuarantine}. */
export interface StoredObject {
  readonly object: ObjectRef;
  readonly stand: Stand;
  readonly foundBy: Quarantined['foundBy'];
  readonly cause: Problem;
  readonly substitutes: readonly (Place & {
    /** Digest of the refused version; null for a deletion. */
    readonly refused: string | null;
    /** Never a Secret: in its place nothing is served. */
    readonly instead: KubeObject | null;
  })[];
  /** What its cells read, each with a digest of what was there. */
  readonly reads: readonly (readonly [key: string, digest: string])[];
}

/** What is to be kept of a quarantine. @param watched the newest snapshot, as it is watched */
export const toStored = (
  objects: readonly Quarantined[],
  {
    generation,
    watched,
    digest,
  }: {
    readonly generation: string;
    readonly watched: IndexedSnapshot;
    readonly digest: DigestFunction;
  },
): StoredQuarantine => ({
  generation,
  objects: objects.map(({ object, stand, foundBy, cause, substitutes, reads }) => {
    const kept = substitutes.map(({ resource, key, refused, instead }) => ({
      ...{ resource, key, refused: digestOf(refused, digest), instead: withoutSecrets(instead) },
    }));
    const isEmpty = kept.every(({ instead }) => instead === null);
    return {
      ...{ object, foundBy, cause, substitutes: kept },
      stand: stand === 'accepted' && isEmpty ? 'nothing' : stand,
      reads: [...reads].sort().map((key) => [key, digestOfRead(key, watched, digest)] as const),
    };
  }),
});

/** What of it still holds: the same version of an object, of which nothing that it reads has changed. */
export const fromStored = (
  { objects }: StoredQuarantine,
  watched: IndexedSnapshot,
  digest: DigestFunction,
): Quarantine => {
  const quarantine = new Map<string, Quarantined>();
  for (const { substitutes, reads, ...facts } of objects) {
    const isSame =
      substitutes.every((one) => digestOf(objectAt(watched, one), digest) === one.refused) &&
      reads.every(([key, before]) => digestOfRead(key, watched, digest) === before);
    if (!isSame) continue;
    const one: Quarantined = {
      ...facts,
      substitutes: substitutes.map(({ resource, key, instead }) => ({
        ...{ resource, key, refused: objectAt(watched, { resource, key }) },
        instead: instead ?? undefined,
      })),
      reads: new Set(reads.map(([key]) => key)),
    };
    for (const place of one.substitutes) quarantine.set(placeId(place), one);
  }
  return quarantine;
};

const withoutSecrets = (object: KubeObject | undefined): KubeObject | null =>
  object === undefined || object.kind === 'Secret' || !hasContent(object) ? null : object;

const digestOf = (object: KubeObject | undefined, digest: DigestFunction): string | null =>
  object === undefined ? null : digest(versionOf(object));

/** The same for the same version, whether its content is there or not. */
const versionOf = (object: KubeObject): string => {
  const { uid = '', resourceVersion } = object.metadata;
  return resourceVersion === undefined ? JSON.stringify(object) : `${uid} ${resourceVersion}`;
};

const digestOfRead = (key: string, watched: IndexedSnapshot, digest: DigestFunction): string =>
  digest(readAt(key, watched).map(versionOf).join('\n'));

/** The objects that a cell finds under the key of a read; none under that of a route, which is made of objects. */
const readAt = (read: string, snapshot: IndexedSnapshot): readonly KubeObject[] => {
  const [type, resource = '', ...keys] = JSON.parse(read) as string[];
  if (type === 'route' || !snapshot.resources.includes(resource)) return [];
  const store = snapshot.store(resource);
  if (type === 'list') return store.list();
  if (type === 'fetch') return store.fetch(...keys);
  const found = store.get(keys[0] ?? '', keys[1] ?? '');
  return found === undefined ? [] : [found];
};
