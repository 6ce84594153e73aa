import { OrderedBlocks } from '../cells/ordered-blocks.ts';
import type { Problem } from '../snapshot/problem.ts';
import { deepEqual } from './fields.ts';

/** Sorts by object; what is told of one object in several places stands in the order of those. */
const sortKey = ({ object, field, reason, message }: Problem, source: string): string =>
  [object?.kind, object?.namespace, object?.name, field, reason, message, source].join('\n');

/** Problems by what they were found in, and the one sorted list of all of them. */
export class ProblemIndex {
  readonly #bySource = new Map<string, readonly Problem[]>();
  /** Since the list was made. */
  #changes = new Map<string, Problem | undefined>();
  #sorted = OrderedBlocks.empty<Problem, readonly Problem[]>((problems) => problems);
  #list: readonly Problem[] = [];

  /** Replaces the problems found in `source`; equal ones keep their identity. */
  replace(source: string, problems: readonly Problem[]): void {
    const before = this.#bySource.get(source) ?? [];
    if (before.length === 0 && problems.length === 0) return;
    if (deepEqual(before, problems)) return;
    if (problems.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, problems);
    for (const key of keyed(source, before).keys()) this.#changes.set(key, undefined);
    for (const [key, problem] of keyed(source, problems)) this.#changes.set(key, problem);
  }

  /** All, sorted by object; the same list as long as nothing changes. */
  list(): readonly Problem[] {
    if (this.#changes.size === 0) return this.#list;
    this.#sorted = this.#sorted.with(this.#changes);
    this.#changes = new Map();
    this.#list = this.#sorted.summaries.flat();
    return this.#list;
  }
}

/** Problems that read alike are told apart by their number. */
const keyed = (source: string, problems: readonly Problem[]): ReadonlyMap<string, Problem> =>
  new Map(
    problems.map((problem, index) => [
      `${sortKey(problem, source)}\n${String(index).padStart(6, '0')}`,
      problem,
    ]),
  );
