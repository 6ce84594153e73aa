/** Long work in pieces with a yield after each, so that a render from scratch does not hold the event loop. */
import type { ClaimUpdate, Ledger } from './ledger.ts';

/** Changes that are taken at once: a few milliseconds of work. */
const SLICE = 1024;

interface Changeable<Value, Self> {
  with(changes: ReadonlyMap<string, Value | undefined>): Self;
}

/** An immutable map or sequence after many changes. */
export function* withSlices<Value, Self extends Changeable<Value, Self>>(
  target: Self,
  changes: ReadonlyMap<string, Value | undefined>,
): Generator<void, Self> {
  if (changes.size <= SLICE) return target.with(changes);
  let result = target;
  for (const slice of slicesOf([...changes])) {
    result = result.with(new Map(slice));
    yield;
  }
  return result;
}

/** A ledger after many updates, and what now counts under each name they touched. */
export function* claimSlices<Value>(
  ledger: Ledger<Value>,
  updates: readonly ClaimUpdate<Value>[],
): Generator<void, ReturnType<Ledger<Value>['with']>> {
  if (updates.length <= SLICE) return ledger.with(updates);
  let result = ledger;
  const touched = new Map<string, Value | undefined>();
  for (const slice of slicesOf(updates)) {
    const step = result.with(slice);
    result = step.ledger;
    for (const [name, value] of step.touched) touched.set(name, value);
    yield;
  }
  return { ledger: result, touched };
}

/** Calls something for each element. */
export function* eachSliced<T>(
  elements: Iterable<T>,
  visit: (element: T) => void,
): Generator<void> {
  let count = 0;
  for (const element of elements) {
    visit(element);
    count += 1;
    if (count % SLICE === 0) yield;
  }
}

function* slicesOf<T>(elements: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < elements.length; start += SLICE) {
    yield elements.slice(start, start + SLICE);
  }
}
