import { describe, expect, it } from 'vitest';
import type { GatePhase, Verdict } from '../../../src/gate/verdict.ts';
import type { Notification, NotificationOf } from '../../../src/ports.ts';
import type { AgentState } from '../../../src/protocol/answers.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import { createLog } from '../../../src/sinks/log.ts';
import { makeRender } from '../../support/renders.ts';
import { pod } from '../../support/world.ts';

const problem = (reason: string): Problem => ({
  severity: 'error',
  reason,
  message: 'It is wrong.',
  nextStep: 'Mend it.',
  object: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web', uid: 'u' },
  field: 'spec.ports[0]',
  place: { source: 'web.yaml', line: 3 },
});
const rendered = (...problems: readonly Problem[]): Notification => ({
  type: 'Rendered',
  render: { ...makeRender(), problems },
  durationMs: 1_234,
});
const LINE = /^web\.yaml:3: Service shop\/web: spec\.ports\[0\]: \w+: It is wrong\. Mend it\.$/;

/** Messages of each event. */
const messages = (...events: readonly Notification[]): readonly (readonly string[])[] => {
  const log = createLog();
  return events.map((event) => log(event).map(({ message }) => message));
};

describe('problems', () => {
  it('name place, object, field, reason, what is wrong and the next step', () => {
    const [line] = createLog()({ type: 'SourceProblems', problems: [problem('Bad')] });
    expect(line?.message).toMatch(LINE);
    expect(line?.level).toBe('error');
    expect(line?.fields).toMatchObject({ reason: 'Bad', field: 'spec.ports[0]' });
  });

  it('that last are told once, and again when they come back', () => {
    const [first, second, third, fourth, fifth] = messages(
      rendered(problem('One')),
      rendered(problem('One'), problem('Two')),
      rendered(problem('Two'), problem('One')),
      rendered(problem('Two')),
      rendered(problem('Two'), problem('One')),
    );
    expect(first?.slice(1).join()).toMatch(/: One: /);
    expect(second?.slice(1).join()).toMatch(/: Two: /);
    expect(third).toHaveLength(1);
    expect(fourth?.slice(1)).toStrictEqual([
      'fixed: web.yaml: Service shop/web: spec.ports[0]: One',
    ]);
    expect(fifth?.slice(1).join()).toMatch(/: One: /);
  });

  it('that read another way now, or are told by a failed render, are not called fixed', () => {
    const moved: Problem = { ...problem('One'), place: { source: 'web.yaml', line: 4 } };
    const [, second, failed, last] = messages(
      rendered(problem('One')),
      rendered(moved),
      {
        type: 'RenderFailed',
        failure: { phase: 'template', problems: [problem('Two')] },
        durationMs: 1,
      },
      rendered(moved),
    );
    expect(second?.slice(1).join()).toMatch(/^web\.yaml:4: .*One/);
    expect(failed?.join()).not.toContain('fixed');
    expect(last?.slice(1)).toStrictEqual(['fixed: web.yaml: Service shop/web: spec.ports[0]: Two']);
  });

  it('of a file are told as fixed on the level info', () => {
    const log = createLog();
    const { object, field, ...invalid } = problem('InvalidYAML');
    log({ type: 'SourceProblems', problems: [invalid] });
    expect([object?.name, field]).toStrictEqual(['web', 'spec.ports[0]']);
    expect(log({ type: 'SourceProblems', problems: [] })).toMatchObject([
      { level: 'info', message: 'fixed: web.yaml: InvalidYAML', fields: { reason: 'InvalidYAML' } },
    ]);
  });

  it('of a refused check are told once for each template line, until a check passes', () => {
    const words = (line: number): Problem => ({
      ...problem('RefusedByHAProxy'),
      message: `HAProxy refuses haproxy.cfg line ${String(line)}: unknown keyword.`,
    });
    const checked = (verdict: Verdict): Notification => ({
      type: 'Checked',
      checked: { planId: 'abcdef0123456789', verdict, durationMs: 12 },
    });
    const refused = (...problems: readonly Problem[]) =>
      checked({ result: 'refused', message: 'one\n two\n', problems });
    const [first, again, unsure, passed, bare] = messages(
      refused(words(7), words(19)),
      refused(words(7), words(19)),
      checked({ result: 'inconclusive', cause: 'killed\nby somebody' }),
      checked({ result: 'passed' }),
      refused(),
    );
    expect(first).toStrictEqual([
      'checked abcdef0123: refused in 12 ms',
      'web.yaml:3: Service shop/web: spec.ports[0]: RefusedByHAProxy: HAProxy refuses haproxy.cfg line 7: unknown keyword. Mend it.',
    ]);
    expect(again).toStrictEqual(['checked abcdef0123: refused in 12 ms']);
    expect(unsure).toStrictEqual(['checked abcdef0123: no verdict: killed | by somebody']);
    expect(passed).toStrictEqual([
      'checked abcdef0123: passed in 12 ms',
      'fixed: web.yaml: Service shop/web: spec.ports[0]: RefusedByHAProxy',
    ]);
    expect(bare).toStrictEqual(['checked abcdef0123: refused in 12 ms: one | two']);
  });

  it('of a failed render count as those of renders', () => {
    const failed: Notification = {
      type: 'RenderFailed',
      failure: { phase: 'template', problems: [problem('One')] },
      durationMs: 1,
    };
    const [first, second] = messages(failed, failed);
    expect(first).toHaveLength(2);
    expect(second).toStrictEqual(['render failed in phase template, what is served stays']);
  });

  it('of a configuration are told anew after one that was loaded', () => {
    const refused: Notification = { type: 'ConfigRefused', problems: [problem('One')] };
    const [first, second, loaded, last] = messages(
      refused,
      refused,
      { type: 'ConfigLoaded', generation: 'abc', watched: ['services'] },
      refused,
    );
    expect(first).toHaveLength(2);
    expect(second).toHaveLength(1);
    expect(loaded?.[1]).toMatch(/^fixed: web\.yaml: .*: One$/);
    expect(last).toHaveLength(2);
  });

  it('of one list do not hide those of another', () => {
    const [, second] = messages(
      { type: 'SourceProblems', problems: [problem('One')] },
      rendered(problem('One')),
    );
    expect(second).toHaveLength(2);
  });
});

describe('an apply', () => {
  const applied = (outcome: NotificationOf<'Applied'>['outcome']['outcome']): Notification => ({
    type: 'Applied',
    pod: pod('p1'),
    planId: 'abcdef0123456789',
    verdict: 'reload',
    reverted: false,
    outcome: {
      outcome,
      reloadInMs: 4_000,
      roles: { applied: null, running: null, workerOperations: 0, lkg: null },
      failedOperations: [],
      operationsRun: 0,
      timings: { stage: 0, write: 0, operations: 0, reload: 0, confirmed: 0, total: 0 },
    },
    operations: 2,
    reasons: ['backend web is new', 'frontend changed'],
    causes: [],
    durationMs: 12,
  });

  it.each([
    ['runtime', 'p1: applied abcdef0123 by 2 runtime operations, no reload in 12 ms'],
    ['files', 'p1: applied abcdef0123 files only, no reload in 12 ms'],
    [
      'reload',
      'p1: applied abcdef0123 by a reload (backend web is new; frontend changed) in 12 ms',
    ],
    [
      'scheduled',
      'p1: files of abcdef0123 written in 12 ms, reload in 4.0 s (backend web is new; frontend changed)',
    ],
  ] as const)('R3: that ends in %s says how', (outcome, message) => {
    expect(messages(applied(outcome))).toStrictEqual([[message]]);
  });

  it('to a pod that held nothing is the first one', () => {
    const unknown: Notification = {
      ...(applied('reload') as NotificationOf<'Applied'>),
      reasons: ['it is not known what the worker holds'],
      causes: ['unknown-baseline'],
    };
    const state = (planId: string | null): Notification => ({
      type: 'AgentState',
      pod: pod('p1'),
      state: { roles: { applied: planId, running: planId } } as AgentState,
    });
    const first = 'p1: applied abcdef0123 by a reload (first apply) in 12 ms';
    const later = first.replace('first apply', 'it is not known what the worker holds');
    expect(messages(state(null), unknown, state('abc'), unknown)).toStrictEqual([
      [],
      [first],
      [],
      [later],
    ]);
    expect(messages(unknown)).toStrictEqual([[later]]);
  });

  it('that was rejected is one line, with the cause and the next try', () => {
    const failed: Notification = {
      type: 'ApplyFailed',
      pod: pod('p1'),
      planId: 'a',
      cause: 'rejected',
      message: 'line 7: unknown keyword\n  line 9: bad word\n',
      retryInMs: 2_000,
    };
    expect(messages(applied('rejected'), failed)).toStrictEqual([
      [],
      ['p1: rejected: line 7: unknown keyword | line 9: bad word; next try in 2.0 s'],
    ]);
  });
});

describe('the gate', () => {
  const changed = (phase: GatePhase): Notification => ({
    type: 'GateChanged',
    phase,
    accepted: 'abcdef0123456789',
  });

  it('is told when its phase changes; what it accepted meanwhile is for debugging', () => {
    const log = createLog();
    const told = (['open', 'holding', 'holding', 'open'] as const).map((phase) =>
      log(changed(phase)).map(({ level, message }) => `${level} ${message}`),
    );
    expect(told).toStrictEqual([
      ['debug gate is open, accepted abcdef0123'],
      ['warn gate is holding, accepted abcdef0123'],
      ['debug gate is holding, accepted abcdef0123'],
      ['info gate is open, accepted abcdef0123'],
    ]);
  });
});
