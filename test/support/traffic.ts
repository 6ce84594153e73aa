/**
 * Law P5, step by step: whether traffic has somewhere to go while operations run one after the other.
 */
import { applyOperations } from '../../src/plan/apply-operations.ts';
import type { RuntimeState } from '../../src/plan/change-set.ts';
import type { Backend } from '../../src/plan/plan.ts';
import { isUsable } from '../../src/plan/server-changes.ts';
import type { Operation } from '../../src/protocol/protocol.ts';
import { sha256 } from './plan-world.ts';

/** Every state on the way, the first one included. */
export function statesAlong(
  start: RuntimeState,
  operations: readonly Operation[],
): readonly RuntimeState[] {
  const states = [start];
  for (const operation of operations) {
    states.push(applyOperations(states.at(-1) ?? start, [operation], sha256));
  }
  return states;
}

const usable = (backend: Backend | undefined): number =>
  backend?.servers.filter(isUsable).length ?? 0;

type Routes = ReadonlyMap<string, readonly string[]>;
const known = new WeakMap<RuntimeState['maps'], Routes>();

/** Keys by map and of all maps, with the backend each leads to when its value names one. */
function routes({ maps }: RuntimeState): Routes {
  const found = known.get(maps) ?? allRoutes(maps);
  known.set(maps, found);
  return found;
}

function allRoutes(maps: RuntimeState['maps']): Routes {
  const all = new Map<string, string[]>();
  const add = (key: string, value: string): void =>
    void all.set(key, [...(all.get(key) ?? []), value]);
  for (const map of maps.values()) {
    for (const { key, value } of map.entries.values()) {
      add(`${map.path} ${key}`, value);
      add(`any map: ${key}`, value);
    }
  }
  return all;
}

interface Way {
  readonly start: RuntimeState;
  readonly end: RuntimeState;
  readonly target: RuntimeState;
}

type Fault = (state: RuntimeState, way: Way) => readonly string[];

/** Entries that name a backend which the worker does not have. */
const missingBackends: Fault = (state, { start, target }) => {
  const names = new Set([...start.backends.keys(), ...target.backends.keys()]);
  return [...routes(state)].flatMap(([key, values]) =>
    values
      .filter((name) => names.has(name) && state.backends.get(name) === undefined)
      .map((name) => `${key} names ${name}, which is not there`),
  );
};

const isServed = (state: RuntimeState, key: string, from: RuntimeState = state): boolean =>
  routes(from)
    .get(key)
    ?.some((value) => usable(state.backends.get(value)) > 0) ?? false;

/** Keys that stay and are not there meanwhile, or lead to nobody meanwhile. */
const lostKeys: Fault = (state, { start, end, target }) => {
  const [now, last, wanted] = [routes(state), routes(end), routes(target)];
  return [...routes(start).keys()].flatMap((key) => {
    if (!last.has(key)) return [];
    if (!now.has(key)) return [`${key} is missing`];
    const from = wanted.has(key) ? target : end;
    // Of a key that is in several maps only the configuration knows which of them counts.
    const single = [start, from].every((one) => routes(one).get(key)?.length === 1);
    const served = single && isServed(start, key) && isServed(target, key, from);
    return served && !isServed(state, key) ? [`${key} leads nowhere`] : [];
  });
};

/** Backends that have fewer usable servers than both before and after. */
const lostServers: Fault = (state, { start, target }) =>
  start.backends.keys().flatMap((name) => {
    const floor = Math.min(usable(start.backends.get(name)), usable(target.backends.get(name)));
    const short = usable(state.backends.get(name)) < floor;
    return short ? [`${name} has less than ${floor} servers`] : [];
  });

/**
 * What goes wrong on the way from a state through operations, in words; empty when nothing does. `target` is where the
 * whole change leads, the operations may be a part of it.
 */
export function trafficLost(
  start: RuntimeState,
  operations: readonly Operation[],
  target: RuntimeState,
): readonly string[] {
  const states = statesAlong(start, operations);
  const way: Way = { start, end: states.at(-1) ?? start, target };
  return states.flatMap((state, step) =>
    [missingBackends, lostKeys, lostServers]
      .flatMap((fault) => fault(state, way))
      .map((what) => `after ${step} of ${operations.length} operations: ${what}`),
  );
}
