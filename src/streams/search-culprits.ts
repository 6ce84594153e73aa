import {
  catchError,
  defaultIfEmpty,
  defer,
  EMPTY,
  expand,
  filter,
  map,
  mergeMap,
  type Observable,
  of,
  takeWhile,
  timer,
} from 'rxjs';
import { retryBackoff } from '../operators/retry-backoff.ts';
import type { Checker, RenderEngine } from '../ports.ts';

import {
  NO_QUARANTINE,
  placeId,
  type Quarantined,
  substitute,
  type Substituted,
} from '../quarantine/quarantine.ts';
import { search } from '../quarantine/search.ts';
import type { Wanted } from '../quarantine/state.ts';
import { type Suspect, suspectsBetween } from '../quarantine/suspects.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import type { Problem } from '../snapshot/problem.ts';

/** With what {@link searchCulprits} tries. */
export interface SearchOptions {
  /** Is forked: what it knows of its own renders stays. */
  readonly engine: RenderEngine;
  /** A checker of its own: the gate goes on checking meanwhile. */
  readonly check: Checker;
}

/** So many tries find forty among thirty thousand. */
const MOST_TRIES = 1_000;
/** How often HAProxy is asked about one try until it gives a verdict. */
const MOST_CHECKS = 4;
const FIRST_RECHECK_MS = 1_000;

/**
 * Finds the objects with which a snapshot cannot be served, by rendering and checking parts of what is new in it, beside
 * everything else and without effect on it. Emits once and never errors: the objects at fault, none when it could not be
 * found out, undefined when it is no object that is at fault. Unsubscribing ends it.
 */
export const searchCulprits = (
  { bad, good, by }: Pick<Wanted, 'bad' | 'good' | 'by'>,
  { engine, check }: SearchOptions,
): Observable<readonly Suspect[] | undefined> =>
  defer(() => {
    const judge = by === 'render' ? () => of(true) : servable(check);
    const from = (start: IndexedSnapshot | undefined, startIsGood: boolean) =>
      tries(bad, { start, startIsGood, engine: engine.fork(), judge });
    if (good === undefined) return from(undefined, false);
    const startIsGood = good.generation === engine.generation;
    return from(good.snapshot, startIsGood).pipe(
      // What an earlier configuration could serve may be at fault in this one.
      mergeMap((found) =>
        found === undefined && !startIsGood ? from(undefined, false) : of(found),
      ),
    );
  }).pipe(
    catchError(() => of([])),
    defaultIfEmpty([]),
  );

interface Tries {
  readonly start: IndexedSnapshot | undefined;
  readonly startIsGood: boolean;
  readonly engine: RenderEngine;
  readonly judge: ReturnType<typeof servable>;
}

const tries = (
  bad: IndexedSnapshot,
  { start, startIsGood, engine, judge }: Tries,
): Observable<readonly Suspect[] | undefined> =>
  defer(() => {
    const suspects = suspectsBetween(start, bad);
    const steps = search(suspects, { startIsGood });
    let count = 0;
    let last: Substituted | undefined;
    const canServe = (some: readonly Suspect[]): Observable<boolean> => {
      count += 1;
      if (count > MOST_TRIES) throw new RangeError('too many tries');
      last = substitute(last, bad, without(suspects, new Set(some)));
      return engine.render(last.rendered).pipe(
        mergeMap((result) => (result.ok ? judge(result.render) : of(false))),
        // Renders that take no time must neither pile up on the stack nor hold the event loop.
        mergeMap((answer) => timer(0).pipe(map(() => answer))),
      );
    };
    return of(steps.next()).pipe(
      expand((step) =>
        step.done === true ? EMPTY : canServe(step.value).pipe(map((answer) => steps.next(answer))),
      ),
      takeWhile(({ done }) => done !== true, true),
      filter(
        (step): step is IteratorReturnResult<readonly Suspect[] | undefined> => step.done === true,
      ),
      map(({ value }) => value),
    );
  });

/** Everything that is not among the chosen as it was before. */
const without = (
  suspects: readonly Suspect[],
  chosen: ReadonlySet<Suspect>,
): ReadonlyMap<string, Quarantined> => {
  const left = suspects.filter((suspect) => !chosen.has(suspect));
  if (left.length === 0) return NO_QUARANTINE;
  return new Map(
    left.flatMap(({ object, differences }) => {
      const substitutes = differences.map(({ before, after, ...place }) => ({
        ...{ ...place, refused: after, instead: before },
      }));
      const one: Quarantined = {
        ...{ object, substitutes, stand: 'accepted', reads: NO_READS },
        ...{ cause: NO_CAUSE, foundBy: 'check' },
      };
      return substitutes.map((place) => [placeId(place), one] as const);
    }),
  );
};

const NO_READS: ReadonlySet<string> = new Set();
const NO_CAUSE: Problem = { severity: 'error', reason: 'Quarantined', message: '', nextStep: '' };

/** HAProxy's verdict; when it gives none for long the search errors. */
const servable =
  (check: Checker) =>
  (render: Parameters<Checker>[0]): Observable<boolean> =>
    defer(() => {
      let checks = 0;
      return defer(() => check(render)).pipe(
        map(({ verdict }) => {
          checks += 1;
          if (verdict.result === 'inconclusive') throw new Error(verdict.cause);
          return verdict.result === 'passed';
        }),
        retryBackoff({ initialMs: FIRST_RECHECK_MS, shouldRetry: () => checks < MOST_CHECKS }),
      );
    });
