import { describe, expect, it } from 'vitest';
import type { Desired } from '../../../src/ports.ts';
import type { Render } from '../../../src/render/render.ts';
import { decide, fileDigests, type PodKnowledge } from '../../../src/sinks/decide.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import { BASE_CAPABILITIES } from '../../../src/plan/classify.ts';
import { defaultSettings } from '../../support/renders.ts';
import { renderWith } from '../../support/world.ts';

const base = renderWith({ servers: ['s'] });
const moreServers = renderWith({ servers: ['s', 't'] });
const entry = renderWith({ servers: ['s'], routes: ['entry-1'] });
const core = renderWith({ servers: ['s'], routes: ['r'] });
const coreMoreServers = renderWith({ servers: ['s', 't'], routes: ['r'] });
const coreMostServers = renderWith({ servers: ['s', 't', 'u'], routes: ['r'] });

const desired = (target: Render | undefined, change: Partial<Desired> = {}): Desired => ({
  epoch: 1,
  phase: 'open',
  target,
  accepted: undefined,
  refused: new Set(),
  servers: undefined,
  reloadNotBeforeMs: 0,
  settings: defaultSettings,
  ...change,
});

/** A pod whose worker was started from `running` and took operations up to `worker`; its disk holds `applied`. */
const holding = (
  applied: Render,
  {
    running = applied,
    worker = applied,
    change = {},
  }: { running?: Render; worker?: Render; change?: Partial<PodKnowledge> } = {},
): PodKnowledge => ({
  roles: {
    applied: applied.plan.id,
    running: running.plan.id,
    workerOperations: 0,
    lkg: running.plan.id,
  },
  baseline: {
    applied: applied.plan,
    running: running.plan,
    worker: runtimeState(worker.plan),
    workerOperations: 0,
  },
  files: fileDigests(applied),
  render: applied,
  capabilities: BASE_CAPABILITIES,
  highestEpoch: 1,
  pendingReload: undefined,
  ...change,
});

const summary = (level: Desired, known: PodKnowledge) => {
  const decision = decide(level, known);
  if (decision.do === 'nothing') return decision.why;
  const { mode, planId, changes } = decision;
  return {
    mode,
    planId,
    verdict: changes.verdict,
    operations: changes.operations.map(({ kind }) => kind),
  };
};

describe('decide', () => {
  it('does nothing for a pod that holds the target', () => {
    expect(summary(desired(base), holding(base))).toBe('up-to-date');
  });

  it.each([0, 2])(
    'claims a pod whose agent knows the epoch %d for its own term',
    (highestEpoch) => {
      expect(summary(desired(base), holding(base, { change: { highestEpoch } }))).toMatchObject({
        mode: 'auto',
        planId: base.plan.id,
        operations: [],
      });
    },
  );

  it('does nothing without a target', () => {
    expect(summary(desired(undefined), holding(base))).toBe('no-target');
  });

  it('G7: brings runtime changes by operations', () => {
    expect(summary(desired(moreServers), holding(base))).toStrictEqual({
      mode: 'auto',
      planId: moreServers.plan.id,
      verdict: 'runtime',
      operations: ['server_add'],
    });
  });

  it('R5: reloads a pod of which nothing is known', () => {
    const unknown = holding(base, {
      change: {
        baseline: {
          applied: undefined,
          running: undefined,
          worker: undefined,
          workerOperations: 0,
        },
      },
    });
    expect(summary(desired(base), unknown)).toMatchObject({ mode: 'reload', verdict: 'reload' });
  });

  it('R3: needs no reload for a runtime change to a pod whose applied plan is of an earlier term', () => {
    const known = holding(base);
    const earlier = {
      ...known,
      baseline: { ...known.baseline, applied: undefined },
      render: undefined,
    };
    expect(summary(desired(moreServers), earlier)).toMatchObject({
      mode: 'auto',
      verdict: 'runtime',
      operations: ['server_add'],
    });
  });

  it('G11: writes a file again that was changed on the disk, without a reload', () => {
    const tampered = holding(base, {
      change: { files: new Map([...fileDigests(base), ['haproxy.cfg', 'other']]) },
    });
    expect(summary(desired(base), tampered)).toMatchObject({
      mode: 'auto',
      verdict: 'files',
      operations: [],
    });
  });

  it('G11: removes a file nobody declared', () => {
    const surplus = holding(base, {
      change: { files: new Map([...fileDigests(base), ['general/x', 'digest']]) },
    });
    expect(summary(desired(base), surplus)).toMatchObject({ mode: 'auto', verdict: 'files' });
  });

  it('waits for a reload that is pending for the same plan', () => {
    const pending = holding(core, {
      running: base,
      worker: base,
      change: { pendingReload: { planId: core.plan.id, inMs: 100 } },
    });
    expect(summary(desired(core), pending)).toBe('reload-pending');
  });

  it('S14: reverts what runtime operations brought, by operations', () => {
    const level = desired(base, {
      phase: 'holding',
      accepted: base,
      refused: new Set([entry.plan.id]),
    });
    expect(summary(level, holding(entry, { running: base }))).toStrictEqual({
      mode: 'revert',
      planId: base.plan.id,
      verdict: 'runtime',
      operations: ['map_delete'],
    });
  });

  it('S14: leaves a pod alone whose own HAProxy loaded the refused plan', () => {
    const level = desired(base, {
      phase: 'holding',
      accepted: base,
      refused: new Set([core.plan.id]),
    });
    expect(summary(level, holding(core))).toBe('up-to-date');
  });

  it('a refusal takes back no pod of another minor version than the checker of it', () => {
    const refusing = (checkerVersion: string): Desired =>
      desired(base, {
        phase: 'holding',
        accepted: base,
        refused: new Set([entry.plan.id]),
        checkerVersion,
      });
    const known = holding(entry, { running: base });
    const on = (haproxy: string) => ({
      ...known,
      capabilities: { ...known.capabilities, haproxy },
    });
    expect(summary(refusing('3.4.7'), on('3.2.1'))).toBe('up-to-date');
    expect(summary(refusing('3.4.7'), on('3.4.1'))).toMatchObject({ mode: 'revert' });
  });

  it('servers flow to a pod that loaded the refused plan, its files stay', () => {
    const level = desired(base, {
      phase: 'holding',
      accepted: base,
      refused: new Set([core.plan.id]),
      servers: coreMoreServers,
    });
    expect(summary(level, holding(core))).toStrictEqual({
      mode: 'auto',
      planId: core.plan.id,
      verdict: 'runtime',
      operations: ['server_add'],
    });
  });

  it('servers flow while held, the files stay those of the accepted render', () => {
    const level = desired(base, { phase: 'holding', accepted: base, servers: coreMoreServers });
    expect(summary(level, holding(base))).toStrictEqual({
      mode: 'auto',
      planId: base.plan.id,
      verdict: 'runtime',
      operations: ['server_add'],
    });
  });

  it('sends a pod back to its own last good tree when nothing was accepted in this term', () => {
    const level = desired(undefined, { phase: 'holding', refused: new Set([entry.plan.id]) });
    expect(summary(level, holding(entry, { running: base }))).toStrictEqual({
      mode: 'revert',
      planId: base.plan.id,
      verdict: 'runtime',
      operations: ['map_delete'],
    });
  });

  it('leaves a pod without a last good tree as it is', () => {
    const level = desired(undefined, { phase: 'holding', refused: new Set([entry.plan.id]) });
    const known = holding(entry, { running: base });
    expect(summary(level, { ...known, roles: { ...known.roles, lkg: null } })).toBe('no-target');
  });

  it('G9: servers go on at a pod that took operations after it had loaded the refused plan', () => {
    const level = desired(base, {
      phase: 'holding',
      accepted: base,
      refused: new Set([core.plan.id]),
      servers: coreMostServers,
    });
    const known = holding(coreMoreServers, { running: core, worker: coreMoreServers });
    expect(summary(level, known)).toStrictEqual({
      mode: 'auto',
      planId: coreMoreServers.plan.id,
      verdict: 'runtime',
      operations: ['server_add'],
    });
  });

  it('G9: a held server that only a reload could bring stays away', () => {
    const fixed = renderWith({ servers: ['s'], balance: 'source' });
    const fixedMore = renderWith({ servers: ['s', 't'], balance: 'source' });
    const level = desired(fixed, { phase: 'holding', accepted: fixed, servers: fixedMore });
    expect(summary(level, holding(fixed))).toBe('up-to-date');
  });
});
