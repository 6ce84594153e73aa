import type { ObjectKey } from './objects.ts';
import type { WatchEvent } from './watch.ts';

/** Key of a replacement of the whole resource; no object key is like it, for all of those hold a slash. */
export const REPLACEMENT_KEY = '*';

/** The changes of one window of one resource: by object key, a replacement under {@link REPLACEMENT_KEY}. */
export type FoldedChanges = ReadonlyMap<ObjectKey, WatchEvent>;
