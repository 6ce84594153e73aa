/** Objects that cannot be served, in the whole controller in virtual time (R6). */
import { concatWith, defer, EMPTY, NEVER, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/digest.ts';
import type { StoredQuarantine } from '../../../src/quarantine/stored.ts';
import type { Render } from '../../../src/render/render.ts';
import type { Snapshot } from '../../../src/snapshot/snapshot.ts';
import { marbles } from '../../support/marbles.ts';
import {
  applied,
  clientOf,
  configured,
  deleted,
  engine,
  model,
  namesIn,
  passed,
  portsWith,
  refused,
  rendered,
  replaced,
  route,
  thing,
  told,
  upserted,
  verdictAfter,
  watching,
} from '../../support/world.ts';

const has = (snapshot: Snapshot, name: string): boolean =>
  snapshot
    .store('routes')
    .list()
    .some(({ metadata }) => metadata.name === name);

/** Renders fail with a route named bad, and nobody is named. */
const failing = { fails: (snapshot: Snapshot) => (has(snapshot, 'bad') ? 'it fails' : undefined) };

const routesOf = ({ snapshot }: Render): readonly string[] =>
  snapshot
    .store('routes')
    .list()
    .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion ?? ''}`);

const noBad = (render: Render) => (namesIn(render).includes('bad') ? refused('no') : passed);

const one$ = of(replaced(thing('Server', 's'))).pipe(concatWith(NEVER));

const inQuarantine = (ports: Parameters<typeof told>[0]) =>
  told(ports, 'Quarantine', ({ objects }) =>
    objects.map(({ object, stand }) => `${object.name} ${stand}`).join(),
  );

/** Route `bad` as somebody else found it. */
const storedBad = (): StoredQuarantine => {
  const { metadata, apiVersion, kind } = thing('Route', 'bad');
  const object = { apiVersion, kind, namespace: 'default', name: 'bad', uid: metadata.uid ?? '' };
  const cause = { severity: 'error', reason: 'Told', message: 'm', nextStep: '' } as const;
  const refusedVersion = sha256('Route-bad 1');
  return {
    format: 1,
    generation: 'g1',
    objects: [
      {
        ...{ object, stand: 'nothing', foundBy: 'check', cause, reads: [] },
        substitutes: [
          { resource: 'routes', key: 'default/bad', instead: null, refused: refusedVersion },
        ],
      },
    ],
  };
};

describe('quarantine (R6)', () => {
  it(
    'R6: who fails the render is left out, and what came with it is rendered at once',
    marbles(({ cold, expectObservable }) => {
      const routes$ = cold('l 99ms (bgh) 99ms d', {
        l: replaced(),
        b: route('bad'),
        g: route('good'),
        h: route('here'),
        d: deleted('bad'),
      });
      const config$ = configured({ ...failing, debounceMs: 5 });
      const ports = portsWith({ resources: watching(one$, routes$), config$ });
      expectObservable(rendered(ports), '1s !').toBe('5ms a 99ms b 103ms c', {
        a: '|s',
        b: 'good here|s',
        c: 'good here|s',
      });
      expectObservable(inQuarantine(ports), '1s !').toBe('5ms z 99ms a 103ms b', {
        z: '',
        a: 'bad nothing',
        b: '',
      });
    }),
  );

  it(
    'R6: a replica that does not lead leaves out who fails the render too',
    marbles(({ cold, expectObservable }) => {
      const routes$ = cold('l 99ms b', { l: replaced(), b: route('bad') });
      const config$ = configured(failing);
      const leader$ = of({ leading: false } as const).pipe(concatWith(NEVER));
      const ports = portsWith({ resources: watching(one$, routes$), config$, leader$ });
      expectObservable(inQuarantine(ports), '1s !').toBe('z 99ms a', { z: '', a: 'bad nothing' });
    }),
  );

  it(
    'R6 G9: a refusal that names nobody is searched beside the gate, the last accepted version stands in, and the rest goes out',
    marbles(({ cold, expectObservable, flush }) => {
      // Route `bad` is refused, and so is version 2 of `r`, whose version 1 was accepted.
      const routes$ = cold('l 99ms (bgr)', {
        l: replaced(thing('Route', 'r')),
        b: route('bad'),
        g: route('good'),
        r: upserted({ ...thing('Route', 'r', '2'), spec: { is: 'another' } }),
      });
      const isBad = (render: Render) =>
        routesOf(render).some((one) => one === 'bad 1' || one === 'r 2') ? refused('no') : passed;
      const agent = model();
      const ports = portsWith({
        resources: watching(one$, routes$),
        config$: configured({ debounceMs: 5 }),
        agents: clientOf(new Map([['p1', agent]])),
        check: verdictAfter(20, isBad),
      });
      expectObservable(inQuarantine(ports), '9s !').toBe('5ms z 239ms a', {
        z: '',
        a: 'bad nothing,r accepted',
      });
      flush();
      // All of it goes out and is taken back, then what is left of it goes out.
      expect(agent.applied.map(({ manifest }) => manifest.mode)).toStrictEqual(['reload', 'auto']);
    }),
  );

  it(
    'R6: what HAProxy refuses of what nobody is to blame for is held as ever',
    marbles(({ cold, expectObservable }) => {
      const routes$ = cold('l 99ms b', { l: replaced(), b: route('bad') });
      const ports = portsWith({
        resources: watching(one$, routes$),
        config$: configured(),
        check: verdictAfter(0, () => refused('the configuration itself')),
      });
      expectObservable(inQuarantine(ports), '1s !').toBe('z', { z: '' });
      expectObservable(
        told(ports, 'GateChanged', ({ phase }) => phase),
        '1s !',
      ).toBe('a 99ms b', { a: 'holding', b: 'pinned' });
    }),
  );

  it(
    'R6 G10: a new leader starts with what the one before had in quarantine, and sends nothing of it out',
    marbles(({ cold, expectObservable }) => {
      const routes$ = cold('l', { l: replaced(thing('Route', 'bad'), thing('Route', 'r')) });
      const agent = model();
      const ports = portsWith({
        resources: watching(one$, routes$),
        config$: configured(),
        agents: clientOf(new Map([['p1', agent]])),
        check: verdictAfter(0, noBad),
        storedQuarantine$: cold<StoredQuarantine>('---(a|)', { a: storedBad() }),
      });
      expectObservable(applied(ports), '1s !').toBe('-----a', { a: 'p1 reload r|s' });
    }),
  );

  it(
    'R6: a follower learns what its leader has in quarantine, and is told once',
    marbles(({ cold, expectObservable }) => {
      let asked = 0;
      const routes$ = cold('l', { l: replaced(thing('Route', 'bad'), thing('Route', 'r')) });
      const ports = portsWith({
        resources: watching(one$, routes$),
        config$: configured(),
        leader$: of({ leading: false } as const).pipe(concatWith(NEVER)),
        storedQuarantine$: defer(() => {
          asked += 1;
          return asked > 1 ? of(storedBad()) : EMPTY;
        }),
      });
      expectObservable(inQuarantine(ports), '60s !').toBe('z 9999ms a', {
        z: '',
        a: 'bad nothing',
      });
    }),
  );

  it(
    'R6: a new configuration tells that nobody is in quarantine any more',
    marbles(({ cold, expectObservable }) => {
      const routes$ = of(replaced(thing('Route', 'bad'))).pipe(concatWith(NEVER));
      const config$ = cold('a 99ms b', {
        a: { ok: true, engine: engine({ ...failing, renderMs: 0 }) } as const,
        b: { ok: true, engine: engine({ generation: 'g2', renderMs: 0 }) } as const,
      });
      const ports = portsWith({ resources: watching(one$, routes$), config$ });
      expectObservable(inQuarantine(ports), '1s !').toBe('a 99ms b', { a: 'bad nothing', b: '' });
    }),
  );

  it(
    'R6: an object that only the new configuration cannot render does not keep it from taking over',
    marbles(({ cold, expectObservable }) => {
      const routes$ = of(replaced(thing('Route', 'bad'), thing('Route', 'r'))).pipe(
        concatWith(NEVER),
      );
      const config$ = cold('a 99ms b', {
        a: { ok: true, engine: engine({ renderMs: 0 }) } as const,
        b: { ok: true, engine: engine({ ...failing, generation: 'g2', renderMs: 0 }) } as const,
      });
      const ports = portsWith({ resources: watching(one$, routes$), config$ });
      expectObservable(rendered(ports), '1s !').toBe('a 99ms b', { a: 'bad r|s', b: 'r|s' });
    }),
  );
});
