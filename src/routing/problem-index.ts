import { byCodeUnits } from '../cells/persistent-map.ts';
import type { Problem } from '../snapshot/problem.ts';
import { deepEqual } from './fields.ts';

const sortKey = ({ object, field, reason, message }: Problem): string =>
  [object?.kind, object?.namespace, object?.name, field, reason, message].join('\n');

/** Problems by what they were found in, and the one sorted list of all of them. */
export class ProblemIndex {
  readonly #bySource = new Map<string, readonly Problem[]>();
  #list: readonly Problem[] | undefined = [];

  /** Replaces the problems found in `source`; equal ones keep their identity. */
  replace(source: string, problems: readonly Problem[]): void {
    const before = this.#bySource.get(source);
    if (before === undefined && problems.length === 0) return;
    if (deepEqual(before, problems)) return;
    if (problems.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, problems);
    this.#list = undefined;
  }

  /** All, sorted by object; the same list as long as nothing changes. */
  list(): readonly Problem[] {
    this.#list ??= [...this.#bySource.values()]
      .flat()
      .map((problem) => ({ problem, key: sortKey(problem) }))
      .sort((left, right) => byCodeUnits(left.key, right.key))
      .map(({ problem }) => problem);
    return this.#list;
  }
}
