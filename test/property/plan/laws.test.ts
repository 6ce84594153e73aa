import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { applyOperations } from '../../../src/plan/apply-operations.ts';
import { OperationError } from '../../../src/plan/operation-error.ts';
import { BASE_CAPABILITIES } from '../../../src/plan/classify.ts';
import type { Baseline, ChangeSet, RuntimeState } from '../../../src/plan/change-set.ts';
import { diff, diffRuntime } from '../../../src/plan/diff.ts';
import { graftServers } from '../../../src/plan/graft.ts';
import type { Plan } from '../../../src/plan/plan.ts';
import { runtimeDigest, runtimeState, sameStructure } from '../../../src/plan/runtime-state.ts';
import { parsePlan, serialisePlan } from '../../../src/plan/serialise.ts';
import {
  filesOf,
  planOf,
  sha256,
  type World,
  type WorldBackend,
} from '../../support/plan-world.ts';
import { anyEdit, edited, pairOf, RUNS, runtimeEdit, world } from '../../support/plans.ts';
import { statesAlong, trafficLost } from '../../support/traffic.ts';

// The long run takes minutes, and a short one shares its machine.
vi.setConfig({ testTimeout: Math.max(60_000, RUNS * 30) });

const started = (plan: Plan): Baseline => ({
  applied: plan,
  running: plan,
  worker: runtimeState(plan),
  workerOperations: 0,
});
const change = (before: Plan, after: Plan): ChangeSet =>
  diff(started(before), after, BASE_CAPABILITIES);

const check = <T>(arbitrary: fc.Arbitrary<T>, law: (value: T) => void): void => {
  fc.assert(fc.property(arbitrary, law), { numRuns: RUNS });
};

const isDynamic = ({ balance, hashType, dynamic }: WorldBackend): boolean =>
  dynamic && balance !== 'static-rr' && hashType !== 'map-based';

/** Without the maps that came or went, which are files alone. */
const digestWith = (state: RuntimeState, other: Plan): string => {
  const single = state.maps.keys().filter((path) => other.maps.get(path) === undefined);
  const maps = state.maps.with(new Map(single.map((path) => [path, undefined])));
  return runtimeDigest({ ...state, maps }, sha256);
};

describe('P1: operations reach the target', () => {
  test('whenever the verdict is runtime, whatever changed', () => {
    const verdicts = new Map<string, number>();
    check(pairOf(anyEdit), ([before, after]) => {
      const [old, plan] = [planOf(before), planOf(after)];
      const { verdict, operations } = change(old, plan);
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
      if (verdict === 'reload') return;
      const reached = applyOperations(runtimeState(old), operations, sha256);
      expect(digestWith(reached, plan)).toBe(digestWith(runtimeState(plan), old));
    });
    expect(verdicts.get('runtime')).toBeGreaterThan(RUNS / 10);
  });

  test('one by one as well as all at once', () => {
    check(pairOf(runtimeEdit), ([before, after]) => {
      const [old, plan] = [planOf(before), planOf(after)];
      const { operations } = change(old, plan);
      const reached = statesAlong(runtimeState(old), operations).at(-1) ?? runtimeState(old);
      const atOnce = applyOperations(runtimeState(old), operations, sha256);
      expect(runtimeDigest(reached, sha256)).toBe(runtimeDigest(atOnce, sha256));
    });
  });

  test('along a walk in which the worker was never started anew', () => {
    check(
      fc.tuple(world, fc.array(runtimeEdit, { minLength: 2, maxLength: 6 })),
      ([start, edits]) => {
        const running = planOf(start);
        let worker = runtimeState(running);
        let current = start;
        for (const edit of edits) {
          const next = edited(current, [edit]);
          const plan = planOf(next);
          const set = diff({ ...started(running), worker }, plan, BASE_CAPABILITIES);
          if (set.verdict === 'reload') continue;
          worker = applyOperations(worker, set.operations, sha256);
          current = next;
          expect(runtimeDigest(worker, sha256)).toBe(runtimeDigest(runtimeState(plan), sha256));
          expect(diff({ ...started(running), worker }, plan, BASE_CAPABILITIES).operations).toEqual(
            [],
          );
        }
      },
    );
  });
});

describe('P3: plans are equal when what they declare is', () => {
  test('the difference of a plan from itself is empty', () => {
    check(world, (some) => {
      const set = change(planOf(some), planOf(some));
      expect(set).toMatchObject({ verdict: 'files', operations: [], reasons: [] });
      expect(set.changedFiles.size).toBe(0);
    });
  });

  test('a plan that was changed into another equals that other from scratch', () => {
    check(pairOf(anyEdit), ([before, after]) => {
      const scratch = planOf(after);
      const incremental = planOf(after, planOf(before));
      expect(incremental.id).toBe(scratch.id);
      expect(serialisePlan(incremental)).toBe(serialisePlan(scratch));
      expect(change(scratch, incremental).operations).toEqual([]);
    });
  });

  test('the order of backends, files and entries of unordered maps makes no difference', () => {
    check(world, (some) => {
      const turned: World = {
        ...some,
        backends: some.backends
          .map((backend) => ({ ...backend, servers: backend.servers.toReversed() }))
          .toReversed(),
        files: some.files.toReversed(),
        maps: some.maps
          .map((map) => (map.ordered ? map : { ...map, entries: map.entries.toReversed() }))
          .toReversed(),
      };
      expect(planOf(turned).id).toBe(planOf(some).id);
    });
  });

  test('plans have equal ids exactly when every file has equal bytes', () => {
    check(pairOf(anyEdit), ([before, after]) => {
      const [left, right] = [before, after].map((some) => [...filesOf(some)].sort());
      const sameDeclaration = JSON.stringify(before) === JSON.stringify(after);
      if (JSON.stringify(left) !== JSON.stringify(right)) {
        expect(planOf(before).id).not.toBe(planOf(after).id);
      } else if (sameDeclaration) expect(planOf(before).id).toBe(planOf(after).id);
    });
  });

  test('a plan survives being written and read', () => {
    check(world, (some) => {
      const plan = planOf(some);
      const text = serialisePlan(plan);
      const read = parsePlan(text, sha256);
      expect(read.id).toBe(plan.id);
      expect(serialisePlan(read)).toBe(text);
      expect(change(plan, read).operations).toEqual([]);
    });
  });

  test('changed files are those whose bytes differ', () => {
    check(pairOf(anyEdit), ([before, after]) => {
      const [old, now] = [filesOf(before), filesOf(after)];
      const differing = [...now].filter(([path, text]) => old.get(path) !== text);
      const { changedFiles } = change(planOf(before), planOf(after));
      expect([...changedFiles].sort()).toEqual(differing.map(([path]) => path).sort());
    });
  });
});

/** What the table says needs no reload, blanked out; written apart from the diff. A map that is new or gone needs none. */
function mustStay(some: World, other: World): string {
  const backends = some.backends
    .toSorted((left, right) => (left.name < right.name ? -1 : 1))
    .map((backend) => ({
      ...backend,
      comment: '',
      servers: isDynamic(backend) ? [] : backend.servers.map(({ name }) => name).sort(),
    }));
  const both = some.maps.filter(({ path }) => other.maps.some((map) => map.path === path));
  const maps = Object.fromEntries(both.map(({ path, ordered }) => [`map ${path}`, ordered]));
  const files = some.files.filter(({ reloadOnChange }) => reloadOnChange);
  return JSON.stringify([some.core, some.profiles, backends, maps, files]);
}

/** Servers that are in both worlds with other keywords, and entries that only a file can carry. */
const exotic = (before: World, after: World): boolean => {
  const words = (some: World): ReadonlyMap<string, string> =>
    new Map(
      some.backends.flatMap(({ name, servers }) =>
        servers.map((server) => [`${name}/${server.name}`, server.keywords.join(' ')] as const),
      ),
    );
  const [old, now] = [words(before), words(after)];
  const entry = ([key, value]: readonly [string, string]): boolean =>
    key.includes(' ') || value === '';
  const changedEntries = JSON.stringify(before.maps) !== JSON.stringify(after.maps);
  return (
    [...now].some(([server, keywords]) => (old.get(server) ?? keywords) !== keywords) ||
    (changedEntries && after.maps.some(({ entries }) => entries.some(entry)))
  );
};

describe('P4: a change outside the table is never taken for a runtime change', () => {
  test('structure, profiles, files, maps, keywords and fixed backends need a reload', () => {
    let reloads = 0;
    check(pairOf(anyEdit), ([before, after]) => {
      const { verdict, reasons } = change(planOf(before), planOf(after));
      if (mustStay(before, after) === mustStay(after, before)) return;
      reloads += 1;
      expect(verdict).toBe('reload');
      expect(reasons.length).toBeGreaterThan(0);
    });
    expect(reloads).toBeGreaterThan(RUNS / 10);
  });

  test('a change inside the table needs none', () => {
    check(pairOf(anyEdit), ([before, after]) => {
      if (mustStay(before, after) !== mustStay(after, before) || exotic(before, after)) return;
      const fixedWeights = (some: World): string =>
        JSON.stringify(some.backends.filter((backend) => !isDynamic(backend)));
      if (fixedWeights(before) !== fixedWeights(after)) return;
      const { verdict, reasons } = change(planOf(before), planOf(after));
      expect(reasons).toEqual([]);
      expect(verdict).not.toBe('reload');
    });
  });
});

describe('P5: traffic has somewhere to go at every step', () => {
  test('of operations that reach the plan', () => {
    check(pairOf(runtimeEdit), ([before, after]) => {
      const [old, plan] = [planOf(before), planOf(after)];
      const { operations } = change(old, plan);
      expect(trafficLost(runtimeState(old), operations, runtimeState(plan))).toEqual([]);
    });
  });

  test('of operations that go ahead of a reload', () => {
    let some = 0;
    check(pairOf(anyEdit), ([before, after]) => {
      const [old, plan] = [planOf(before), planOf(after)];
      const { inPlaceOperations } = change(old, plan);
      some += Number(inPlaceOperations.length > 0);
      expect(trafficLost(runtimeState(old), inPlaceOperations, runtimeState(plan))).toEqual([]);
    });
    expect(some).toBeGreaterThan(RUNS / 20);
  });

  test('the reverse order is caught', () => {
    const isBroken = ([before, after]: readonly [World, World]): boolean => {
      const [old, plan] = [planOf(before), planOf(after)];
      const reverse = change(old, plan).operations.toReversed();
      try {
        return trafficLost(runtimeState(old), reverse, runtimeState(plan)).length > 0;
      } catch (error: unknown) {
        return error instanceof OperationError;
      }
    };
    const broken = fc.sample(pairOf(runtimeEdit), 200).filter(isBroken);
    expect(broken.length).toBeGreaterThan(20);
  });
});

test('after the in-place part, what is left is the same as without it', () => {
  check(pairOf(anyEdit), ([before, after]) => {
    const [old, plan] = [planOf(before), planOf(after)];
    const first = change(old, plan);
    if (first.verdict !== 'reload') return;
    const worker = applyOperations(runtimeState(old), first.inPlaceOperations, sha256);
    const second = diff({ ...started(old), worker }, plan, BASE_CAPABILITIES);
    expect(second.inPlaceOperations).toEqual([]);
    expect(second.verdict).toBe('reload');
  });
});

describe('while the gate holds', () => {
  test('servers of backends with equal structure flow, everything else stays accepted', () => {
    check(pairOf(anyEdit), ([before, after]) => {
      const [accepted, newest] = [planOf(before), planOf(after)];
      const target = graftServers(accepted, newest);
      expect(target.maps).toBe(accepted.maps);
      expect(target.backends.keys()).toEqual(accepted.backends.keys());
      for (const backend of target.backends.values()) {
        const [old, now] = [accepted, newest].map(({ backends }) => backends.get(backend.name));
        const flows = old && now && sameStructure(old, now) && old.dynamic === now.dynamic;
        expect(backend.servers).toEqual((flows ? now : old)?.servers);
      }
      const operations = diffRuntime(runtimeState(accepted), target, BASE_CAPABILITIES);
      expect(operations.every(({ kind }) => kind.startsWith('server_'))).toBe(true);
      expect(trafficLost(runtimeState(accepted), operations, target)).toEqual([]);
      const worker = applyOperations(runtimeState(accepted), operations, sha256);
      expect(diffRuntime(worker, target, BASE_CAPABILITIES)).toEqual([]);
    });
  });
});
