import { of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { marbles } from '../../support/marbles.ts';
import type { ModelAgent } from '../../support/model-agent.ts';
import {
  applied,
  clientOf,
  configured,
  model,
  portsWith,
  replaced,
  server,
  thing,
  told,
  watching,
} from '../../support/world.ts';

const lead = (epoch: number) => ({ leading: true as const, epoch });

describe('a new term', () => {
  it(
    'R13: claims every pod at once and reloads none, so that the former leader is fenced off',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = new Map<string, ModelAgent>([['p1', model()]]);
      const ports = portsWith({
        resources: watching(cold('l', { l: replaced(thing('Server', 's')) })),
        config$: configured(),
        leader$: cold('x 499ms y', { x: lead(1), y: lead(2) }),
        agents: clientOf(agents),
      });
      // The former leader has heard nothing of the new term.
      const former = portsWith({
        resources: watching(
          cold('l 699ms a', { l: replaced(thing('Server', 's')), a: server('a') }),
        ),
        config$: configured(),
        leader$: of(lead(1)),
        agents: clientOf(agents),
      });
      expectObservable(applied(ports), '2s !').toBe('2ms a 499ms b', {
        a: 'p1 reload |s',
        b: 'p1 noop |s',
      });
      expectObservable(
        told(
          former,
          'ApplyFailed',
          ({ cause, highestEpoch }) => `${cause} ${String(highestEpoch)}`,
        ),
        '1s !',
      ).toBe('701ms f', { f: 'stale-epoch 2' });
      flush();
      expect(agents.get('p1')?.reloads).toHaveLength(1);
    }),
  );

  it(
    'R13: whose epoch is too low learns so at once; a raised one applies without a reload',
    marbles(({ cold, expectObservable, flush }) => {
      const agents = new Map<string, ModelAgent>([['p1', model()]]);
      const servers$ = cold('l 2999ms a', { l: replaced(thing('Server', 's')), a: server('a') });
      const ports = portsWith({
        resources: watching(servers$),
        config$: configured(),
        leader$: cold('x 499ms y 499ms z', { x: lead(7), y: lead(3), z: lead(8) }),
        agents: clientOf(agents),
      });
      expectObservable(
        told(ports, 'ApplyFailed', ({ highestEpoch }) => String(highestEpoch)),
        '4s !',
      ).toBe('502ms f', { f: '7' });
      expectObservable(
        applied({ ...ports, agents: clientOf(new Map([['p1', model()]])) }),
        '4s !',
      ).toBe('2ms a 999ms b 1998ms c', {
        a: 'p1 reload |s',
        b: 'p1 noop |s',
        c: 'p1 runtime |a s',
      });
      flush();
      expect(agents.get('p1')?.reloads).toHaveLength(1);
    }),
  );
});
