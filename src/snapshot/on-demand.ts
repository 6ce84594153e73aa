import { PersistentMap } from '../cells/persistent-map.ts';
import {
  type ContentOutcome,
  hasContent,
  metadataOf,
  type Need,
  needKey,
  type Needs,
  withoutContent,
} from './content.ts';
import { type FoldedChanges, REPLACEMENT_KEY } from './folded-changes.ts';
import type { ResourceChanges } from './fold.ts';
import { type KubeObject, type ObjectKey, objectKey } from './objects.ts';
import type { WatchEvent } from './watch.ts';

/** Objects that are asked for at the same time. */
const MOST_AT_ONCE = 16;

/** What an answer shows of an object. */
export interface ContentAnswer {
  readonly need: Need;
  readonly event: Exclude<WatchEvent, { type: 'Replaced' }>;
}

/** What is shown of an object now. */
type Shown = (resource: string, key: ObjectKey) => KubeObject | undefined;

/**
 * Decides what enters the snapshot of on-demand resources, of which a watch brings the metadata alone: content for what is
 * needed, metadata for everything else. An object that is needed and changes keeps what it was until its new content is
 * there, so no render waits for it; only what nobody needed before is awaited. What was needed gives its content back.
 *
 * Costs follow changes and needs, never the number of objects. It does nothing by itself: {@link starts} says what to ask
 * for, and {@link answered} takes the answers in any order.
 */
export class OnDemandContent {
  readonly #resources: ReadonlySet<string>;
  readonly #shown: Shown;
  #needs: Needs = PersistentMap.EMPTY;
  /** Needed objects without their newest content: the newest metadata. All maps are by {@link needKey}. */
  readonly #wanted = new Map<string, KubeObject>();
  readonly #queue = new Set<string>();
  /** What is being asked for, with the metadata it was asked for. */
  readonly #asked = new Map<string, KubeObject>();
  /** Life and version whose content is shown. */
  readonly #versions = new Map<string, string>();

  /** @param shown looks into the newest state, seen or not */
  constructor(resources: readonly string[], shown: Shown) {
    this.#resources = new Set(resources);
    this.#shown = shown;
  }

  /** What of these changes is shown now. */
  changed({ resource, changes }: ResourceChanges): ResourceChanges {
    if (!this.#resources.has(resource)) return { resource, changes };
    const now = new Map<ObjectKey, WatchEvent>();
    for (const [key, event] of changes) {
      if (event.type === 'Replaced') now.set(REPLACEMENT_KEY, this.#replaced(resource, event));
      else if (event.type === 'Deleted') {
        this.#forget(needKeyOf({ resource, key }));
        now.set(key, event);
      } else {
        const object = this.#decide({ resource, key }, event.object);
        // Nothing to show yet, or what is shown already: after a replacement that must be said.
        if (object !== undefined) now.set(key, { type: 'Upserted', object });
      }
    }
    return { resource, changes: now };
  }

  /** What another set of needs changes: content that nobody needs any more is dropped. */
  needed(needs: Needs): readonly ResourceChanges[] {
    const dropped: ContentAnswer[] = [];
    for (const { key, before, after } of needs.differences(this.#needs)) {
      if (before === undefined && after !== undefined) this.#want(key, this.#shownFor(after));
      if (before === undefined || after !== undefined) continue;
      const shown = this.#shownFor(before);
      if (shown !== undefined) {
        const object = metadataOf(this.#wanted.get(key) ?? shown);
        dropped.push({ need: before, event: { type: 'Upserted', object } });
      }
      this.#forget(key);
    }
    this.#needs = needs;
    return changesOf(dropped);
  }

  /**
   * Takes an answer; what it shows, if anything, goes into {@link shows} at any later time. After one that something is
   * unreadable, {@link again} asks once more.
   */
  answered(need: Need, outcome: ContentOutcome): ContentAnswer | undefined {
    const key = needKeyOf(need);
    const [asked, wanted] = [this.#asked.get(key), this.#wanted.get(key)];
    this.#asked.delete(key);
    if (asked === undefined || wanted === undefined) return undefined;
    const isNewest = versionOf(asked) === versionOf(wanted);
    if (outcome.type === 'Unreadable') {
      if (!isNewest) this.#queue.add(key);
      const object = withoutContent(wanted, outcome.reason);
      return { need, event: { type: 'Upserted', object } };
    }
    if (outcome.type === 'Gone') {
      if (isNewest) this.#forget(key);
      else this.#queue.add(key);
      return isNewest ? { need, event: { type: 'Deleted', key: need.key } } : undefined;
    }
    return this.#found(need, outcome.object, isNewest);
  }

  #found(need: Need, object: KubeObject, isNewest: boolean): ContentAnswer | undefined {
    const key = needKeyOf(need);
    const wanted = this.#wanted.get(key);
    if (isNewest || (wanted !== undefined && versionOf(object) === versionOf(wanted))) {
      this.#wanted.delete(key);
    } else {
      // It changed meanwhile. What was found is newer than what is shown, unless it is of an earlier life.
      this.#queue.add(key);
      if (object.metadata.uid !== wanted?.metadata.uid) return undefined;
    }
    this.#versions.set(key, versionOf(object));
    return { need, event: { type: 'Upserted', object } };
  }

  /** The changes that answers mean by now: those that something newer overtook are left out. */
  shows(answers: Iterable<ContentAnswer>): readonly ResourceChanges[] {
    return changesOf([...answers].filter((answer) => this.#holds(answer)));
  }

  #holds({ need, event }: ContentAnswer): boolean {
    const key = needKeyOf(need);
    if (event.type === 'Deleted') return !this.#wanted.has(key) && !this.#versions.has(key);
    if (hasContent(event.object)) return this.#versions.get(key) === versionOf(event.object);
    const shown = this.#shownFor(need);
    return this.#wanted.has(key) && shown !== undefined && !hasContent(shown);
  }

  /** Asks again for something that was unreadable. */
  again(need: Need): void {
    const key = needKeyOf(need);
    if (this.#wanted.has(key) && !this.#asked.has(key)) this.#queue.add(key);
  }

  /** What to ask for now; each of them is to be {@link answered} once. */
  starts(): readonly Need[] {
    const starts: Need[] = [];
    for (const key of this.#queue) {
      if (this.#asked.size >= MOST_AT_ONCE) break;
      this.#queue.delete(key);
      const [wanted, need] = [this.#wanted.get(key), this.#needs.get(key)];
      if (wanted === undefined || need === undefined) continue;
      this.#asked.set(key, wanted);
      starts.push(need);
    }
    return starts;
  }

  #replaced(
    resource: string,
    { objects }: Extract<WatchEvent, { type: 'Replaced' }>,
  ): Extract<WatchEvent, { type: 'Replaced' }> {
    const listed = new Set(objects.map(objectKey));
    for (const key of [...this.#wanted.keys(), ...this.#versions.keys()]) {
      const need = this.#needs.get(key);
      if (need?.resource === resource && !listed.has(need.key)) this.#forget(key);
    }
    const shown = objects.map((object) =>
      this.#decide({ resource, key: objectKey(object) }, object),
    );
    return { type: 'Replaced', objects: shown.filter((object) => object !== undefined) };
  }

  /** What is shown of an object whose newest metadata this is. */
  #decide(need: Need, metadata: KubeObject): KubeObject | undefined {
    const key = needKeyOf(need);
    if (!this.#needs.has(key)) return metadata;
    const shown = this.#shownFor(need);
    const isShown =
      shown !== undefined && hasContent(shown) && this.#versions.get(key) === versionOf(metadata);
    if (isShown) this.#wanted.delete(key);
    else this.#want(key, metadata);
    return shown;
  }

  /** Undefined, or with content: there is nothing to ask for. */
  #want(key: string, metadata: KubeObject | undefined): void {
    if (metadata === undefined || hasContent(metadata)) return;
    this.#wanted.set(key, metadata);
    if (!this.#asked.has(key)) this.#queue.add(key);
  }

  #forget(key: string): void {
    this.#wanted.delete(key);
    this.#versions.delete(key);
    this.#queue.delete(key);
  }

  #shownFor({ resource, key }: Need): KubeObject | undefined {
    return this.#shown(resource, key);
  }
}

export const needKeyOf = ({ resource, key }: Need): string => {
  const slash = key.indexOf('/');
  return needKey(resource, key.slice(0, slash), key.slice(slash + 1));
};

/** Versions of two lives of an object may be equal after a restore. */
const versionOf = ({ metadata: { uid = '', resourceVersion = '' } }: KubeObject): string =>
  `${uid} ${resourceVersion}`;

const changesOf = (answers: readonly ContentAnswer[]): readonly ResourceChanges[] => {
  const byResource = new Map<string, Map<ObjectKey, WatchEvent>>();
  for (const { need, event } of answers) {
    const { resource, key } = need;
    const changes = byResource.get(resource) ?? new Map<ObjectKey, WatchEvent>();
    byResource.set(resource, changes.set(key, event));
  }
  return [...byResource].map(([resource, changes]): ResourceChanges => ({
    resource,
    changes: changes satisfies FoldedChanges,
  }));
};
