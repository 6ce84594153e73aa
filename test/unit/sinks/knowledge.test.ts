import { describe, expect, it } from 'vitest';
import { BASE_CAPABILITIES } from '../../../src/plan/classify.ts';
import type { ChangeSet } from '../../../src/plan/change-set.ts';
import { diff } from '../../../src/plan/diff.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import { serialisePlan } from '../../../src/plan/serialise.ts';
import type { AgentState, ApplyOutcome, Roles } from '../../../src/protocol/answers.ts';
import { OPERATION_KINDS } from '../../../src/protocol/protocol.ts';
import type { Render } from '../../../src/render/render.ts';
import { fileDigests, type PodKnowledge } from '../../../src/sinks/decide.ts';
import {
  afterOutcome,
  learn,
  needsStoredPlan,
  type KnownRenders,
} from '../../../src/sinks/knowledge.ts';
import { renderWith } from '../../support/world.ts';

const base = renderWith({ servers: ['s'] });
const moved = renderWith({ servers: ['s', 't'] });
const core = renderWith({ servers: ['s', 't'], routes: ['r'] });

const roles = (change: Partial<Roles> = {}): Roles => ({
  applied: base.plan.id,
  running: base.plan.id,
  workerOperations: 0,
  lkg: base.plan.id,
  ...change,
});

const state = (change: Partial<Roles> = {}): AgentState => ({
  protocol: 1,
  agentVersion: 'test',
  operationKinds: OPERATION_KINDS,
  features: [],
  roles: roles(change),
  highestEpoch: 1,
  haproxy: { version: '3.4.0', workerPid: 1, workerStartMs: 0, oldWorkers: 0 },
  files: [{ path: 'haproxy.cfg', digest: base.plan.config.digest, size: 1 }],
  pendingReload: null,
  pendingDeletes: 0,
  lastReload: null,
});

const nothing: KnownRenders = () => undefined;
const ofThisTerm =
  (...renders: readonly Render[]): KnownRenders =>
  (planId) =>
    renders.find(({ plan }) => plan.id === planId);

const change = (from: Render, to: Render): ChangeSet =>
  diff(
    {
      applied: from.plan,
      running: from.plan,
      worker: runtimeState(from.plan),
      workerOperations: 0,
    },
    to.plan,
    BASE_CAPABILITIES,
  );
const serversOf = (known: PodKnowledge): readonly string[] | undefined =>
  known.baseline.worker?.backends.get('b')?.servers.map(({ name }) => name);
const names = (render: Render): readonly string[] | undefined =>
  render.plan.backends.get('b')?.servers.map(({ name }) => name);

describe('learn', () => {
  it('knows the worker of a pod that runs a render of this term', () => {
    expect(needsStoredPlan(state(), undefined, ofThisTerm(base))).toBe(false);
    const known = learn(state(), undefined, { known: undefined, renders: ofThisTerm(base) });
    expect(serversOf(known)).toStrictEqual(names(base));
    expect(known.baseline.applied).toBe(base.plan);
    expect(known.render).toBe(base);
  });

  it('R5: rebuilds the worker from what the agent keeps, so a new leader needs no reload', () => {
    const { operations } = change(base, moved);
    const seen = state({ applied: moved.plan.id, workerOperations: operations.length });
    expect(needsStoredPlan(seen, undefined, nothing)).toBe(true);
    const stored = { planId: base.plan.id, plan: serialisePlan(base.plan), operations };
    const known = learn(seen, stored, { known: undefined, renders: nothing });
    expect(serversOf(known)).toStrictEqual(names(moved));
    expect(known.baseline.running?.id).toBe(base.plan.id);
  });

  it.each([
    [
      'operations are missing',
      { planId: base.plan.id, plan: serialisePlan(base.plan), operations: [] },
    ],
    [
      'the plan is another one',
      {
        planId: core.plan.id,
        plan: serialisePlan(core.plan),
        operations: change(base, moved).operations,
      },
    ],
    [
      'the plan cannot be read',
      { planId: base.plan.id, plan: '{', operations: change(base, moved).operations },
    ],
    [
      'the plan is not what it says',
      {
        planId: base.plan.id,
        plan: serialisePlan(core.plan),
        operations: change(base, moved).operations,
      },
    ],
    ['nothing is kept', undefined],
  ])('R5: knows nothing of the worker when %s', (_, stored) => {
    const seen = state({ workerOperations: change(base, moved).operations.length });
    const known = learn(seen, stored, { known: undefined, renders: nothing });
    expect(known.baseline.worker).toBeUndefined();
  });

  it('knows nothing of a worker the agent does not know', () => {
    const known = learn(state({ running: null }), undefined, {
      known: undefined,
      renders: ofThisTerm(base),
    });
    expect(known.baseline).toMatchObject({ running: undefined, worker: undefined });
  });

  it('keeps what it knew while the worker is the same', () => {
    const before = learn(state(), undefined, { known: undefined, renders: ofThisTerm(base) });
    const moving = {
      ...before,
      roles: roles({ workerOperations: 1 }),
      baseline: { ...before.baseline, worker: runtimeState(moved.plan) },
    };
    const again = state({ workerOperations: 1 });
    expect(needsStoredPlan(again, moving, nothing)).toBe(false);
    expect(serversOf(learn(again, undefined, { known: moving, renders: nothing }))).toStrictEqual(
      names(moved),
    );
  });
});

describe('afterOutcome', () => {
  const known = learn(state(), undefined, { known: undefined, renders: ofThisTerm(base) });
  const decision = (to: Render) => ({
    do: 'apply' as const,
    render: to,
    planId: to.plan.id,
    mode: 'auto' as const,
    changes: change(base, to),
    worker: runtimeState(to.plan),
  });
  const outcome = (
    kind: ApplyOutcome['outcome'],
    after: Partial<Roles>,
    operationsRun = after.workerOperations ?? 0,
  ): ApplyOutcome => ({
    outcome: kind,
    roles: roles(after),
    failedOperations: [],
    operationsRun,
    timings: { stage: 0, write: 0, operations: 0, reload: 0, confirmed: 0, total: 0 },
  });

  it('has the target in the worker after runtime operations', () => {
    const after = afterOutcome(
      known,
      decision(moved),
      outcome('runtime', { applied: moved.plan.id, workerOperations: 1 }),
    );
    expect(serversOf(after)).toStrictEqual(names(moved));
    expect(after.files).toStrictEqual(fileDigests(moved));
    expect(after.baseline.running).toBe(base.plan);
  });

  it('has a fresh worker after a reload', () => {
    const after = afterOutcome(
      known,
      decision(core),
      outcome('reload', { applied: core.plan.id, running: core.plan.id }),
    );
    expect(after.baseline.running).toBe(core.plan);
    expect(serversOf(after)).toStrictEqual(names(core));
  });

  it('has only the in-place part in the worker while a reload is scheduled', () => {
    const after = afterOutcome(
      known,
      decision(core),
      outcome('scheduled', { applied: core.plan.id, workerOperations: 1 }),
    );
    expect(after.pendingReload?.planId).toBe(core.plan.id);
    expect(after.baseline.running).toBe(base.plan);
    expect(serversOf(after)).toStrictEqual(names(moved));
  });

  it('R5: knows nothing of the worker after a rejection', () => {
    expect(
      afterOutcome(known, decision(core), outcome('rejected', {})).baseline.worker,
    ).toBeUndefined();
  });

  it.each([['runtime'], ['scheduled']] as const)(
    'R5: asks again when %s ran other operations than were sent',
    (kind) => {
      const after = afterOutcome(
        known,
        decision(kind === 'runtime' ? moved : core),
        outcome(kind, { applied: moved.plan.id }, 0),
      );
      expect(after.baseline.worker).toBeUndefined();
    },
  );

  it('knows nothing of a worker that was replaced meanwhile', () => {
    const after = afterOutcome(
      known,
      decision(moved),
      outcome('runtime', { applied: moved.plan.id, running: null }),
    );
    expect(after.baseline).toMatchObject({ running: undefined, worker: undefined });
  });
});
