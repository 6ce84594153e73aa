import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { applyOperations } from '../../../src/plan/apply-operations.ts';
import type { Baseline, ChangeSet } from '../../../src/plan/change-set.ts';
import { diff } from '../../../src/plan/diff.ts';
import { OperationError } from '../../../src/plan/operation-error.ts';
import type { Plan } from '../../../src/plan/plan.ts';
import { runtimeDigest, runtimeState } from '../../../src/plan/runtime-state.ts';
import { parsePlan, serialisePlan } from '../../../src/plan/serialise.ts';
import { planOf, sha256, type World } from '../../support/plan-world.ts';
import { RUNS } from '../../support/plans.ts';
import { capabilitiesOn, reloadFreePair } from '../../support/tls-plans.ts';
import { safetyLost } from '../../support/tls-traffic.ts';
import { trafficLost } from '../../support/traffic.ts';

// The long run takes minutes, and a short one shares its machine.
vi.setConfig({ testTimeout: Math.max(60_000, RUNS * 30) });

const started = (plan: Plan): Baseline => ({
  applied: plan,
  running: plan,
  worker: runtimeState(plan),
  workerOperations: 0,
});
const change = (before: Plan, after: Plan, haproxy: string): ChangeSet =>
  diff(started(before), after, capabilitiesOn(haproxy));

const check = (law: (before: Plan, after: Plan) => void): void => {
  const plans = reloadFreePair.map((pair) => pair.map((some) => planOf(some)) as [Plan, Plan]);
  fc.assert(
    fc.property(plans, ([before, after]) => law(before, after)),
    { numRuns: RUNS },
  );
};

const sameBackends = (before: Plan, after: Plan): boolean =>
  before.backends.keys().join(' ') === after.backends.keys().join(' ');

describe('on 3.4, backends, certificates and lists', () => {
  test('P4: never need a reload', () => {
    check((before, after) => {
      expect(change(before, after, '3.4.7').reasons).toEqual([]);
    });
  });

  test('P1: operations reach the plan, and then there is nothing left to do', () => {
    check((before, after) => {
      const { operations } = change(before, after, '3.4.7');
      const worker = applyOperations(runtimeState(before), operations, sha256);
      expect(runtimeDigest(worker, sha256)).toBe(runtimeDigest(runtimeState(after), sha256));
      const again = diff({ ...started(before), worker }, after, capabilitiesOn('3.4.7'));
      expect(again).toMatchObject({ operations: [], reasons: [] });
    });
  });

  test('P1: the way back reaches the plan that the worker was started from', () => {
    check((before, after) => {
      const { operations } = change(before, after, '3.4.7');
      const worker = applyOperations(runtimeState(before), operations, sha256);
      const back = diff({ ...started(before), worker }, before, capabilitiesOn('3.4.7'));
      const reached = applyOperations(worker, back.operations, sha256);
      expect(back.reasons).toEqual([]);
      expect(runtimeDigest(reached, sha256)).toBe(runtimeDigest(runtimeState(before), sha256));
    });
  });

  test('P5: every step leaves routes, names and certificates in order', () => {
    check((before, after) => {
      const { operations } = change(before, after, '3.4.7');
      expect(safetyLost(runtimeState(before), operations)).toEqual([]);
      expect(trafficLost(runtimeState(before), operations, runtimeState(after))).toEqual([]);
    });
  });

  test('P5: the reverse order is caught', () => {
    const isBroken = ([before, after]: readonly [World, World]): boolean => {
      const [old, plan] = [planOf(before), planOf(after)];
      const reverse = change(old, plan, '3.4.7').operations.toReversed();
      try {
        return safetyLost(runtimeState(old), reverse).length > 0;
      } catch (error: unknown) {
        return error instanceof OperationError;
      }
    };
    expect(fc.sample(reloadFreePair, 100).filter(isBroken).length).toBeGreaterThan(50);
  });

  test('P3: a plan with them survives being written and read', () => {
    check((before) => {
      const text = serialisePlan(before);
      const read = parsePlan(text, sha256);
      expect(read.id).toBe(before.id);
      expect(serialisePlan(read)).toBe(text);
    });
  });
});

describe.each(['3.0.11', '3.2.26', ''])('on HAProxy "%s"', (haproxy) => {
  test('P4: backends that come or go need a reload, nothing else does', () => {
    let reloads = 0;
    check((before, after) => {
      const { verdict } = change(before, after, haproxy);
      reloads += Number(verdict === 'reload');
      if (haproxy !== '') expect(verdict === 'reload').toBe(!sameBackends(before, after));
      else if (!sameBackends(before, after)) expect(verdict).toBe('reload');
    });
    expect(reloads).toBeGreaterThan(RUNS / 10);
  });

  test('P5: what goes ahead of the reload leaves routes, names and certificates in order', () => {
    let some = 0;
    check((before, after) => {
      const { inPlaceOperations } = change(before, after, haproxy);
      some += Number(inPlaceOperations.length > 0);
      expect(safetyLost(runtimeState(before), inPlaceOperations)).toEqual([]);
      expect(trafficLost(runtimeState(before), inPlaceOperations, runtimeState(after))).toEqual([]);
    });
    expect(some).toBeGreaterThan(RUNS / 10);
  });
});
