import {
  catchError,
  defer,
  from,
  ignoreElements,
  merge,
  mergeMap,
  Observable,
  type ObservableInput,
  type OperatorFunction,
  ReplaySubject,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';

/** Options of {@link forEachKey}. */
export interface ForEachKeyOptions<K, R> {
  /**
   * What happens to the work of a member that is removed: `abort` unsubscribes it, `finish` completes its
   * `value$` and lets it end by itself. Default `abort`.
   */
  readonly onRemoved?: 'abort' | 'finish';
  /**
   * Keeps the failure of one member away from the others: the failed member's work ends and what this returns
   * takes its place until the member is removed. Default: the error is the error of the stream, as with `mergeMap`.
   */
  readonly onError?: (error: unknown, key: K) => ObservableInput<R>;
}

interface Member<V> {
  newest: V;
  readonly values: ReplaySubject<V>;
  readonly removed: Subject<void>;
}

/**
 * Runs one inner observable for each member of a changing set, as long as the member is in it.
 *
 * The source emits the whole set, each member with its newest value. A member that is new gets a run of
 * `project`, with a `value$` that replays the newest value and emits again when the value is another one
 * (`Object.is`). A member that left is aborted or finished, before new members start; one that comes back starts
 * afresh. An equal set changes nothing. A run that ends by itself is not started again while its member stays.
 * When the source completes every `value$` completes, and the result completes when all runs have ended. Sets
 * that a consumer emits re-entrantly are worked off in order.
 *
 * ```marbles
 * source:   -a--b---c|
 * one:       --x--x--x|
 * two:          ---y--y-|
 * expected: ---x--xy--y-|
 * ```
 *
 * `a` holds member one, `b` both, `c` only member two.
 *
 * @param project the work of a member
 * @param options what removal and failure do
 */
export function forEachKey<K, V, R>(
  project: (key: K, value$: Observable<V>) => ObservableInput<R>,
  { onRemoved = 'abort', onError }: ForEachKeyOptions<K, R> = {},
): OperatorFunction<ReadonlyMap<K, V>, R> {
  return (source) =>
    new Observable((subscriber) => {
      const members = new Map<K, Member<V>>();
      const starts = new Subject<Observable<R>>();
      const queue: ReadonlyMap<K, V>[] = [];
      let working = false;
      let sourceDone = false;

      const start = (key: K, value: V): void => {
        const member = {
          newest: value,
          values: new ReplaySubject<V>(1),
          removed: new Subject<void>(),
        };
        members.set(key, member);
        member.values.next(value);
        const work = defer(() => from(project(key, member.values.asObservable())));
        const isolated =
          onError === undefined
            ? work
            : work.pipe(catchError((error: unknown) => onError(error, key)));
        starts.next(isolated.pipe(takeUntil(member.removed)));
      };
      const remove = (key: K, { values, removed }: Member<V>): void => {
        members.delete(key);
        if (onRemoved === 'abort') removed.next();
        values.complete();
      };
      const update = (member: Member<V>, value: V): void => {
        if (Object.is(member.newest, value)) return;
        member.newest = value;
        member.values.next(value);
      };
      const apply = (set: ReadonlyMap<K, V>): void => {
        for (const [key, member] of members) if (!set.has(key)) remove(key, member);
        for (const [key, value] of set) {
          const member = members.get(key);
          if (member === undefined) start(key, value);
          else update(member, value);
        }
      };
      const work = (set: ReadonlyMap<K, V>): void => {
        queue.push(set);
        if (working) return;
        working = true;
        for (let next = queue.shift(); next !== undefined; next = queue.shift()) apply(next);
        working = false;
        if (sourceDone) end();
      };
      const end = (): void => {
        for (const { values } of members.values()) values.complete();
        starts.complete();
      };
      const finish = (): void => {
        sourceDone = true;
        if (!working) end();
      };

      merge(
        starts.pipe(mergeMap((run) => run)),
        source.pipe(tap({ next: work, complete: finish }), ignoreElements()),
      ).subscribe(subscriber);
    });
}
