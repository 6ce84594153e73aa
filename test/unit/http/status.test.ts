import { describe, expect, it } from 'vitest';
import {
  debugVars,
  initialStatus,
  readiness,
  statusStep,
  type Status,
} from '../../../src/http/status.ts';
import type { Notification } from '../../../src/ports.ts';
import type { AgentState, ApplyOutcome } from '../../../src/protocol/answers.ts';
import { makeRender } from '../../support/renders.ts';
import { pod } from '../../support/world.ts';

const render = makeRender();
const outcome = (kind: ApplyOutcome['outcome']): ApplyOutcome => ({
  outcome: kind,
  roles: { applied: null, running: null, workerOperations: 0, lkg: null },
  failedOperations: [],
  operationsRun: 0,
  timings: { stage: 0, write: 0, operations: 0, reload: 0, confirmed: 0, total: 0 },
});
const applied = (kind: ApplyOutcome['outcome']): Notification => ({
  type: 'Applied',
  pod: pod('p1'),
  planId: render.plan.id,
  verdict: 'reload',
  reverted: false,
  outcome: outcome(kind),
  operations: 0,
  reasons: ['section core: new or changed'],
  causes: ['core-changed'],
  durationMs: 1,
});
const synced: readonly Notification[] = [
  { type: 'ConfigLoaded', generation: 'g', watched: ['ingresses'] },
  { type: 'Snapshot', snapshot: render.snapshot },
  { type: 'Rendered', render, durationMs: 3 },
];
const leading: Notification = { type: 'Leadership', leadership: { leading: true, epoch: 3 } };
const podsFound = (...names: readonly string[]): Notification => ({
  type: 'PodsFound',
  pods: new Map(names.map((name) => [name, pod(name)])),
});
const after = (...events: readonly Notification[]): Status =>
  events.reduce(
    (status, event) => statusStep(status, event),
    initialStatus('2026-01-01T00:00:00Z'),
  );

describe('readiness (R11)', () => {
  it('R11: is not ready before configuration, sync and render', () => {
    expect(readiness(after())).toStrictEqual({
      ready: false,
      reasons: ['no valid configuration yet', 'watched resources have not synced yet'],
    });
  });

  it('R11: a follower is ready when synced and rendered', () => {
    expect(readiness(after(...synced)).ready).toBe(true);
  });

  it('R11: a leader is ready with its first confirmed apply, a scheduled one does not count', () => {
    const found = podsFound('p1');
    expect(readiness(after(...synced, leading, found, applied('scheduled'))).reasons).toStrictEqual(
      ['no apply confirmed by any HAProxy pod yet'],
    );
    expect(readiness(after(...synced, leading, found, applied('reload'))).ready).toBe(true);
  });

  it('R11: a leader without any HAProxy pod is ready, one that has not looked for pods is not', () => {
    expect(readiness(after(...synced, leading)).reasons).toStrictEqual([
      'HAProxy pods not known yet',
    ]);
    expect(readiness(after(...synced, leading, podsFound())).ready).toBe(true);
    expect(readiness(after(...synced, leading, podsFound('p1'))).ready).toBe(false);
  });

  it('is not ready while shutting down', () => {
    expect(readiness(after(...synced, { type: 'ShuttingDown' })).ready).toBe(false);
  });
});

describe('debugVars (S23)', () => {
  it('shows counts, ids, roles, gate and last reasons, and no content', () => {
    const shown = debugVars(
      after(...synced, applied('reload'), {
        type: 'GateChanged',
        phase: 'holding',
        accepted: 'abc',
      }),
    );
    expect(shown).toMatchObject({
      snapshot: { version: 1, objects: {} },
      render: { planId: render.plan.id, backends: 0, files: 1 },
      gate: { phase: 'holding', accepted: 'abc' },
      agents: { p1: { lastOutcome: 'reload', lastReasons: ['section core: new or changed'] } },
    });
    expect(JSON.stringify(shown)).not.toContain('bind 127.0.0.1:8080');
  });

  it('tells which plan the last verdict is about', () => {
    const checked: Notification = {
      type: 'Checked',
      checked: { planId: 'abc', verdict: { result: 'passed' }, durationMs: 1 },
    };
    expect(debugVars(after(checked))['gate']).toMatchObject({
      lastVerdict: 'passed',
      lastVerdictPlanId: 'abc',
    });
  });

  it('tells when the state of an agent was read, and calls its pod by the name that logs use', () => {
    const first = { ...pod('standalone/0'), name: 'haproxy' };
    const second = { ...first, key: 'standalone/1' };
    const state = { protocol: 1 } as AgentState;
    const now = '2026-01-01T00:00:07Z';
    const read = statusStep(after(), { type: 'AgentState', pod: first, state }, now);
    expect(debugVars(read)['agents']).toMatchObject({
      haproxy: { name: 'haproxy', key: 'standalone/0', readAt: now, state },
    });
    const both = statusStep(read, { type: 'AgentState', pod: second, state });
    expect(Object.keys(debugVars(both)['agents'] as object)).toStrictEqual([
      'haproxy',
      'standalone/1',
    ]);
  });
});
