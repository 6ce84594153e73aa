import { NEVER, type Observable, of, throwError } from 'rxjs';
import { describe, it } from 'vitest';
import { AgentError, type AgentClient } from '../../src/ports.ts';
import type { AgentState } from '../../src/protocol/answers.ts';
import { highestAgentEpoch } from '../../src/streams/agent-epochs.ts';
import { marbles } from '../support/marbles.ts';
import { podSet } from '../support/world.ts';

const state = (highestEpoch: number) => ({ highestEpoch }) as AgentState;

const clientOf = (answers: Readonly<Record<string, Observable<AgentState>>>): AgentClient => ({
  state: ({ name }) => answers[name] ?? NEVER,
  plan: () => NEVER,
  apply: () => NEVER,
});

describe('highestAgentEpoch', () => {
  it(
    'is the highest of all answers, as soon as all are there',
    marbles(({ cold, expectObservable }) => {
      const client = clientOf({
        p1: cold('5ms (s|)', { s: state(4) }),
        p2: cold('9ms (s|)', { s: state(9) }),
        p3: cold('7ms (s|)', { s: state(2) }),
      });
      const pods$ = of(podSet('p1', 'p2', 'p3'));
      expectObservable(highestAgentEpoch({ client, pods$ })).toBe('9ms (e|)', { e: 9 });
    }),
  );

  it(
    'waits a second at most for agents that are silent, and gives up their requests',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const silent$ = cold<AgentState>('');
      const client = clientOf({ p1: cold('5ms (s|)', { s: state(4) }), p2: silent$ });
      const pods$ = of(podSet('p1', 'p2'));
      expectObservable(highestAgentEpoch({ client, pods$ })).toBe('1s (e|)', { e: 4 });
      expectSubscriptions(silent$.subscriptions).toBe('^ 999ms !');
    }),
  );

  it(
    'leaves out agents that fail and epochs that no election gives',
    marbles(({ expectObservable }) => {
      const client = clientOf({
        p1: throwError(() => new AgentError('unreachable', 'no')),
        p2: of(state(1e308)),
        p3: of(state(3)),
      });
      const pods$ = of(podSet('p1', 'p2', 'p3'));
      expectObservable(highestAgentEpoch({ client, pods$ })).toBe('(e|)', { e: 3 });
    }),
  );

  it.each([
    ['without pods', of(podSet()), '(e|)'],
    ['before the pods are known', NEVER, '1s (e|)'],
    ['when they never will be', throwError(() => new Error('no')), '(e|)'],
  ])('is 0 %s', (_, pods$, expected) =>
    marbles(({ expectObservable }) => {
      expectObservable(highestAgentEpoch({ client: clientOf({}), pods$ })).toBe(expected, { e: 0 });
    })(),
  );
});
