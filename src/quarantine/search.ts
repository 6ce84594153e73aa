/** Finds, by trying, which of many changes cannot be served. */

/** What to try: whether everything that is good plus these changes can be served. */
export type Search<T> = Generator<readonly T[], readonly T[] | undefined, boolean>;

/**
 * Searches the changes that cannot be served with all others. Each step asks whether some of them, put on what was
 * good, can be served; the answer goes into `next`. Of changes that only together cannot be served it finds the later
 * one; what it finds cannot be served even when all the rest is, and the rest can.
 *
 * For n changes of which m are at fault it asks about m × log2(n) times.
 *
 * @param changes in the order in which they are believed to be good
 * @param settings `startIsGood`: it need not be asked whether none of them can be served
 * @returns those at fault, none when all can be served; undefined when even none of them cannot, so that no change is at fault
 */
export function* search<T>(
  changes: readonly T[],
  { startIsGood }: { readonly startIsGood: boolean },
): Search<T> {
  const good: T[] = [];
  const atFault: T[] = [];
  let rest = changes;
  if (changes.length === 0 && !startIsGood) return (yield []) ? [] : undefined;
  while (rest.length > 0) {
    if (yield [...good, ...rest]) {
      good.push(...rest);
      break;
    }
    if (atFault.length === 0 && good.length === 0 && !startIsGood && !(yield [])) return undefined;
    const first = yield* firstBad(good, rest);
    good.push(...rest.slice(0, first));
    atFault.push(...rest.slice(first, first + 1));
    rest = rest.slice(first + 1);
  }
  return yield* needed(good, atFault);
}

/** Index of the first change that cannot be served with all before it; there is one. */
function* firstBad<T>(
  good: readonly T[],
  rest: readonly T[],
): Generator<readonly T[], number, boolean> {
  let [low, high] = [0, rest.length];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (yield [...good, ...rest.slice(0, middle)]) low = middle;
    else high = middle;
  }
  return low;
}

/** Without those that something later makes good, until that makes nobody else good. */
function* needed<T>(
  good: T[],
  atFault: readonly T[],
): Generator<readonly T[], readonly T[], boolean> {
  if (good.length === 0) return atFault;
  const still: T[] = [];
  for (const change of atFault) {
    if (yield [...good, change]) good.push(change);
    else still.push(change);
  }
  return still.length < atFault.length ? yield* needed(good, still) : still;
}
