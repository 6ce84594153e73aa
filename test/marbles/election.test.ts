import { map, NEVER, type Observable, of, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AgentClient, Leadership, Notification, Pod } from '../../src/ports.ts';
import type { AgentState } from '../../src/protocol/answers.ts';
import type { LeaderElectionSettings } from '../../src/render/render.ts';
import { clusterElection } from '../../src/streams/election.ts';
import type { Election } from '../../src/streams/leadership.ts';
import { marbles } from '../support/marbles.ts';
import { ModelLease } from '../support/model-lease.ts';

const settings: LeaderElectionSettings = {
  enabled: true,
  leaseName: 'haptic',
  leaseDurationMs: 30_000,
  renewDeadlineMs: 20_000,
  retryPeriodMs: 5_000,
};
const alone = { ...settings, enabled: false };

/** Agents that all report this epoch. */
const reporting = (highestEpoch: number): AgentClient => ({
  state: () => of({ highestEpoch } as AgentState),
  plan: () => NEVER,
  apply: () => NEVER,
});
const pod: Pod = { key: 'p', name: 'p', url: 'model:p' };

interface Words {
  readonly settings$: Observable<LeaderElectionSettings>;
  readonly lease?: ModelLease;
  readonly requests?: string[];
  readonly agents?: AgentClient;
  readonly feedback$?: Observable<Notification>;
  readonly release$?: Observable<unknown>;
}

/** A replica that looks every 3,000 ms and whose requests take 2 ms. */
const elect = ({ lease = new ModelLease(), requests = [], ...words }: Words): Election =>
  clusterElection(
    {
      client: lease.client(({ method, path }) => {
        requests.push(`${method} ${path.split('/').at(-1) ?? ''}`);
        return {};
      }),
      agents: words.agents ?? reporting(0),
      namespace: 'ns',
      identity: 'a',
      settings$: words.settings$,
      pods$: of(new Map([['p', pod]])),
      feedback$: words.feedback$ ?? NEVER,
      random: () => 0.4,
    },
    words.release$ ?? NEVER,
  );

const terms = ({ leader$ }: Election): Observable<string> => leader$.pipe(map(word));
const word = (leader: Leadership): string => (leader.leading ? String(leader.epoch) : 'no');

/** An apply that was fenced off by an agent that has seen this epoch. */
const fencedOff = (highestEpoch: number): Notification => ({
  type: 'ApplyFailed',
  pod,
  planId: undefined,
  cause: 'stale-epoch',
  highestEpoch,
  message: '',
  retryInMs: 0,
});

describe('the election of a replica in a cluster', () => {
  it(
    'does not stand before it has a valid configuration',
    marbles(({ cold, expectObservable, flush }) => {
      const requests: string[] = [];
      const election = elect({ settings$: cold('500ms s', { s: settings }), requests });
      timer(499).subscribe(() => expect(requests).toStrictEqual([]));
      expectObservable(terms(election), '1s !').toBe('n 503ms t', { n: 'no', t: '1' });
      flush();
      expect(requests).toStrictEqual(['GET haptic', 'POST leases']);
    }),
  );

  it(
    'runs once, whoever listens, and tells who comes later who leads',
    marbles(({ cold, expectObservable, flush }) => {
      const requests: string[] = [];
      const election = elect({ settings$: cold('s', { s: settings }), requests });
      expectObservable(terms(election), '2s !').toBe('n 3ms t', { n: 'no', t: '1' });
      expectObservable(terms(election), '1s ^ 500ms !').toBe('1s (nt)', { n: 'no', t: '1' });
      expectObservable(election.problems$, '1s ^ 500ms !').toBe('1s e', { e: [] });
      flush();
      expect(requests).toStrictEqual(['GET haptic', 'POST leases']);
    }),
  );

  it(
    'keeps the Lease of the first configuration, and the term, when a new one changes the times',
    marbles(({ cold, expectObservable, flush }) => {
      const requests: string[] = [];
      const faster = { ...settings, leaseName: 'other', retryPeriodMs: 500 };
      const settings$ = cold('s 999ms f', { s: settings, f: faster });
      expectObservable(terms(elect({ settings$, requests })), '6s !').toBe('n 3ms t', {
        n: 'no',
        t: '1',
      });
      flush();
      expect(new Set(requests.slice(2))).toStrictEqual(new Set(['PUT haptic']));
      expect(requests.length).toBeGreaterThan(8);
    }),
  );

  it(
    'takes an epoch above what agents report, and a higher one when an agent fences it off',
    marbles(({ cold, hot, expectObservable }) => {
      const settings$ = cold('s', { s: settings });
      const feedback$ = hot('100ms f', { f: fencedOff(9) });
      const election = elect({ settings$, feedback$, agents: reporting(6) });
      expectObservable(terms(election), '1s !').toBe('n 3ms t 97ms u', {
        n: 'no',
        t: '7',
        u: '10',
      });
    }),
  );

  it(
    'gives the Lease back when it is released, then completes',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      const election = elect({
        settings$: cold('s', { s: settings }),
        release$: cold('100ms r'),
        lease,
      });
      expectObservable(terms(election)).toBe('n 3ms t 95ms n 3ms |', { n: 'no', t: '1' });
      flush();
      expect(lease.spec.holderIdentity).toBe('');
    }),
  );

  it(
    'completes at once when it is released before there was a valid configuration',
    marbles(({ cold, expectObservable, flush }) => {
      const requests: string[] = [];
      const election = elect({ settings$: NEVER, release$: cold('100ms r'), requests });
      expectObservable(terms(election)).toBe('n 99ms |', { n: 'no' });
      expectObservable(election.problems$).toBe('100ms |');
      flush();
      expect(requests).toStrictEqual([]);
    }),
  );
});

describe('a replica whose configuration switches the election off', () => {
  it(
    'leads at once above what agents report, without a Lease, until it is released',
    marbles(({ cold, expectObservable, flush }) => {
      const requests: string[] = [];
      const election = elect({
        settings$: cold('s', { s: alone }),
        release$: cold('100ms r'),
        agents: reporting(4),
        requests,
      });
      expectObservable(terms(election)).toBe('(nt) 96ms |', { n: 'no', t: '5' });
      flush();
      expect(requests).toStrictEqual([]);
    }),
  );

  it(
    'raises its epoch when it is fenced off, at most once each retry period',
    marbles(({ cold, hot, expectObservable }) => {
      let highest = 0;
      const feedback$ = hot('100ms f 99ms f 99ms f', { f: undefined }).pipe(
        tap(() => (highest += 10)),
        map(() => fencedOff(highest)),
      );
      const election = elect({ settings$: cold('s', { s: alone }), feedback$ });
      expectObservable(terms(election), '9s !').toBe('(nt) 96ms u 4999ms v', {
        n: 'no',
        t: '1',
        u: '11',
        v: '31',
      });
    }),
  );

  it(
    'ignores an epoch that no election gives: with it every agent would be lost',
    marbles(({ cold, hot, expectObservable }) => {
      const feedback$ = hot('100ms f', { f: fencedOff(1e300) });
      const election = elect({ settings$: cold('s', { s: alone }), feedback$ });
      expectObservable(terms(election), '1s !').toBe('(nt)', { n: 'no', t: '1' });
    }),
  );
});
