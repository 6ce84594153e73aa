import { map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { marbles } from '../../support/marbles.ts';
import {
  applied,
  clientOf,
  configured,
  model,
  passed,
  podSet,
  portsWith,
  replaced,
  route,
  server,
  thing,
  told,
  upserted,
  verdictAfter,
  watching,
} from '../../support/world.ts';

describe('pacing', () => {
  it(
    'G6: what needs a reload goes at once after quiet, else at the end of the interval, newest only, the last one always',
    marbles(({ cold, expectObservable }) => {
      const routes$ = cold('l 999ms a 999ms b 999ms c 9999ms d', {
        l: replaced(),
        a: route('a'),
        b: route('b'),
        c: route('c'),
        d: route('d'),
      });
      const desired = told(
        portsWith({
          resources: watching(of(replaced(thing('Server', 's'))), routes$),
          config$: configured(),
          agents: clientOf(new Map([['p1', model()]])),
        }),
        'Deploying',
        ({ desired: { target, accepted } }) =>
          `${
            target?.snapshot
              .store('routes')
              .list()
              .map(({ metadata }) => metadata.name)
              .join('') ?? ''
          }${target === accepted ? '' : '?'}`,
      );
      // The first at 0; a, b and c pile up until 5 s, d comes after a quiet interval. `?`: not accepted yet.
      expectObservable(desired, '20s !').toBe('(ab) 4996ms c 7999ms (de)', {
        a: '?',
        b: '',
        c: 'abc',
        d: 'abcd?',
        e: 'abcd',
      });
    }),
  );

  it(
    'G7, T1: what needs no reload goes at once, also while a reload is pending',
    marbles(({ cold, expectObservable }) => {
      const routes$ = cold('l 999ms a', { l: replaced(), a: route('r') });
      const servers$ = cold('l 1999ms b 999ms c', {
        l: replaced(thing('Server', 's')),
        b: server('t'),
        c: server('u'),
      });
      const agent = model();
      const ports = portsWith({
        resources: watching(servers$, routes$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
      });
      expectObservable(applied(ports), '4s !').toBe('2ms a 1998ms b 999ms c', {
        a: 'p1 reload |s',
        b: 'p1 scheduled r|s t',
        c: 'p1 scheduled r|s t u',
      });
    }),
  );

  it(
    'G6: at most one reload per pod and interval, though the pod joins late',
    marbles(({ cold, expectObservable, flush }) => {
      const agent = model();
      const changes = Array.from(
        { length: 40 },
        (_, index) => [`r${String(index)}`, route(`r${String(index)}`)] as const,
      );
      const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN'.split('');
      const values = Object.fromEntries(
        changes.map(([, event], index) => [letters[index] ?? '', event]),
      );
      const routes$ = cold(`0 ${letters.map((letter) => `699ms ${letter}`).join(' ')}`, {
        ...values,
        0: replaced(),
      });
      const pods$ = cold('3s p', { p: podSet('p1') });
      const ports = portsWith({
        resources: watching(of(replaced(thing('Server', 's'))), routes$),
        config$: configured(),
        pods$,
        agents: clientOf(new Map([['p1', agent]])),
      });
      expectObservable(applied(ports), '40s !');
      flush();
      const reloads = agent.reloads;
      expect(reloads.length).toBeGreaterThan(4);
      const gaps = reloads.slice(1).map((at, index) => at - (reloads[index] ?? 0));
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5_000);
      expect(agent.roles.applied).toBe(agent.roles.running);
    }),
  );
});

describe('scheduled reloads', () => {
  it(
    'R5: the result of one that takes long is read when it is there, not with the next drift check',
    marbles(({ cold, expectObservable, flush }) => {
      const agent = model();
      agent.reloadMs = 3_000;
      const routes$ = cold('l 999ms a', { l: replaced(), a: route('r') });
      const ports = portsWith({
        resources: watching(of(replaced(thing('Server', 's'))), routes$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
      });
      const done = told(ports, 'ReloadDone', ({ ok }) => String(ok));
      expectObservable(done, '20s !').toBe('8014ms a', { a: 'true' });
      flush();
    }),
  );
});

describe('agents', () => {
  it(
    'G8: a slow and a dead agent delay no other, and the slow one gets its newest plan last',
    marbles(({ cold, expectObservable, flush }) => {
      const servers$ = cold('l 99ms a 99ms b 99ms c', {
        l: replaced(thing('Server', 's')),
        a: server('a'),
        b: server('b'),
        c: server('c'),
      });
      const [fast, slow] = [model(1), model(150)];
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        pods$: of(podSet('dead', 'fast', 'slow')),
        agents: clientOf(
          new Map([
            ['fast', fast],
            ['slow', slow],
          ]),
        ),
      });
      expectObservable(applied(ports), '2s !').toBe(
        '2ms a 98ms b 99ms c 98ms d e 148ms f 149ms g',
        {
          a: 'fast reload |s',
          b: 'fast runtime |a s',
          c: 'fast runtime |a b s',
          d: 'slow reload |s',
          e: 'fast runtime |a b c s',
          f: 'slow runtime |a b s',
          g: 'slow runtime |a b c s',
        },
      );
      flush();
    }),
  );

  it(
    'G8: an agent whose HAProxy refuses delays no healthy one, and is told with its words',
    marbles(({ cold, expectObservable, flush }) => {
      const servers$ = cold('l 99ms a', { l: replaced(thing('Server', 's')), a: server('a') });
      const [failing, healthy] = [model(), model()];
      failing.refuses = 'cannot bind to port 80';
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        pods$: of(podSet('failing', 'healthy')),
        agents: clientOf(
          new Map([
            ['failing', failing],
            ['healthy', healthy],
          ]),
        ),
      });
      const failures = told(ports, 'ApplyFailed', ({ pod: { name }, cause, message }) =>
        [name, cause, message].join(': '),
      );
      expectObservable(applied(ports), '1200ms !').toBe('2ms (ab) 95ms c 902ms d', {
        a: 'failing rejected |s',
        b: 'healthy reload |s',
        c: 'healthy runtime |a s',
        d: 'failing rejected |a s',
      });
      expectObservable(failures, '1200ms !').toBe('2ms f 1001ms f', {
        f: 'failing: rejected: cannot bind to port 80',
      });
      flush();
    }),
  );

  it(
    'tells pods that are gone, and starts afresh with one that comes back',
    marbles(({ cold, expectObservable }) => {
      const pods$ = cold('a 99ms b 99ms a', { a: podSet('p1', 'p2'), b: podSet('p1') });
      const ports = portsWith({
        resources: watching(of(replaced(thing('Server', 's')))),
        config$: configured(),
        pods$,
        agents: clientOf(new Map(['p1', 'p2'].map((name) => [name, model()]))),
      });
      expectObservable(
        told(ports, 'PodGone', ({ pod: { name } }) => name),
        '300ms !',
      ).toBe('100ms g', { g: 'p2' });
      expectObservable(
        told(ports, 'UpToDate', ({ pod: { name } }) => name),
        '300ms !',
      ).toBe('201ms u', { u: 'p2' });
    }),
  );

  it(
    'reports an unreachable agent as a value and comes back to it with growing waits',
    marbles(({ cold, expectObservable }) => {
      const agent = model();
      agent.unreachable = 'connection refused';
      const servers$ = cold('l', { l: replaced(thing('Server', 's')) });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
      });
      const failed = told(
        ports,
        'ApplyFailed',
        ({ cause, retryInMs }) => `${cause} ${String(retryInMs)}`,
      );
      expectObservable(failed, '8s !').toBe('1ms a 1000ms a 1000ms b 2000ms c', {
        a: 'unreachable 1000',
        b: 'unreachable 2000',
        c: 'unreachable 4000',
      });
    }),
  );

  it(
    'R15: asks a dead agent at most once a second under 50 changes per second, and brings the newest when it is back',
    marbles(({ cold, expectObservable, flush }) => {
      const agent = model();
      agent.unreachable = 'connection refused';
      const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('');
      const values = Object.fromEntries(letters.map((name) => [name, server(name)]));
      const changes = letters.map((letter) => `19ms ${letter}`).join(' ');
      const servers$ = cold(`0 ${changes} ${changes} ${changes}`, { ...values, 0: replaced() });
      cold('2500ms x').subscribe(() => {
        agent.unreachable = undefined;
      });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
      });
      expectObservable(
        told(ports, 'ApplyFailed', ({ cause }) => cause),
        '5s !',
      ).toBe('1ms f 1000ms f 1000ms f', { f: 'unreachable' });
      flush();
      expect(agent.roles.applied).toBe(agent.roles.running);
    }),
  );

  it(
    'G11: drift checks are not lost under constant change',
    marbles(({ cold, expectObservable, flush }) => {
      const agent = model(95);
      const letters = 'abcdefghijklmnopqrstuvwxyz'.split('');
      const values = Object.fromEntries(letters.map((name) => [name, server(name)]));
      const second = letters.map((letter) => `39ms ${letter}`).join(' ');
      const minutes = Array.from({ length: 200 }, () => second).join(' ');
      const servers$ = cold(`0 ${minutes}`, { ...values, 0: replaced() });
      const versioned = servers$.pipe(
        map((event, index) =>
          event.type === 'Upserted'
            ? upserted(thing('Server', event.object.metadata.name, String(index)))
            : event,
        ),
      );
      const ports = portsWith({
        resources: watching(versioned),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
      });
      expectObservable(
        told(ports, 'DriftFound', ({ kind }) => kind),
        '200s !',
      ).toBe('');
      flush();
      // The first look, and one for each of three intervals.
      expect(agent.verifies).toBe(4);
    }),
  );

  it(
    'G11: each drift interval every agent re-hashes; a mismatch is repaired, a match writes nothing',
    marbles(({ cold, expectObservable, flush }) => {
      const agent = model();
      cold('90s t', { t: 0 }).subscribe(() => agent.tampered.set('haproxy.cfg', 'other'));
      const servers$ = cold('l', { l: replaced(thing('Server', 's')) });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
        check: verdictAfter(0, () => passed),
      });
      expectObservable(applied(ports), '241s !').toBe('2ms a 119999ms b', {
        a: 'p1 reload |s',
        b: 'p1 noop |s',
      });
      flush();
      expect(agent.verifies).toBe(5);
      expect(agent.applied).toHaveLength(2);
    }),
  );
});
