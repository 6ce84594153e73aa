import { BehaviorSubject, map, type Observable } from 'rxjs';
import { byCodeUnits } from '../cells/persistent-map.ts';
import type { Problem } from '../snapshot/problem.ts';

/** The open problems of one part, for as long as it lives. */
export interface ProblemScope {
  /** Opens a problem under a key of this part's own, or replaces the one that is open. */
  open(key: string, problem: Problem): void;
  /** Closes it; nothing when it is not open. */
  close(key: string): void;
  /** Closes all of them. */
  end(): void;
}

/** Problems that parts of a source open and close; equal ones of several parts count once. */
export class OpenProblems {
  readonly #open$ = new BehaviorSubject<ReadonlyMap<object, Problem>>(new Map());

  /** The newest list of all open problems, sorted by message. */
  readonly problems$: Observable<readonly Problem[]> = this.#open$.pipe(
    map((open) =>
      [
        ...new Map(
          [...open.values()].map((problem) => [JSON.stringify(problem), problem]),
        ).values(),
      ].sort((left, right) => byCodeUnits(left.message, right.message)),
    ),
  );

  /** A new part. */
  scope(): ProblemScope {
    const keys = new Map<string, object>();
    const close = (key: string): void => {
      const id = keys.get(key);
      if (id === undefined) return;
      keys.delete(key);
      this.#change((open) => open.delete(id));
    };
    return {
      open: (key, problem) => {
        const id = keys.get(key) ?? {};
        keys.set(key, id);
        this.#change((open) => open.set(id, problem));
      },
      close,
      end: () => [...keys.keys()].forEach(close),
    };
  }

  #change(change: (open: Map<object, Problem>) => void): void {
    const open = new Map(this.#open$.value);
    change(open);
    this.#open$.next(open);
  }
}
