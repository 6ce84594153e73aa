import { OrderedBlocks } from '../cells/ordered-blocks.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { CellUpdate } from './cell-updates.ts';
import type { CellResult } from './evaluate.ts';
import type { StatusPatch } from './render.ts';

interface Told {
  readonly problems: readonly Problem[];
  readonly statuses: readonly StatusPatch[];
}

const toldBy = (results: readonly CellResult[]): Told => ({
  problems: results.flatMap(({ effects }) => effects.problems),
  statuses: results.flatMap(({ effects }) => effects.statuses),
});

/**
 * What cells tell besides their text: problems, and statuses they ask for, in the order of the cells. Immutable; the lists
 * are made when somebody looks at them.
 */
export class Notables {
  static readonly EMPTY = new Notables(OrderedBlocks.empty(toldBy));

  readonly #results: OrderedBlocks<CellResult, Told>;
  #problems: readonly Problem[] | undefined;
  #statuses: readonly StatusPatch[] | undefined;

  private constructor(results: OrderedBlocks<CellResult, Told>) {
    this.#results = results;
  }

  get problems(): readonly Problem[] {
    this.#problems ??= this.#results.summaries.flatMap(({ problems }) => problems);
    return this.#problems;
  }

  get statuses(): readonly StatusPatch[] {
    this.#statuses ??= this.#results.summaries.flatMap(({ statuses }) => statuses);
    return this.#statuses;
  }

  /** After some updates; itself when they have nothing to tell. */
  with(updates: readonly CellUpdate[]): Notables {
    const changes = new Map<string, CellResult | undefined>();
    for (const { owner, before, after } of updates) {
      if (after !== undefined && isNotable(after)) changes.set(owner, after);
      else if (before !== undefined && isNotable(before)) changes.set(owner, undefined);
    }
    return changes.size === 0 ? this : new Notables(this.#results.with(changes));
  }
}

const isNotable = ({ effects }: CellResult): boolean =>
  effects.statuses.length > 0 || effects.problems.length > 0;
