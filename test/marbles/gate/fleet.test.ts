/** Whom a refusal takes back, and when: the whole controller in virtual time (docs/gate.md). */
import { describe, expect, it } from 'vitest';
import { marbles } from '../../support/marbles.ts';
import {
  applied,
  configured,
  deleted,
  namesIn,
  replaced,
  route,
  server,
  thing,
  told,
  verdictAfter,
} from '../../support/world.ts';
import { fleetOf, gated, modesOf, noBad } from './gated.ts';

describe('a refusal (G9)', () => {
  it(
    'G9: of what is still on its way to a slow pod takes it back when it has arrived',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('fast', 'slow');
      agents.get('slow')!.latencyMs = 80;
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      expectObservable(applied(gated({ fleet: agents, routes$ })), '3s !').toBe(
        '2ms a 157ms b 840ms c 49ms d 28ms e 79ms f',
        {
          a: 'fast reload |s',
          b: 'slow reload |s',
          c: 'fast runtime entry-bad|s',
          d: 'fast runtime |s',
          e: 'slow runtime entry-bad|s',
          f: 'slow runtime |s',
        },
      );
      flush();
      expect(agents.get('slow')?.reloads).toHaveLength(1);
    }),
  );

  it(
    'G9: leads back without a reload to an accepted render whose servers came by operations',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const servers$ = cold('l 499ms t', { l: replaced(thing('Server', 's')), t: server('t') });
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      expectObservable(applied(gated({ fleet: agents, routes$, servers$ })), '30s !').toBe(
        '2ms a 498ms b 499ms c 49ms b',
        { a: 'p1 reload |s', b: 'p1 runtime |s t', c: 'p1 runtime entry-bad|s t' },
      );
      flush();
      expect(agents.get('p1')?.reloads).toHaveLength(1);
    }),
  );

  it(
    'G9: of what waits for its reload cancels that reload, and undoes what has been done in its place',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const servers$ = cold('l 999ms t', { l: replaced(thing('Server', 's')), t: server('t') });
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('bad') });
      const ports = gated({
        fleet: agents,
        routes$,
        servers$,
        config$: configured({ debounceMs: 1 }),
      });
      expectObservable(applied(ports), '30s !').toBe('3ms a 998ms b 49ms c', {
        a: 'p1 reload |s',
        b: 'p1 scheduled bad|s t',
        // The new server is good: it stays.
        c: 'p1 files |s',
      });
      flush();
      expect(agents.get('p1')?.reloads).toHaveLength(1);
      expect(modesOf(agents.get('p1'))).toStrictEqual(['reload', 'auto', 'revert']);
    }),
  );

  it(
    'G9: leaves a pod alone that loaded the plan while the revert was on its way',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      agents.get('p1')!.latencyMs = 300;
      const servers$ = cold('l 999ms t', { l: replaced(thing('Server', 's')), t: server('t') });
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('bad') });
      const ports = gated({
        fleet: agents,
        routes$,
        servers$,
        config$: configured({ debounceMs: 1 }),
        // Shortly before the reload, which comes 5 s after the first one.
        check: (render) => verdictAfter(namesIn(render).includes('bad') ? 4_450 : 0, noBad)(render),
      });
      expectObservable(
        told(ports, 'Reverting', ({ refused: ids }) => String(ids.length)),
        '30s !',
      ).toBe('5451ms r', { r: '1' });
      flush();
      const { reloads = [], conflicts, roles } = agents.get('p1') ?? {};
      expect(conflicts).toStrictEqual(['target_running']);
      expect(reloads).toHaveLength(2);
      expect(roles?.applied).toBe(roles?.running);
      expect(modesOf(agents.get('p1'))).not.toContain('revert');
    }),
  );

  it(
    'G9: reaches a pod that could not be reached as soon as it answers again',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('away', 'there');
      const away = agents.get('away')!;
      cold('1030ms x 7000ms y').subscribe((value) => {
        away.unreachable = value === 'x' ? 'no route to host' : undefined;
      });
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      const ports = gated({ fleet: agents, routes$ });
      const taken = told(ports, 'Applied', ({ pod: { name }, reverted }) => (reverted ? name : ''));
      expectObservable(taken, '30s !').toBe('2ms (pp) 995ms (pp) 46ms t 8004ms a', {
        p: '',
        t: 'there',
        a: 'away',
      });
      flush();
      expect(away.roles.applied).toBe(agents.get('there')?.roles.applied);
      expect(away.reloads).toHaveLength(1);
    }),
  );

  it(
    'G9: a pod that was away during the revert and the release gets what was released, without a reload',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('away', 'there');
      const away = agents.get('away')!;
      cold('1030ms x 7000ms y').subscribe((value) => {
        away.unreachable = value === 'x' ? 'no route to host' : undefined;
      });
      const routes$ = cold('l 999ms b 1999ms d', {
        l: replaced(),
        b: route('entry-bad'),
        d: deleted('entry-bad'),
      });
      expectObservable(
        told(gated({ fleet: agents, routes$ }), 'GateChanged', ({ phase }) => phase),
        '30s !',
      ).toBe('50ms a 999ms h 1949ms a', { a: 'open', h: 'holding' });
      flush();
      expect(away.roles).toMatchObject({ applied: agents.get('there')?.roles.applied });
      expect(away.reloads).toHaveLength(1);
    }),
  );

  it.each([
    ['3.4.0', ['new', 'old']],
    ['3.4.9', ['new']],
    ['3.0.11', ['old']],
  ])('G9: by a checker of HAProxy %s takes back pods %s', (checkerVersion, back) =>
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('new', 'old');
      agents.get('old')!.version = back.length === 2 ? '3.4.1' : '3.0.2';
      const servers$ = cold('l 1999ms t', { l: replaced(thing('Server', 's')), t: server('t') });
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      const ports = gated({ fleet: agents, routes$, servers$, checkerVersion });
      expectObservable(
        told(ports, 'Applied', ({ reverted }) => String(reverted)),
        '60s !',
      );
      flush();
      const reverts = [...agents].filter(([, agent]) => modesOf(agent)?.includes('revert'));
      expect(reverts.map(([name]) => name)).toStrictEqual(back);
      // Whoever stays on the plan still gets the servers of today.
      const servers = [...agents.values()].map((agent) =>
        agent.applied.filter(({ manifest }) =>
          manifest.operations.some(({ kind }) => kind === 'server_add'),
        ),
      );
      expect(servers.map(({ length }) => length)).toStrictEqual([1, 1]);
    })(),
  );
});
