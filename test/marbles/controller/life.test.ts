import {
  concatWith,
  defer,
  distinctUntilChanged,
  filter,
  ignoreElements,
  map,
  NEVER,
  of,
  tap,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { controller } from '../../../src/controller.ts';
import { observedBy } from '../../../src/notifications.ts';
import { type ConfigEvent, isType, type Notification, type Observer } from '../../../src/ports.ts';
import { marbles } from '../../support/marbles.ts';
import {
  applied,
  clientOf,
  configured,
  engine,
  model,
  portsWith,
  verdictAfter,
  route,
  refused,
  passed,
  namesIn,
  rendered,
  replaced,
  server,
  thing,
  told,
  upserted,
  watching,
} from '../../support/world.ts';

const lead = (epoch: number) => ({ leading: true as const, epoch });
const follow = { leading: false as const };

describe('leadership', () => {
  it(
    'G10, R13, S39: nothing goes out after leadership is lost; gained, the newest render goes at once',
    marbles(({ cold, expectObservable, flush }) => {
      const servers$ = cold('l 999ms a 999ms b', {
        l: replaced(thing('Server', 's')),
        a: server('a'),
        b: server('b'),
      });
      const agent = model();
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        leader$: cold('x 499ms y 2999ms z', { x: lead(1), y: follow, z: lead(2) }),
        agents: clientOf(new Map([['p1', agent]])),
      });
      expectObservable(applied(ports), '9s !').toBe('2ms a 3500ms b', {
        a: 'p1 reload |s',
        b: 'p1 runtime |a b s',
      });
      flush();
      expect(agent.applied.map(({ manifest }) => manifest.epoch)).toStrictEqual([1, 2]);
    }),
  );

  it(
    'G10: an apply in flight is given up when leadership is lost',
    marbles(({ cold, expectObservable, flush }) => {
      const agent = model(300);
      const ports = portsWith({
        resources: watching(cold('l', { l: replaced(thing('Server', 's')) })),
        config$: configured(),
        leader$: cold('x 499ms y', { x: lead(1), y: follow }),
        agents: clientOf(new Map([['p1', agent]])),
      });
      expectObservable(applied(ports), '9s !').toBe('');
      flush();
      expect(agent.applied).toStrictEqual([]);
    }),
  );

  it(
    'S3: a follower renders, so that its cells are warm',
    marbles(({ cold, expectObservable }) => {
      const ports = portsWith({
        resources: watching(cold('l 99ms a', { l: replaced(), a: server('a') })),
        config$: configured(),
        leader$: of(follow).pipe(concatWith(NEVER)),
      });
      expectObservable(rendered(ports), '1s !').toBe('a 99ms b', { a: '|', b: '|a' });
    }),
  );
});

describe('configuration', () => {
  it(
    'G13: a valid new one takes over without a gap, the old one goes on until it has rendered',
    marbles(({ cold, expectObservable }) => {
      // The new engine needs 500 ms for its first render; a change meanwhile still flows by the old one.
      const config$ = cold<ConfigEvent>('o 999ms n', {
        o: { ok: true, engine: engine({ generation: 'old', renderMs: 0 }) },
        n: { ok: true, engine: engine({ generation: 'new', renderMs: 500 }) },
      });
      const changes$ = cold('1199ms a', { a: server('a') });
      const ports = portsWith({
        resources: {
          // Each subscription starts with the newest list, as every watch does.
          watch: ({ name }) =>
            name === 'servers'
              ? of(replaced(thing('Server', 's'))).pipe(concatWith(NEVER))
              : of(replaced()).pipe(
                  concatWith(changes$.pipe(map(() => upserted(thing('Route', 'r')))), NEVER),
                ),
          problems$: NEVER,
        },
        config$,
      });
      const generations = told(
        ports,
        'Rendered',
        ({ render }) => `${render.generation} ${String(render.snapshot.store('routes').size)}`,
      );
      expectObservable(generations, '4s !').toBe('a 1198ms b 300ms c 1198ms d', {
        a: 'old 0',
        b: 'old 1',
        c: 'new 0',
        d: 'new 1',
      });
    }),
  );

  it(
    'G9, G13: new pacing settings keep what the gate knows: a refused plan does not go out again',
    marbles(({ cold, expectObservable, flush }) => {
      const paced = (minDeploymentIntervalMs: number): ConfigEvent => ({
        ok: true,
        engine: engine({ renderMs: 0, settings: { minDeploymentIntervalMs } }),
      });
      const first$ = cold('l 999ms b', { l: replaced(), b: route('entry-bad') });
      const second$ = cold('l', { l: replaced(thing('Route', 'entry-bad')) });
      const watches = [first$, second$];
      const routes$ = defer(() => watches.shift() ?? NEVER);
      const agent = model();
      const ports = portsWith({
        resources: watching(of(replaced(thing('Server', 's'))).pipe(concatWith(NEVER)), routes$),
        config$: cold('a 2999ms b', { a: paced(5_000), b: paced(1_000) }),
        agents: clientOf(new Map([['p1', agent]])),
        check: verdictAfter(50, (render) =>
          namesIn(render).includes('bad') ? refused('unknown keyword') : passed,
        ),
      });
      expectObservable(applied(ports), '8s !').toBe('2ms a 998ms b 49ms c', {
        a: 'p1 reload |s',
        b: 'p1 runtime entry-bad|s',
        c: 'p1 runtime |s',
      });
      flush();
      expect(agent.reloads).toHaveLength(1);
    }),
  );

  it(
    'G13: an invalid one does not stop a valid one that is still warming up',
    marbles(({ cold, expectObservable }) => {
      const problem = {
        severity: 'error',
        reason: 'X',
        message: 'spec.nope',
        nextStep: '',
      } as const;
      const config$ = cold<ConfigEvent>('o 99ms x', {
        o: { ok: true, engine: engine({ renderMs: 500 }) },
        x: { ok: false, problems: [problem] },
      });
      const ports = portsWith({
        resources: watching(cold('l', { l: replaced(thing('Server', 's')) })),
        config$,
      });
      expectObservable(rendered(ports), '2s !').toBe('500ms a', { a: '|s' });
    }),
  );

  it(
    'G13: an invalid one changes nothing and is reported',
    marbles(({ cold, expectObservable }) => {
      const problem = {
        severity: 'error',
        reason: 'UnknownField',
        message: 'spec.nope',
        nextStep: '',
      } as const;
      const config$ = cold<ConfigEvent>('o 99ms x', {
        o: { ok: true, engine: engine({ renderMs: 0 }) },
        x: { ok: false, problems: [problem] },
      });
      const servers$ = cold('l 199ms a', { l: replaced(thing('Server', 's')), a: server('a') });
      const ports = portsWith({ resources: watching(servers$), config$ });
      expectObservable(
        told(ports, 'ConfigRefused', ({ problems }) => problems[0]?.message ?? ''),
        '1s !',
      ).toBe('100ms x', { x: 'spec.nope' });
      expectObservable(rendered(ports), '1s !').toBe('a 199ms b', { a: '|s', b: '|a s' });
    }),
  );
});

describe('shutdown', () => {
  it(
    'G14: the sources complete, work in flight ends, then everything completes',
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const servers$ = cold('l 999ms a', { l: replaced(thing('Server', 's')), a: server('t') });
      const agent = model(100);
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
        shutdown$: cold('1050ms x'),
      });
      expectObservable(applied(ports)).toBe('200ms a 899ms (b|)', {
        a: 'p1 reload |s',
        b: 'p1 runtime |s t',
      });
      expectSubscriptions(servers$.subscriptions).toBe('^ 1049ms !');
      flush();
      expect(agent.roles.workerOperations).toBe(1);
    }),
  );

  it(
    'G14: a hard stop cancels everything',
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const servers$ = cold('l', { l: replaced(thing('Server', 's')) });
      const agent = model(100);
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
      });
      expectObservable(applied(ports), '150ms !').toBe('');
      expectSubscriptions(servers$.subscriptions).toBe('^ 149ms !');
      flush();
      expect(agent.applied).toStrictEqual([]);
    }),
  );
});

describe('failures and observers', () => {
  it(
    'T2, S42, S43: a failed render reports failed, then completed, and the next change is rendered',
    marbles(({ cold, expectObservable }) => {
      // No object is at fault: it fails without any of them, too.
      const failing = engine({
        renderMs: 0,
        fails: (snapshot) =>
          snapshot
            .store('servers')
            .list()
            .some(({ metadata }) => metadata.name === 'b')
            ? undefined
            : 'no b',
      });
      const servers$ = cold('l 99ms a 99ms b', {
        l: replaced(thing('Server', 's')),
        a: server('a'),
        b: server('b'),
      });
      const ports = portsWith({
        resources: watching(servers$),
        config$: of({ ok: true, engine: failing }),
      });
      const types = new Set<Notification['type']>([
        'Rendered',
        'RenderFailed',
        'ReconciliationCompleted',
      ]);
      const told$ = controller(ports).pipe(
        map(({ type }) => type),
        filter((type) => types.has(type)),
      );
      expectObservable(told$, '1s !').toBe('(cb) 96ms (cb) 96ms (ab)', {
        a: 'Rendered',
        b: 'ReconciliationCompleted',
        c: 'RenderFailed',
      });
    }),
  );

  it(
    'S56: an observer of its own joins without touching an existing file',
    marbles(({ cold, expectObservable }) => {
      const counting: Observer = ({ snapshot$ }) =>
        snapshot$.pipe(
          map((snapshot): Notification => ({
            type: 'GateChanged',
            phase: 'open',
            accepted: `objects ${String(snapshot.store('servers').size)}`,
          })),
        );
      const servers$ = cold('l 99ms a', { l: replaced(thing('Server', 's')), a: server('a') });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        leader$: of(follow),
        observers: [counting],
      });
      expectObservable(
        told(ports, 'GateChanged', ({ accepted }) => accepted ?? ''),
        '1s !',
      ).toBe('a 99ms b', { a: 'objects 1', b: 'objects 2' });
    }),
  );

  it(
    'S17: what one observer tells is seen by an observer of everything that comes out',
    marbles(({ cold, expectObservable }) => {
      const telling: Observer = ({ snapshot$ }) =>
        snapshot$.pipe(map((): Notification => ({ type: 'Written', kind: 'Test', bytes: 1 })));
      const seen: string[] = [];
      const seeing: Observer = ({ notifications$ }) =>
        notifications$.pipe(
          filter(isType('Written')),
          tap(({ kind }) => seen.push(kind)),
          ignoreElements(),
        );
      const ports = portsWith({
        resources: watching(cold('l', { l: replaced(thing('Server', 's')) })),
        config$: configured(),
        observers: [telling],
      });
      const count$ = controller(ports).pipe(
        observedBy(seeing),
        map(() => seen.length),
        distinctUntilChanged(),
      );
      expectObservable(count$, '1s !').toBe('(nw)', { n: 0, w: 1 });
    }),
  );

  it(
    'S17: an observer that fails is told and left out, the pipeline goes on',
    marbles(({ cold, expectObservable }) => {
      const failing: Observer = ({ snapshot$ }) =>
        snapshot$.pipe(
          map(() => {
            throw new Error('no space left');
          }),
        );
      const servers$ = cold('l 99ms a', { l: replaced(thing('Server', 's')), a: server('a') });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        observers: [failing],
      });
      expectObservable(
        told(ports, 'ObserverFailed', ({ message }) => message),
        '1s !',
      ).toBe('f', {
        f: 'no space left',
      });
      expectObservable(rendered(ports), '1s !').toBe('a 99ms b', { a: '|s', b: '|a s' });
    }),
  );
});
