import { type MonoTypeOperatorFunction, ReplaySubject, share } from 'rxjs';

/**
 * Shares one subscription of the source; a late subscriber gets the newest value at once.
 *
 * The source is subscribed with the first subscriber and unsubscribed with the last. After an error, after
 * completion and after the last unsubscription nothing is remembered: the next subscriber subscribes the source
 * again and sees no stale value.
 *
 * ```marbles
 * source:   -a--b--c--
 * early:    ^--------!
 * late:     -----^---!
 * expected: -a--b--c--
 * replayed: -----b-c--
 * ```
 */
export function shareLatest<T>(): MonoTypeOperatorFunction<T> {
  return share({
    connector: () => new ReplaySubject<T>(1),
    resetOnError: true,
    resetOnComplete: true,
    resetOnRefCountZero: true,
  });
}
