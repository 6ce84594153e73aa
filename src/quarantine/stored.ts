/** A quarantine as it is kept for whoever takes over, as plain data. */
import type { DigestFunction } from '../plan/plan.ts';
import { at } from '../routing/fields.ts';
import { isRecord } from '../render/language/values.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import { hasContent } from '../snapshot/content.ts';
import { type KubeObject, objectKey, type ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import {
  objectAt,
  type Place,
  placeId,
  type Quarantine,
  type Quarantined,
  type Stand,
} from './quarantine.ts';

/** Another format is another program's, and is as good as nothing. */
export const FORMAT = 1;

/** Of one configuration; nothing of it holds under another one. */
export interface StoredQuarantine {
  readonly format: typeof FORMAT;
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
  format: FORMAT,
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

/** What somebody stored, without what is not as it should be; undefined when nothing of it is. */
export const readStored = (value: unknown): StoredQuarantine | undefined => {
  if (!isRecord(value) || value['format'] !== FORMAT || !isText(value['generation'])) {
    return undefined;
  }
  const objects = Array.isArray(value['objects']) ? value['objects'].filter(isStoredObject) : [];
  return { format: FORMAT, generation: value['generation'], objects };
};

const isText = (value: unknown): value is string => typeof value === 'string';

const isStoredObject = (value: unknown): value is StoredObject =>
  isRecord(value) &&
  isNamed(value['object']) &&
  ['accepted', 'closed', 'nothing'].includes(String(value['stand'])) &&
  ['render', 'check'].includes(String(value['foundBy'])) &&
  isRecord(value['cause']) &&
  ['reason', 'message', 'nextStep'].every((name) => isText(at(value, 'cause', name))) &&
  isListOf(value['substitutes'], isSubstitute) &&
  isListOf(value['reads'], isRead);

const isNamed = (value: unknown): boolean =>
  ['apiVersion', 'kind', 'namespace', 'name', 'uid'].every((name) => isText(at(value, name)));

const isListOf = (value: unknown, isElement: (element: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isElement);

const isSubstitute = (value: unknown): boolean => {
  const [refused, instead] = [at(value, 'refused'), at(value, 'instead')];
  const [resource, key] = [at(value, 'resource'), at(value, 'key')];
  if (!isText(resource) || !isText(key) || !(refused === null || isText(refused))) return false;
  return instead === null || isObjectAt(instead, key);
};

/** An object under another one's key would be served as that one. */
const isObjectAt = (value: unknown, key: string): boolean =>
  isText(at(value, 'apiVersion')) &&
  isText(at(value, 'kind')) &&
  isText(at(value, 'metadata', 'name')) &&
  objectKey(value as KubeObject) === key;

const isRead = (value: unknown): boolean => {
  if (!Array.isArray(value) || !value.every(isText)) return false;
  try {
    return isListOf(JSON.parse(value[0] ?? ''), isText);
  } catch {
    return false;
  }
};

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
