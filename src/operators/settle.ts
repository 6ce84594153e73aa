import { catchError, map, of, type OperatorFunction } from 'rxjs';

/** A result or a failure, as a value. */
export type Settled<T, F> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: F };

/**
 * Turns what a source emits into successes and its error into one failure, after which it completes.
 *
 * Used inside a flattening operator, so that one failure does not end the stream around it. It never errors, unless
 * `toFailure` throws, which is a defect of the caller.
 *
 * ```marbles
 * source:   -a--b--#
 * expected: -a--b--(f|)
 * ```
 *
 * @param toFailure what an error means
 */
export function settle<T, F>(toFailure: (error: unknown) => F): OperatorFunction<T, Settled<T, F>> {
  return (source) =>
    source.pipe(
      map((value): Settled<T, F> => ({ ok: true, value })),
      catchError((error: unknown) => of({ ok: false as const, failure: toFailure(error) })),
    );
}
