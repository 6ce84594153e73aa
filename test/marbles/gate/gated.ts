/** A controller in virtual time whose gate decides alone: nobody looks for who is at fault. */
import { concatWith, NEVER, type Observable, of } from 'rxjs';
import type { Ports } from '../../../src/ports.ts';
import type { Render } from '../../../src/render/render.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import type { ModelAgent } from '../../support/model-agent.ts';
import {
  clientOf,
  configured,
  model,
  namesIn,
  passed,
  podSet,
  portsWith,
  refused,
  replaced,
  thing,
  verdictAfter,
  watching,
} from '../../support/world.ts';

/** The checker refuses what holds a thing whose name ends in bad. */
export const noBad = (render: Render) =>
  namesIn(render).includes('bad') ? refused('unknown keyword') : passed;

/** One server that stays. */
export const one$ = of(replaced(thing('Server', 's'))).pipe(concatWith(NEVER));

/** Agents by name; each answers after a millisecond unless the test says so. */
export const fleetOf = (...names: readonly string[]): ReadonlyMap<string, ModelAgent> =>
  new Map(names.map((name) => [name, model()]));

/** What {@link gated} is made of; the rest has defaults. */
export interface Gated extends Partial<Ports> {
  readonly fleet: ReadonlyMap<string, ModelAgent>;
  readonly routes$?: Observable<WatchEvent>;
  readonly servers$?: Observable<WatchEvent>;
}

/** Ports over this fleet. Checks take 50 ms. */
export const gated = ({ fleet, routes$, servers$ = one$, ...ports }: Gated): Ports =>
  portsWith({
    resources: watching(servers$, routes$),
    config$: configured(),
    pods$: of(podSet(...fleet.keys())),
    agents: clientOf(fleet),
    check: verdictAfter(50, noBad),
    searchCheck: () => NEVER,
    ...ports,
  });

/** The modes of what an agent took. */
export const modesOf = (agent: ModelAgent | undefined) =>
  agent?.applied.map(({ manifest: { mode } }) => mode);
