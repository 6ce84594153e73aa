import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import {
  type Candidate,
  type GateEvent,
  type GateState,
  gateStep,
  initialGate,
  judgementOf,
  REMEMBERED,
  retryMs,
  toDesired,
  wanted,
} from '../../../src/gate/machine.ts';
import type { Verdict } from '../../../src/gate/verdict.ts';

interface Rendered {
  readonly plan: { readonly id: string };
}

/** What HAProxy thinks of a plan is fixed by its id; whether it can be asked is not. */
const truth = (id: string): Verdict =>
  id.startsWith('bad') ? { result: 'refused', message: 'no', problems: [] } : { result: 'passed' };

/** One thing that happens: a render, the slot taking up what is wanted, its check ending, a retry falling due. */
type Happening = { render: string } | { slot: 'start' | 'end' | 'fail' | 'retry' };

const planId = fc.oneof(
  fc.integer({ min: 0, max: 25 }).map((number) => `good${number}`),
  fc.integer({ min: 0, max: 25 }).map((number) => `bad${number}`),
);
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 4, arbitrary: planId.map((render) => ({ render })) },
  { weight: 3, arbitrary: fc.constant({ slot: 'start' as const }) },
  { weight: 3, arbitrary: fc.constant({ slot: 'end' as const }) },
  { weight: 1, arbitrary: fc.constant({ slot: 'fail' as const }) },
  { weight: 1, arbitrary: fc.constant({ slot: 'retry' as const }) },
);
const timeline = fc.array(happening, { maxLength: 120 });

/** A gate with its one slot, and a record of what went out. */
class Simulation {
  state: GateState<Rendered> = initialGate(1);
  before = this.state;
  checking: Candidate<Rendered> | undefined;
  event: GateEvent<Rendered> | undefined;

  happen(what: Happening): void {
    this.event = this.#eventOf(what);
    this.before = this.state;
    if (this.event !== undefined) this.state = gateStep(this.state, this.event);
  }

  /** No more renders, and a checker that works: what remains is to be checked. Returns the number of checks. */
  settle(): number {
    let checks = 0;
    while (checks < 100) {
      this.happen({ slot: 'end' });
      this.happen({ slot: 'retry' });
      this.happen({ slot: 'start' });
      if (this.checking === undefined) return checks;
      checks += 1;
    }
    return checks;
  }

  #eventOf(what: Happening): GateEvent<Rendered> | undefined {
    if ('render' in what) return { type: 'render', render: { plan: { id: what.render } } };
    if (what.slot === 'retry') return { type: 'retry' };
    if (what.slot === 'start') {
      this.checking ??= wanted(this.state);
      return undefined;
    }
    const candidate = this.checking;
    this.checking = undefined;
    if (candidate === undefined) return undefined;
    const failed: Verdict = { result: 'inconclusive', cause: 'killed' };
    const verdict = what.slot === 'fail' ? failed : truth(candidate.render.plan.id);
    return { type: 'checked', candidate, verdict };
  }
}

/** Plays a timeline and looks after every event. */
const always = (
  happenings: readonly Happening[],
  look: (simulation: Simulation) => void,
): Simulation => {
  const simulation = new Simulation();
  for (const what of happenings) {
    simulation.happen(what);
    look(simulation);
  }
  return simulation;
};

const ids = ({ target, accepted }: ReturnType<typeof toDesired<Rendered>>) => ({
  target: target?.plan.id,
  accepted: accepted?.plan.id,
});

const idOf = (candidate: Candidate<Rendered> | undefined): string =>
  candidate?.render.plan.id ?? '';

/** Sequence of the render that an event refuses; 0 when it refuses none. */
const refusedSince = (event: GateEvent<Rendered> | undefined): number =>
  event?.type === 'checked' && event.verdict.result === 'refused' ? event.candidate.sequence : 0;

fc.configureGlobal({ numRuns: process.env['HAPTIC_LONG'] === '1' ? 10_000 : 200 });

describe('for any order of renders and verdicts (G9)', () => {
  test.prop([timeline])('nothing new goes out while the gate is closed', (happenings) => {
    always(happenings, ({ before, state }) => {
      if (state.phase === 'open') return;
      const { target, accepted } = ids(toDesired(state));
      expect([accepted, ids(toDesired(before)).target]).toContain(target);
    });
  });

  test.prop([timeline])(
    'after a refusal of what went out the target is the accepted render',
    (happenings) => {
      always(happenings, ({ before, state, event }) => {
        if (event?.type !== 'checked' || event.verdict.result !== 'refused') return;
        const out = before.unaccepted.some(({ id }) => id === event.candidate.render.plan.id);
        if (out) expect(state.dispatched).toBe(state.accepted);
      });
    },
  );

  test.prop([timeline])(
    'what is refused is neither target nor accepted, and is empty while open',
    (happenings) => {
      always(happenings, ({ state }) => {
        const level = toDesired(state);
        const { target, accepted } = ids(level);
        expect(level.refused.has(target ?? '')).toBe(false);
        expect(level.refused.has(accepted ?? '')).toBe(false);
        if (level.phase === 'open') expect(level.refused.size).toBe(0);
      });
    },
  );

  test.prop([timeline])(
    'all that went out since the refused render is refused with it',
    (happenings) => {
      const sent: { sequence: number; id: string }[] = [];
      always(happenings, ({ before, state, event }) => {
        const { dispatched } = state;
        if (dispatched !== undefined && dispatched.sequence > (sent.at(-1)?.sequence ?? 0)) {
          sent.push({ sequence: dispatched.sequence, id: idOf(dispatched) });
        }
        const since = refusedSince(event);
        if (since <= (before.accepted?.sequence ?? 0)) return;
        const suspects = sent.filter(({ sequence }) => sequence >= since).map(({ id }) => id);
        expect([...state.refused]).toEqual(expect.arrayContaining(suspects));
      });
    },
  );

  test.prop([timeline])('the accepted render has passed and never goes backwards', (happenings) => {
    always(happenings, ({ before, state }) => {
      const { accepted } = state;
      expect(before.accepted === undefined || accepted !== undefined).toBe(true);
      if (accepted === undefined) return;
      expect(truth(accepted.render.plan.id).result).toBe('passed');
      expect(accepted.sequence).toBeGreaterThanOrEqual(before.accepted?.sequence ?? 0);
    });
  });

  test.prop([timeline])('only a refusal takes back what went out', (happenings) => {
    always(happenings, ({ before, state, event }) => {
      const back = (state.dispatched?.sequence ?? 0) < (before.dispatched?.sequence ?? 0);
      expect(back && refusedSince(event) === 0).toBe(false);
    });
  });

  test.prop([timeline])('a plan known to be refused does not go out again', (happenings) => {
    always(happenings, ({ before, state }) => {
      const id = state.dispatched?.render.plan.id ?? '';
      if (state.dispatched === before.dispatched) return;
      expect(judgementOf(before, id)?.result).not.toBe('refused');
    });
  });

  test.prop([timeline])('while open the newest render is the target', (happenings) => {
    always(happenings, ({ state }) => {
      if (state.phase === 'open') expect(state.dispatched).toBe(state.newest);
    });
  });

  test.prop([timeline])(
    'nothing that is judged is wanted, and little is remembered',
    (happenings) => {
      always(happenings, ({ state }) => {
        const next = wanted(state);
        if (next !== undefined) expect(judgementOf(state, next.render.plan.id)).toBeUndefined();
        expect(state.verdicts.size).toBeLessThanOrEqual(REMEMBERED);
      });
    },
  );

  test.prop([timeline])(
    'only a verdict or a known plan moves the phase, an inconclusive one never reverts',
    (happenings) => {
      always(happenings, ({ before, state, event }) => {
        if (event?.type === 'retry') expect(state.phase).toBe(before.phase);
        if (event?.type === 'checked' && event.verdict.result === 'inconclusive') {
          expect(state.dispatched).toBe(before.dispatched);
          expect(state.accepted).toBe(before.accepted);
          expect(state.refused).toBe(before.refused);
        }
      });
    },
  );

  test.prop([timeline])('it comes to rest on the newest render, if that is good', (happenings) => {
    const simulation = always(happenings, () => undefined);
    simulation.settle();
    const { newest, phase, accepted, dispatched } = simulation.state;
    if (newest === undefined) return;
    if (truth(newest.render.plan.id).result === 'passed') {
      expect({ phase, accepted, dispatched }).toEqual({
        phase: 'open',
        accepted: newest,
        dispatched: newest,
      });
    } else {
      expect(phase).not.toBe('open');
      expect(truth(dispatched?.render.plan.id ?? 'good').result).toBe('passed');
    }
    expect(wanted(simulation.state)).toBeUndefined();
  });

  test.prop([timeline])(
    'a closed gate waits for something that will come: a check, a retry or a render',
    (happenings) => {
      always(happenings, ({ state, checking }) => {
        const newest = state.newest?.render.plan.id ?? 'bad';
        if (state.phase === 'open' || checking !== undefined) return;
        const awaited = wanted(state) !== undefined || retryMs(state) !== undefined;
        expect(awaited || truth(newest).result === 'refused').toBe(true);
      });
    },
  );

  test.prop([fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10 })])(
    'makes progress with every check, however many renders come during one',
    (rendersPerCheck, checks) => {
      const simulation = new Simulation();
      let count = 0;
      const accepted = Array.from({ length: checks }, () => {
        for (let index = 0; index < rendersPerCheck; index += 1) {
          simulation.happen({ render: `good${(count += 1)}` });
          simulation.happen({ slot: 'start' });
        }
        simulation.happen({ slot: 'end' });
        return simulation.state.accepted?.sequence ?? 0;
      });
      expect(accepted).toEqual([...new Set(accepted)].sort((a, b) => a - b));
      expect(accepted[0]).toBe(1);
    },
  );
});
