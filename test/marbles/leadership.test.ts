import { EMPTY, map, merge, NEVER, type Observable, of, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { KubeError, type KubeErrorCode } from '../../src/kube/client.ts';
import type { Leadership } from '../../src/ports.ts';
import type { ElectionOptions } from '../../src/streams/election-state.ts';
import { type Election, leadership, underElection } from '../../src/streams/leadership.ts';
import { marbles } from '../support/marbles.ts';
import { type Fate, ModelLease } from '../support/model-lease.ts';

const settings = { leaseDurationMs: 30_000, renewDeadlineMs: 20_000, retryPeriodMs: 5_000 };

interface Replica extends Partial<ElectionOptions> {
  readonly fate?: (index: number, method: string) => Fate;
}

/** A replica that looks every 3,000 ms, asks agents that answer in 1 ms, and whose requests take 2 ms. */
const replica = (lease: ModelLease, identity: string, options: Replica = {}): Election => {
  const { fate = () => ({}), ...rest } = options;
  return leadership({
    client: lease.client(({ method }, index) => fate(index, method)),
    lease: { namespace: 'ns', name: 'haptic' },
    identity,
    settings: () => settings,
    agentEpoch$: timer(1).pipe(map(() => 0)),
    overtaken$: NEVER,
    release$: NEVER,
    random: () => 0.4,
    ...rest,
  });
};

const terms = ({ leader$ }: Election): Observable<string> => leader$.pipe(map(word));
const word = (leader: Leadership): string => (leader.leading ? String(leader.epoch) : 'no');
const reasons = ({ problems$ }: Election): Observable<string> =>
  problems$.pipe(map((problems) => problems.map(({ reason }) => reason).join(' ')));

const at = (ms: number, act: () => void): void => {
  timer(ms).subscribe(act);
};
const held = (holderIdentity: string, renewTime = 't1', leaseDurationSeconds = 30) => ({
  holderIdentity,
  renewTime,
  leaseDurationSeconds,
});
const failing = (code: KubeErrorCode): Fate => ({ error: new KubeError(code, `it is ${code}`) });

describe('taking the Lease', () => {
  it(
    'follows at first, and leads when the Lease has been created',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      expectObservable(terms(replica(lease, 'a')), '1s !').toBe('n 4ms 1', { n: 'no', 1: '1' });
      flush();
      expect(lease.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 30 });
      expect(lease.epoch).toBe('1');
    }),
  );

  it(
    'takes an epoch above the Lease and above what any agent reports',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      lease.edit({ epoch: '4', spec: held('') });
      const other = new ModelLease();
      other.edit({ epoch: '4', spec: held('') });
      const agentEpoch$ = timer(100).pipe(map(() => 8));
      expectObservable(terms(replica(lease, 'a')), '1s !').toBe('n 4ms t', { n: 'no', t: '5' });
      expectObservable(terms(replica(other, 'a', { agentEpoch$ })), '1s !').toBe('n 103ms t', {
        n: 'no',
        t: '9',
      });
      flush();
      expect([lease.epoch, other.epoch]).toStrictEqual(['5', '9']);
    }),
  );

  it(
    'takes its own Lease back at once, with a new epoch',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      lease.edit({ epoch: '4', spec: held('a') });
      expectObservable(terms(replica(lease, 'a')), '1s !').toBe('n 4ms t', { n: 'no', t: '5' });
    }),
  );

  it(
    'waits until the Lease did not change for its duration, whatever time the holder writes (clock skew)',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      lease.edit({ epoch: '1', spec: held('b', '1999-01-01T00:00:00.000000Z') });
      at(10_000, () => lease.edit({ spec: held('b', '1999-01-01T00:00:10.000000Z') }));
      // Looks every 3,002 ms: at 12,010 it sees the change, at 42,030 that 30 s have passed since.
      expectObservable(terms(replica(lease, 'a')), '60s !').toBe('n 42032ms t', {
        n: 'no',
        t: '2',
      });
    }),
  );

  it(
    'keeps to the duration that the holder has promised, not to its own',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      lease.edit({ epoch: '1', spec: held('b', 't', 60) });
      expectObservable(terms(replica(lease, 'a')), '70s !').toBe('n 60044ms t', {
        n: 'no',
        t: '2',
      });
    }),
  );

  it.each(['-3', '1e308', 'x', '', '99999999999999999999', '1.5', '0x10'])(
    'ignores and tells an epoch on the Lease that no election gives: %j',
    (epoch) =>
      marbles(({ expectObservable, flush }) => {
        const lease = new ModelLease();
        lease.edit({ epoch, spec: held('') });
        const election = replica(lease, 'a', { agentEpoch$: timer(1).pipe(map(() => 6)) });
        expectObservable(terms(election), '4s !').toBe('n 4ms t', { n: 'no', t: '7' });
        expectObservable(reasons(election), '4s !').toBe('n 4ms o 3001ms n', {
          n: '',
          o: 'LeaseEpochInvalid',
        });
        flush();
        expect(lease.epoch).toBe('7');
      })(),
  );

  it(
    'two replicas that find it free at once: the server lets one of them',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      expectObservable(terms(replica(lease, 'a')), '1m !').toBe('n 4ms t', { n: 'no', t: '1' });
      expectObservable(terms(replica(lease, 'b')), '1m !').toBe('n', { n: 'no' });
      flush();
      expect(lease.spec.leaseTransitions).toBe(0);
    }),
  );
});

describe('holding the Lease', () => {
  it(
    'renews it and goes on with the same epoch',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      expectObservable(terms(replica(lease, 'a')), '1m !').toBe('n 4ms t', { n: 'no', t: '1' });
      flush();
      expect(lease.writes.length).toBe(20);
      expect(new Set(lease.writes)).toStrictEqual(new Set(['a 1']));
    }),
  );

  it(
    'stops leading when it could not renew until the deadline, and leads again with a higher epoch',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      // GET, POST and two renewals succeed, 20 fail; the last renewal started at 6,007 ms.
      const fate = (index: number): Fate =>
        index >= 4 && index < 24 ? failing('unreachable') : {};
      const election = replica(lease, 'a', { fate });
      expectObservable(terms(election), '2m !').toBe('n 4ms 1 26001ms n 42032ms 2', {
        n: 'no',
        1: '1',
        2: '2',
      });
    }),
  );

  it(
    'counts a renewal that is in flight at the deadline as lost',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      // The term begins with a request at 3 ms; its first renewal starts at 9,005 and is answered in the frame of the deadline.
      const late: Fate = { toMs: 1, backMs: 10_997 };
      const election = replica(lease, 'a', {
        fate: (index) => (index === 2 ? late : {}),
        settings: () => ({ ...settings, retryPeriodMs: 15_000 }),
      });
      expectObservable(terms(election), '21s !').toBe('n 4ms 1 19997ms n 4ms 2', {
        n: 'no',
        1: '1',
        2: '2',
      });
    }),
  );

  it(
    'stops leading at once when another holds it',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      at(4_000, () => lease.edit({ epoch: '2', spec: held('b') }));
      expectObservable(terms(replica(lease, 'a')), '10s !').toBe('n 4ms 1 6005ms n', {
        n: 'no',
        1: '1',
      });
    }),
  );

  it(
    'goes on when a hand has changed the Lease but not its holder',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      at(4_000, () => lease.edit({ epoch: '30' }));
      expectObservable(terms(replica(lease, 'a')), '10s !').toBe('n 4ms 1', { n: 'no', 1: '1' });
      flush();
      expect(lease.epoch).toBe('30');
    }),
  );

  it(
    'creates a Lease anew that was deleted by hand, as a new term',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      lease.edit({ epoch: '6', spec: held('') });
      at(4_000, () => (lease.object = undefined));
      expectObservable(terms(replica(lease, 'a')), '10s !').toBe('n 4ms 7 6005ms n 4ms 8', {
        n: 'no',
        7: '7',
        8: '8',
      });
      flush();
      expect(lease.epoch).toBe('8');
    }),
  );
});

describe('epochs that agents have seen', () => {
  it(
    'raises its epoch above a higher one that an agent reports, at once and for as long as it holds the Lease',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      const overtaken$ = cold('999ms x 8999ms y', { x: 6, y: 9 });
      const election = replica(lease, 'a', { overtaken$ });
      expectObservable(terms(election), '20s !').toBe('n 4ms 1 995ms 7 8999ms t', {
        n: 'no',
        1: '1',
        7: '7',
        t: '10',
      });
      flush();
      expect(lease.epoch).toBe('10');
    }),
  );

  it(
    'gives up instead of raising when another holds the Lease meanwhile',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      at(500, () => lease.edit({ epoch: '6', spec: held('b') }));
      const election = replica(lease, 'a', { overtaken$: cold('999ms x', { x: 6 }) });
      expectObservable(terms(election), '20s !').toBe('n 4ms 1 997ms n', { n: 'no', 1: '1' });
      flush();
      expect(lease.epoch).toBe('6');
    }),
  );

  it(
    'raises by compare-and-set: what a hand wrote meanwhile is kept and overtaken too',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      at(500, () => lease.edit({ epoch: '40' }));
      const election = replica(lease, 'a', { overtaken$: cold('999ms x', { x: 6 }) });
      expectObservable(terms(election), '3s !').toBe('n 4ms 1 999ms t', {
        n: 'no',
        1: '1',
        t: '41',
      });
      flush();
      expect(lease.epoch).toBe('41');
    }),
  );

  it(
    'an agent that always reports more does not make it spin: raises keep the retry period',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      const overtaken$ = cold('a 99ms b 99ms c 99ms d 99ms e', { a: 2, b: 9, c: 19, d: 29, e: 39 });
      const election = replica(lease, 'a', { overtaken$ });
      expectObservable(terms(election), '4s !').toBe('n 4ms 3 96ms t 3001ms u', {
        n: 'no',
        3: '3',
        t: '10',
        u: '40',
      });
      flush();
    }),
  );

  it(
    'ignores and tells an epoch of an agent that no election gives',
    marbles(({ cold, expectObservable }) => {
      const lease = new ModelLease();
      const overtaken$ = cold('999ms x 999ms y', { x: 1e308, y: 4 });
      const election = replica(lease, 'a', { overtaken$ });
      expectObservable(terms(election), '3s !').toBe('n 4ms 1 1995ms 5', {
        n: 'no',
        1: '1',
        5: '5',
      });
      expectObservable(reasons(election), '3s !').toBe('n 2000ms o', {
        n: '',
        o: 'AgentEpochInvalid',
      });
    }),
  );
});

describe('what hinders the election', () => {
  it.each([
    ['GET', 'get'],
    ['POST', 'create'],
  ])('tells a missing right for %s, and leads when it was given', (method, verb) =>
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      let isAllowed = false;
      at(10_000, () => (isAllowed = true));
      const fate = (_: number, asked: string): Fate =>
        asked === method && !isAllowed ? failing('forbidden') : {};
      const { leader$, problems$ } = replica(lease, 'a', { fate });
      expectObservable(leader$.pipe(map(word)), '20s !').toBe(
        method === 'GET' ? 'n 12012ms 1' : 'n 12024ms 1',
        { n: 'no', 1: '1' },
      );
      const told$ = problems$.pipe(map((list) => list.map(({ message }) => message).join('')));
      expectObservable(told$, '20s !').toBe(
        method === 'GET' ? 'n 1ms o 12010ms n' : 'n 4ms o 12019ms n',
        {
          n: '',
          o: `the verb ${verb} on the Lease that decides who leads fails: it is forbidden`,
        },
      );
    })(),
  );

  it(
    'a leader without the right to update says so and stops at its deadline',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      const fate = (_: number, method: string): Fate =>
        method === 'PUT' ? failing('forbidden') : {};
      const election = replica(lease, 'a', { fate });
      expectObservable(terms(election), '25s !').toBe('n 4ms 1 19997ms n', { n: 'no', 1: '1' });
      expectObservable(reasons(election), '25s !').toBe('n 3006ms f', {
        n: '',
        f: 'LeaseForbidden',
      });
    }),
  );

  it(
    'tells an API server that cannot be reached when that lasts, and that it is over',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      const fate = (index: number): Fate => (index < 6 ? failing('unreachable') : {});
      const election = replica(lease, 'a', { fate });
      // Failures from 2 ms on; the first after 10 s is the one of 12,010 ms.
      expectObservable(reasons(election), '20s !').toBe('n 12009ms u 6006ms n', {
        n: '',
        u: 'LeaseUnavailable',
      });
    }),
  );

  it(
    'waits as long as the server asks, but for no more than two retry periods',
    marbles(({ expectObservable }) => {
      const lease = new ModelLease();
      const waits = [4_000, 3_600_000];
      const fate = (index: number): Fate => {
        const retryAfterMs = waits[index];
        if (retryAfterMs === undefined) return {};
        return { error: new KubeError('too-many-requests', 'slow down', { retryAfterMs }) };
      };
      expectObservable(terms(replica(lease, 'a', { fate })), '20s !').toBe('n 14008ms 1', {
        n: 'no',
        1: '1',
      });
    }),
  );

  it(
    'an answer that is no Lease is told and changes nothing',
    marbles(({ expectObservable }) => {
      const client = { ...new ModelLease().client(), request: () => of('<html>') };
      const election = replica(new ModelLease(), 'a', { client });
      expectObservable(terms(election), '20s !').toBe('n', { n: 'no' });
      expectObservable(reasons(election), '20s !').toBe('n 11999ms u', {
        n: '',
        u: 'LeaseUnavailable',
      });
    }),
  );
});

describe('the orderly end', () => {
  it(
    'R13, S18: the Lease is given back when the run has ended, and another replica leads within one retry period',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      // The run goes on for 500 ms after it was told to end, as work in flight does.
      const run$ = cold('10s a 499ms (b|)');
      const first$ = underElection(
        (release$) => replica(lease, 'a', { release$ }),
        () => run$,
      );
      const second = replica(lease, 'b', { random: () => 0.999 });
      expectObservable(first$).toBe('10s a 499ms b 3ms |');
      expectObservable(terms(second), '20s !').toBe('n 11260ms 2', { n: 'no', 2: '2' });
      flush();
      expect(lease.writes).toContain(' 1');
    }),
  );

  it(
    'releases a Lease whose taking was in flight, without an answer yet',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      const fate = (index: number): Fate => (index === 1 ? { lost: 'answer' } : {});
      const release$ = cold('100ms r');
      expectObservable(terms(replica(lease, 'a', { release$, fate }))).toBe('n 103ms |', {
        n: 'no',
      });
      flush();
      expect(lease.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
      expect(lease.epoch).toBe('1');
    }),
  );

  it(
    'leaves the Lease of another alone',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      lease.edit({ epoch: '3', spec: held('b') });
      const release$ = cold('100ms r');
      expectObservable(terms(replica(lease, 'a', { release$ }))).toBe('n 101ms |', { n: 'no' });
      flush();
      expect(lease.writes).toStrictEqual(['b 3']);
    }),
  );

  it(
    'ends without the Lease given back when the server does not answer, and says so',
    marbles(({ cold, expectObservable }) => {
      const lease = new ModelLease();
      const fate = (index: number): Fate => (index > 1 ? { lost: 'request' } : {});
      const election = replica(lease, 'a', { release$: cold('100ms r'), fate });
      expectObservable(terms(election)).toBe('n 4ms 1 94ms n 2999ms |', { n: 'no', 1: '1' });
      expectObservable(reasons(election)).toBe('n 3099ms (o|)', { n: '', o: 'LeaseNotReleased' });
    }),
  );

  it(
    'an error of the run is passed on after the Lease was given back',
    marbles(({ cold, expectObservable, flush }) => {
      const lease = new ModelLease();
      const first$ = underElection(
        (release$) => replica(lease, 'a', { release$ }),
        () => cold('10ms #'),
      );
      expectObservable(first$).toBe('14ms #');
      flush();
      expect(lease.spec.holderIdentity).toBe('');
    }),
  );

  it(
    'the hard stop writes nothing: the Lease runs out',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      const first$ = underElection(
        (release$) => replica(lease, 'a', { release$ }),
        () => NEVER,
      );
      expectObservable(first$, '100ms !').toBe('');
      expectObservable(terms(replica(lease, 'b')), '40s !').toBe('n 33029ms 2', {
        n: 'no',
        2: '2',
      });
      flush();
      expect(lease.writes[0]).toBe('a 1');
    }),
  );

  it(
    'one election serves both of its streams and ends with its last subscriber',
    marbles(({ expectObservable, flush }) => {
      const lease = new ModelLease();
      const election = replica(lease, 'a');
      expectObservable(terms(election), '100ms !').toBe('n 4ms 1', { n: 'no', 1: '1' });
      expectObservable(
        merge(election.problems$, EMPTY).pipe(map((list) => list.length)),
        '5s !',
      ).toBe('n', { n: 0 });
      flush();
      expect(lease.writes).toStrictEqual(['a 1', 'a 1']);
    }),
  );
});
