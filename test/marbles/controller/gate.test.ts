import { concatWith, NEVER, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Render } from '../../../src/render/render.ts';
import { marbles } from '../../support/marbles.ts';
import {
  applied,
  clientOf,
  configured,
  deleted,
  model,
  namesIn,
  passed,
  podSet,
  portsWith,
  refused,
  replaced,
  route,
  server,
  thing,
  told,
  verdictAfter,
  watching,
} from '../../support/world.ts';

/** The checker refuses what holds a thing named bad. */
const noBad = (render: Render) =>
  namesIn(render).includes('bad') ? refused('unknown keyword') : passed;

describe('gate (G9)', () => {
  it(
    'G9: a refusal reverts exactly the pods on it that have not loaded it, while a newer deployment is queued',
    marbles(({ cold, expectObservable, flush }) => {
      // `entry-bad` is a map entry: runtime commands take it everywhere, HAProxy's checker refuses it 100 ms later. The loaded pod
      // joins while it is out, so its worker was started from it. A route is queued behind the reload interval.
      const servers$ = cold('l', { l: replaced(thing('Server', 's')) });
      const routes$ = cold('l 999ms b 49ms r', {
        l: replaced(),
        b: route('entry-bad'),
        r: route('r'),
      });
      const pods$ = cold('o 1019ms n', { o: podSet('p1', 'p2'), n: podSet('loaded', 'p1', 'p2') });
      const agents = new Map(['p1', 'p2', 'loaded'].map((name) => [name, model()]));
      const ports = portsWith({
        resources: watching(servers$, routes$),
        config$: configured(),
        pods$,
        agents: clientOf(agents),
        check: verdictAfter(100, noBad),
      });
      expectObservable(applied(ports), '4s !').toBe('2ms (ab) 995ms (cd) 17ms e 78ms (fg)', {
        a: 'p1 reload |s',
        b: 'p2 reload |s',
        c: 'p1 runtime entry-bad|s',
        d: 'p2 runtime entry-bad|s',
        e: 'loaded reload entry-bad|s',
        f: 'p1 runtime |s',
        g: 'p2 runtime |s',
      });
      flush();
      const reverts = (name: string) =>
        agents.get(name)?.applied.filter(({ manifest }) => manifest.mode === 'revert').length;
      expect([reverts('p1'), reverts('p2'), reverts('loaded')]).toStrictEqual([1, 1, 0]);
      expect(agents.get('p1')?.reloads).toHaveLength(1);
    }),
  );

  it(
    'G9: checks run one at a time, beside the fan-out, and progress when renders come faster',
    marbles(({ cold, expectObservable, flush }) => {
      let running = 0;
      let most = 0;
      const letters = 'abcdefghijklmnopqrst'.split('');
      const values = Object.fromEntries(letters.map((name) => [name, server(name)]));
      const servers$ = cold(`1 ${letters.map((letter) => `49ms ${letter}`).join(' ')}`, {
        ...values,
        1: replaced(),
      });
      const check = verdictAfter(120, () => {
        running -= 1;
        return passed;
      });
      const agent = model();
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
        check: (render) => {
          running += 1;
          most = Math.max(most, running);
          return check(render);
        },
      });
      // Half of the time at most: a check of 120 ms, a pause of 120 ms.
      const accepted = told(ports, 'GateChanged', ({ accepted: id }) =>
        id === undefined ? 'none' : 'accepted',
      );
      expectObservable(accepted, '1300ms !').toBe('120ms a 239ms a 239ms a 239ms a 239ms a', {
        a: 'accepted',
      });
      flush();
      expect(most).toBe(1);
      expect(agent.applied.length).toBeGreaterThan(15);
    }),
  );

  it(
    'G9: inconclusive holds, reverts nothing and retries after 1, 2, 4 … s; a pass releases',
    marbles(({ cold, expectObservable, flush }) => {
      let tries = 0;
      const routes$ = cold('l 8999ms r', { l: replaced(), r: route('r') });
      const agent = model();
      const ports = portsWith({
        resources: watching(of(replaced(thing('Server', 's'))).pipe(concatWith(NEVER)), routes$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
        check: verdictAfter(0, () => {
          tries += 1;
          return tries > 1 && tries < 5
            ? { result: 'inconclusive', cause: 'out of memory' }
            : passed;
        }),
      });
      const phases = told(ports, 'GateChanged', ({ phase }) => phase);
      expectObservable(phases, '30s !').toBe('a 8999ms b 6999ms c', {
        a: 'open',
        b: 'holding',
        c: 'open',
      });
      flush();
      // The route went out before its first check; nothing took it back.
      expect(agent.applied.map(({ manifest }) => manifest.mode)).toStrictEqual(['reload', 'auto']);
    }),
  );

  it(
    'G9: endpoints keep flowing to unchanged backends while a refused render is held',
    marbles(({ cold, expectObservable, flush }) => {
      const servers$ = cold('l 3999ms t', { l: replaced(thing('Server', 's')), t: server('t') });
      const routes$ = cold('l 1999ms b 3999ms d', {
        l: replaced(),
        b: route('bad'),
        d: deleted('bad'),
      });
      const agent = model();
      const ports = portsWith({
        resources: watching(servers$, routes$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
        check: verdictAfter(0, noBad),
        // Who is at fault is not found out.
        searchCheck: () => NEVER,
      });
      const phases = told(ports, 'GateChanged', ({ phase }) => phase);
      expectObservable(phases, '30s !').toBe('a 1999ms b 1999ms p 1999ms c', {
        a: 'open',
        b: 'holding',
        p: 'pinned',
        c: 'open',
      });
      flush();
      const operations = agent.applied.map(({ manifest }) =>
        manifest.operations.map(({ kind }) => kind).join(),
      );
      expect(operations).toStrictEqual(['', 'server_add', '']);
      expect(agent.reloads).toHaveLength(1);
    }),
  );

  it(
    'G12: a pod that joins gets the newest dispatched plan at once, whatever the throttle says',
    marbles(({ cold, expectObservable }) => {
      const routes$ = cold('l 999ms a 99ms b', { l: replaced(), a: route('a'), b: route('b') });
      const pods$ = cold('o 1999ms n', { o: podSet('p1'), n: podSet('p1', 'p2') });
      const agents = new Map(['p1', 'p2'].map((name) => [name, model()]));
      const ports = portsWith({
        resources: watching(of(replaced(thing('Server', 's'))).pipe(concatWith(NEVER)), routes$),
        config$: configured(),
        pods$,
        agents: clientOf(agents),
      });
      expectObservable(applied(ports), '3s !').toBe('2ms a 1999ms b', {
        a: 'p1 reload |s',
        b: 'p2 reload |s',
      });
    }),
  );

  it(
    'G12: a pod that joins long after a mixture does not wait for its pace',
    marbles(({ cold, expectObservable }) => {
      // At 1 s a server and a route come together: at once, with the reload 4 s later.
      const servers$ = cold('l 999ms a', { l: replaced(thing('Server', 's')), a: server('t') });
      const routes$ = cold('l 999ms a', { l: replaced(), a: route('r') });
      const pods$ = cold('o 89999ms n', { o: podSet('p1'), n: podSet('p1', 'p2') });
      const ports = portsWith({
        resources: watching(servers$, routes$),
        config$: configured({ debounceMs: 10 }),
        pods$,
        agents: clientOf(new Map(['p1', 'p2'].map((name) => [name, model()]))),
      });
      expectObservable(applied(ports), '91s !').toBe('12ms a 998ms b 88990ms c', {
        a: 'p1 reload |s',
        b: 'p1 scheduled r|s t',
        c: 'p2 reload r|s t',
      });
    }),
  );

  it(
    'G12: a pod that joins while holding gets the accepted plan',
    marbles(({ cold, expectObservable }) => {
      const servers$ = cold('l', { l: replaced(thing('Server', 's')) });
      const routes$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      const pods$ = cold('o 1999ms n', { o: podSet('p1'), n: podSet('p1', 'p2') });
      const agents = new Map(['p1', 'p2'].map((name) => [name, model()]));
      const ports = portsWith({
        resources: watching(servers$, routes$),
        config$: configured(),
        pods$,
        agents: clientOf(agents),
        check: verdictAfter(50, noBad),
      });
      expectObservable(applied(ports), '3s !').toBe('2ms a 998ms b 49ms c 950ms d', {
        a: 'p1 reload |s',
        b: 'p1 runtime entry-bad|s',
        c: 'p1 runtime |s',
        d: 'p2 reload |s',
      });
    }),
  );
});
