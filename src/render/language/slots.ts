import type { PersistentMap } from '../../cells/persistent-map.ts';
import type { Place } from './failure.ts';
import type { Statement } from './compile-context.ts';

/** One `cells` tag of a template. */
export interface CellsTag {
  /** Unique in the template set: template and position. */
  readonly id: string;
  readonly place: Place;
  /** Name of the argument in the body. */
  readonly name: string;
  readonly body: Statement;
}

/** Where a `cells` tag stood while its template was evaluated, and over what it goes. */
export interface SlotRequest {
  readonly tag: CellsTag;
  /** A collection of `routes`, or `resources.NAME`, looked up anew in each render; or the elements themselves. */
  readonly over: string | PersistentMap<unknown>;
}
