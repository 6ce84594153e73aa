/** The gate and the leader term: the whole controller in virtual time (docs/gate.md). */
import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { marbles } from '../../support/marbles.ts';
import {
  applied,
  namesIn,
  replaced,
  route,
  server,
  thing,
  told,
  verdictAfter,
} from '../../support/world.ts';
import { fleetOf, gated, modesOf, noBad } from './gated.ts';

const lead = (epoch: number) => ({ leading: true, epoch }) as const;
const follow = { leading: false } as const;

describe('leadership that is lost (G10)', () => {
  it(
    'G10: in the middle of a check cancels it: no verdict, no revert, and the next term asks again',
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const agents = fleetOf('p1');
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      const leader$ = cold('x 1029ms y 999ms z', { x: lead(1), y: follow, z: lead(2) });
      const never$ = cold<never>('-');
      let asked = 0;
      const ports = gated({
        fleet: agents,
        routes$,
        leader$,
        check: (render) => {
          if (!namesIn(render).includes('bad')) return verdictAfter(0, noBad)(render);
          asked += 1;
          return asked === 1 ? never$ : verdictAfter(50, noBad)(render);
        },
      });
      expectObservable(
        told(ports, 'Reverting', () => 'r'),
        '9s !',
      ).toBe('2080ms r');
      expectSubscriptions(never$.subscriptions).toBe('1s ^ 29ms !');
      flush();
      const epochs = agents.get('p1')?.applied.map(({ manifest: { epoch } }) => epoch);
      expect(epochs).toStrictEqual([1, 1, 2, 2]);
    }),
  );

  it(
    'G10: while holding forgets what is refused; the next term lets it out, is told so again, and goes back to what the pod knows to be good',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      const leader$ = cold('x 4999ms z', { x: lead(1), z: lead(2) });
      const ports = gated({ fleet: agents, routes$, leader$ });
      expectObservable(applied(ports), '30s !').toBe('2ms a 998ms b 49ms c 3951ms b 47ms c', {
        a: 'p1 reload |s',
        b: 'p1 runtime entry-bad|s',
        c: 'p1 runtime |s',
      });
      flush();
      expect(modesOf(agents.get('p1'))).toStrictEqual([
        'reload',
        'auto',
        'revert',
        'auto',
        'revert',
      ]);
      expect(agents.get('p1')?.reloads).toHaveLength(1);
    }),
  );
});

describe('a term whose first check cannot say (G9)', () => {
  it(
    'G9: holds without a reload what pods hold by operations of the term before, and servers flow on',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const servers$ = cold('l 499ms t 4499ms u', {
        l: replaced(thing('Server', 's')),
        t: server('t'),
        u: server('u'),
      });
      const leader$ = cold('x 999ms z', { x: lead(1), z: lead(2) });
      const ports = gated({
        fleet: agents,
        servers$,
        leader$,
        check: verdictAfter(0, () => ({ result: 'inconclusive', cause: 'no binary' })),
      });
      expectObservable(
        told(ports, 'Applied', ({ outcome: { outcome } }) => outcome),
        '30s !',
      ).toBe('2ms a 498ms b 501ms c 3997ms b', { a: 'reload', b: 'runtime', c: 'files' });
      flush();
      expect(agents.get('p1')?.reloads).toHaveLength(1);
    }),
  );
});

describe('a term whose first render is refused (G9)', () => {
  it(
    'G9: takes pods back to the tree that they know to be good, keeps the servers of today, and lets them flow on',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const servers$ = cold('l 499ms t 4499ms u', {
        l: replaced(thing('Server', 's')),
        t: server('t'),
        u: server('u'),
      });
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      // The next leader comes after server t and with the bad entry.
      const leader$ = cold('x 699ms y 999ms z', { x: lead(1), y: follow, z: lead(2) });
      const ports = gated({ fleet: agents, routes$, servers$, leader$, searchCheck: () => NEVER });
      expectObservable(
        told(ports, 'GateChanged', ({ phase }) => phase),
        '30s !',
      );
      flush();
      const sent = agents
        .get('p1')
        ?.applied.map(({ manifest }) =>
          [manifest.mode, ...manifest.operations.map(({ kind }) => kind)].join(' '),
        );
      expect(sent).toStrictEqual([
        'reload',
        'auto server_add',
        'auto map_add',
        'revert map_delete',
        'revert server_add',
      ]);
      const { roles, reloads } = agents.get('p1') ?? {};
      expect(roles?.applied).toBe(roles?.lkg);
      expect(reloads).toHaveLength(1);
    }),
  );
});
