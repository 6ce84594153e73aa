/** What goes on, and what does not, while the gate holds: the whole controller in virtual time (docs/gate.md). */
import { concatWith, distinctUntilChanged, filter, map, NEVER, of, scan } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { initialStatus, readiness, statusStep } from '../../../src/http/status.ts';
import { controller } from '../../../src/controller.ts';
import type { Verdict } from '../../../src/gate/verdict.ts';
import { marbles } from '../../support/marbles.ts';
import type { ModelAgent } from '../../support/model-agent.ts';
import {
  applied,
  configured,
  deleted,
  namesIn,
  podSet,
  replaced,
  route,
  server,
  thing,
  told,
  upserted,
  verdictAfter,
} from '../../support/world.ts';
import { fleetOf, gated, modesOf, noBad } from './gated.ts';

const INCONCLUSIVE: Verdict = {
  result: 'inconclusive',
  cause: 'the checker was killed by SIGKILL',
};

const kindsOf = (agent: ModelAgent | undefined) =>
  agent?.applied.map(({ manifest }) => manifest.operations.map(({ kind }) => kind).join());

/** Servers that come one after the other, a letter each. */
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('');

describe('a verdict that comes late (G9)', () => {
  it(
    'G9: counts for what was checked: a newer render that is good too is taken back and goes out when it has passed',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      // At 1 s the bad entry, checked until 1.1 s; at 1.02 s it is gone and a good one there.
      const routes$ = cold('l 999ms b 19ms (dg)', {
        l: replaced(),
        b: route('entry-bad'),
        d: deleted('entry-bad'),
        g: route('entry-good'),
      });
      const ports = gated({
        fleet: agents,
        routes$,
        config$: configured({ debounceMs: 1 }),
        check: verdictAfter(100, noBad),
      });
      expectObservable(applied(ports), '3s !').toBe('3ms a 998ms b 19ms c 79ms d 99ms e', {
        a: 'p1 reload |s',
        b: 'p1 runtime entry-bad|s',
        c: 'p1 runtime entry-good|s',
        d: 'p1 runtime |s',
        e: 'p1 runtime entry-good|s',
      });
      flush();
      expect(modesOf(agents.get('p1'))).toStrictEqual(['reload', 'auto', 'auto', 'revert', 'auto']);
    }),
  );

  it(
    'G9: on what was taken back already pins and moves nobody again',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const routes$ = cold('l 999ms b 19ms c', {
        l: replaced(),
        b: route('entry-bad'),
        c: route('entry-bad2'),
      });
      const ports = gated({ fleet: agents, routes$, check: verdictAfter(100, noBad) });
      expectObservable(
        told(ports, 'GateChanged', ({ phase }) => phase),
        '9s !',
      ).toBe('100ms a 999ms h 99ms p', { a: 'open', h: 'holding', p: 'pinned' });
      flush();
      expect(modesOf(agents.get('p1'))).toStrictEqual(['reload', 'auto', 'auto', 'revert']);
    }),
  );
});

describe('the same refused plan again and again (G9)', () => {
  it(
    'G9: is neither checked nor sent again, whatever it alternates with',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const checked: string[] = [];
      const flaps = Array.from({ length: 40 }, () => '99ms d 99ms b').join(' ');
      const routes$ = cold(`l 999ms b ${flaps}`, {
        l: replaced(),
        b: route('entry-bad'),
        d: deleted('entry-bad'),
      });
      const ports = gated({
        fleet: agents,
        routes$,
        check: (render) => {
          checked.push(namesIn(render));
          return verdictAfter(0, noBad)(render);
        },
      });
      expectObservable(
        told(ports, 'Reverting', () => 'r'),
        '30s !',
      ).toBe('1000ms r');
      flush();
      expect(checked).toStrictEqual(['|s', 'entry-bad|s']);
      expect(modesOf(agents.get('p1'))).toStrictEqual(['reload', 'auto', 'revert']);
    }),
  );
});

describe('a check that cannot say (G9)', () => {
  it(
    'G9: holds while open, goes on holding while held, and stays pinned while pinned; none of them takes anything back',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      // Good at 1 s but not to be judged until 9 s; then two bad ones; then good again, at first not to be judged.
      const routes$ = cold('l 999ms g 8999ms b 999ms c 999ms (dex)', {
        l: replaced(),
        g: route('entry-good'),
        b: route('entry-bad'),
        c: route('entry-bad2'),
        d: deleted('entry-bad'),
        e: deleted('entry-bad2'),
        x: route('entry-good2'),
      });
      let asked = 0;
      const cannotSay = new Set([2, 3, 4, 8, 9]);
      const ports = gated({
        fleet: agents,
        routes$,
        config$: configured({ debounceMs: 1 }),
        check: (render) => {
          asked += 1;
          return verdictAfter(0, cannotSay.has(asked) ? () => INCONCLUSIVE : noBad)(render);
        },
      });
      const phases = told(ports, 'GateChanged', ({ phase }) => phase);
      expectObservable(phases, '60s !').toBe('1ms a 999ms h 6999ms a 1999ms h 999ms p 3999ms a', {
        a: 'open',
        h: 'holding',
        p: 'pinned',
      });
      flush();
      expect(modesOf(agents.get('p1'))).toStrictEqual(['reload', 'auto', 'auto', 'revert', 'auto']);
    }),
  );

  it(
    'G9: still lets servers flow, into what went out last',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const servers$ = cold('l 1999ms t', { l: replaced(thing('Server', 's')), t: server('t') });
      const routes$ = cold('l 999ms g', { l: replaced(), g: route('entry-good') });
      const ports = gated({
        fleet: agents,
        routes$,
        servers$,
        check: (render) =>
          verdictAfter(0, namesIn(render).includes('good') ? () => INCONCLUSIVE : noBad)(render),
      });
      expectObservable(
        told(ports, 'GateChanged', ({ phase }) => phase),
        '9s !',
      ).toBe('a 999ms h', { a: 'open', h: 'holding' });
      flush();
      expect(kindsOf(agents.get('p1'))).toStrictEqual(['', 'map_add', 'server_add']);
    }),
  );
});

describe('endpoints (G9)', () => {
  it.each(['holding', 'pinned'])(
    'G9: keep flowing while %s, while the accepted files stay, and are no news at the release',
    (phase) =>
      marbles(({ cold, expectObservable, flush }) => {
        const agents = fleetOf('p1');
        const servers$ = cold('l 3999ms t 999ms u', {
          l: replaced(thing('Server', 's')),
          t: server('t'),
          u: server('u'),
        });
        const values = {
          l: replaced(),
          b: route('entry-bad'),
          c: phase === 'pinned' ? route('entry-bad2') : route('entry-bad'),
          d: deleted('entry-bad'),
          e: deleted('entry-bad2'),
        };
        const routes$ = cold('l 999ms b 999ms c 3999ms (de)', values);
        const ports = gated({
          fleet: agents,
          routes$,
          servers$,
          config$: configured({ debounceMs: 1 }),
          // Held for want of further verdicts, or pinned by them.
          check: verdictAfter(0, (render) =>
            phase === 'holding' && namesIn(render).includes('entry-bad|s ')
              ? INCONCLUSIVE
              : noBad(render),
          ),
        });
        expectObservable(
          told(ports, 'GateChanged', ({ phase: now }) => now),
          '90s !',
        );
        flush();
        const operations = kindsOf(agents.get('p1')) ?? [];
        expect(operations.slice(0, 5)).toStrictEqual([
          '',
          'map_add',
          'map_delete',
          'server_add',
          'server_add',
        ]);
        const [, , reverted, first, second, released] = agents.get('p1')?.applied ?? [];
        expect([first, second].map((sent) => sent?.manifest.planId)).toStrictEqual([
          reverted?.manifest.planId,
          reverted?.manifest.planId,
        ]);
        // What the worker has taken while held needs no operation when its files arrive.
        expect(released?.manifest.operations).toStrictEqual([]);
        expect(agents.get('p1')?.reloads).toHaveLength(1);
      })(),
  );
});

describe('a pod that joins (G12)', () => {
  it(
    'G12: while the first render of the term is refused gets nothing and is not ready, until one passes',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('new');
      const routes$ = cold('l 2999ms d', { l: replaced(thing('Route', 'bad')), d: deleted('bad') });
      const pods$ = cold('o 999ms n', { o: podSet(), n: podSet('new') });
      const ports = gated({ fleet: agents, routes$, pods$ });
      let status = initialStatus('2026-01-01T00:00:00Z', 1);
      const ready$ = controller(ports).pipe(
        map((event) => {
          status = statusStep(status, event);
          return readiness(status).reasons.join();
        }),
        distinctUntilChanged(),
        filter((reasons) => reasons === '' || reasons.startsWith('no apply')),
      );
      // What has passed goes out with the end of the interval that began with what was refused.
      expectObservable(ready$, '9s !').toBe('n 5000ms y', {
        n: 'no apply confirmed by any HAProxy pod yet',
        y: '',
      });
      flush();
      expect(modesOf(agents.get('new'))).toStrictEqual(['reload']);
    }),
  );

  it(
    'G12: while pinned gets the accepted render with the servers of today',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('old', 'new');
      const servers$ = cold('l 2999ms t', { l: replaced(thing('Server', 's')), t: server('t') });
      const routes$ = cold('l 999ms b 999ms c', {
        l: replaced(),
        b: route('entry-bad'),
        c: route('entry-bad2'),
      });
      const pods$ = cold('o 4999ms n', { o: podSet('old'), n: podSet('old', 'new') });
      const ports = gated({ fleet: agents, routes$, servers$, pods$ });
      expectObservable(
        told(ports, 'Applied', ({ pod: { name }, outcome }) => `${name} ${outcome.outcome}`),
        '9s !',
      ).toBe('2ms a 998ms b 49ms b 1949ms b 2000ms cd', {
        a: 'old reload',
        b: 'old runtime',
        c: 'new reload',
        d: 'new runtime',
      });
      flush();
      const plans = [...agents.values()].map(({ roles }) => roles.applied);
      expect(plans[0]).toBe(plans[1]);
      expect(kindsOf(agents.get('new'))).toStrictEqual(['', 'server_add']);
    }),
  );
});

describe('constant change (G9)', () => {
  const versioned = (index: number) =>
    upserted({
      ...thing('Server', LETTERS[index % LETTERS.length] ?? '', String(index)),
      spec: { index },
    });
  /** 50 changes per second for 10 s, each another plan. */
  const changes = Array.from({ length: 10 }, () =>
    LETTERS.slice(0, 50)
      .map((l) => `19ms ${l}`)
      .join(' '),
  );

  const storm = (source: string, cold: Parameters<Parameters<typeof marbles>[0]>[0]['cold']) =>
    cold(`1 ${source}`, {
      ...Object.fromEntries(LETTERS.map((letter) => [letter, server(letter)])),
      1: replaced(thing('Server', 's')),
    }).pipe(map((event, index) => (index === 0 ? event : versioned(index))));

  it(
    'G9: 50 a second starve no check: every check that ends accepts, and a refusal is found while they go on',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = fleetOf('p1');
      const routes$ = cold('l 4999ms b 1999ms d', {
        l: replaced(),
        b: route('entry-bad'),
        d: deleted('entry-bad'),
      });
      const ports = gated({
        fleet: agents,
        routes$,
        servers$: storm(changes.join(' '), cold).pipe(concatWith(NEVER)),
        check: verdictAfter(150, noBad),
      });
      const phases = told(ports, 'GateChanged', ({ phase }) => phase);
      const seen: { readonly phase: string; readonly at: number }[] = [];
      let last = '';
      const acceptances$ = phases.pipe(
        map((phase) => {
          if (phase !== last) seen.push({ phase, at: seen.length });
          last = phase;
          return phase;
        }),
      );
      expectObservable(acceptances$, '11s !');
      flush();
      // Held once, pinned by what comes next, and open again.
      expect(seen.map(({ phase }) => phase)).toStrictEqual(['open', 'holding', 'pinned', 'open']);
      const { applied: sent = [], roles } = agents.get('p1') ?? {};
      expect(sent.filter(({ manifest }) => manifest.mode === 'revert').length).toBeGreaterThan(0);
      // While held, the changed servers went on as operations.
      const held = sent.filter(({ at }) => at > 5_600 && at < 7_000);
      expect(held.length).toBeGreaterThan(50);
      expect(new Set(held.map(({ manifest }) => manifest.planId)).size).toBe(1);
      expect(roles?.applied).not.toBe(held[0]?.manifest.planId);
    }),
  );

  it(
    'G9: 50 a second are accepted at the pace of the checks',
    marbles(({ cold, expectObservable }) => {
      const agents = fleetOf('p1');
      const ports = gated({
        fleet: agents,
        servers$: storm(changes.join(' '), cold).pipe(concatWith(NEVER)),
        routes$: of(replaced()).pipe(concatWith(NEVER)),
        check: verdictAfter(150, noBad),
      });
      const count$ = told(ports, 'Accepted', ({ render }) => render.plan.id).pipe(
        scan((count) => count + 1, 0),
        filter((count) => count % 10 === 0),
      );
      // A check of 150 ms, a pause of 150 ms.
      expectObservable(count$, '10s !').toBe('2850ms a 2999ms b 2999ms c', { a: 10, b: 20, c: 30 });
    }),
  );
});
