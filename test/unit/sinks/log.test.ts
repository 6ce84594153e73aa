import { describe, expect, it } from 'vitest';
import type { Notification, NotificationOf } from '../../../src/ports.ts';
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
    expect(fourth).toHaveLength(1);
    expect(fifth?.slice(1).join()).toMatch(/: One: /);
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
    const [first, second, , last] = messages(
      refused,
      refused,
      { type: 'ConfigLoaded', generation: 'abc', watched: ['services'] },
      refused,
    );
    expect(first).toHaveLength(2);
    expect(second).toHaveLength(1);
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
      'p1: applied abcdef0123 reload in 4.0 s (backend web is new; frontend changed) in 12 ms',
    ],
  ] as const)('R3: that ends in %s says how', (outcome, message) => {
    expect(messages(applied(outcome))).toStrictEqual([[message]]);
  });

  it('that was rejected is one line, with the cause and the next try', () => {
    const failed: Notification = {
      type: 'ApplyFailed',
      pod: pod('p1'),
      planId: 'a',
      cause: 'rejected',
      message: 'no space left',
      retryInMs: 2_000,
    };
    expect(messages(applied('rejected'), failed)).toStrictEqual([
      [],
      ['p1: rejected: no space left; next try in 2.0 s'],
    ]);
  });
});
