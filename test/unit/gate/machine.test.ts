import { describe, expect, it } from 'vitest';
import {
  type GateEvent,
  type GateState,
  gateStep,
  initialGate,
  isUrgent,
  judgementOf,
  REMEMBERED,
  retryMs,
  toDesired,
  wanted,
} from '../../../src/gate/machine.ts';
import type { Verdict } from '../../../src/gate/verdict.ts';

interface Rendered {
  readonly plan: { readonly id: string };
  readonly revision: number;
}

const PASSED: Verdict = { result: 'passed' };
const REFUSED: Verdict = { result: 'refused', message: 'no', problems: [] };
const INCONCLUSIVE: Verdict = { result: 'inconclusive', cause: 'no binary' };

/** A gate that is driven by words: `a` renders plan a, `+a` passes it, `-a` refuses it, `?a` cannot say, `!` retries. */
class Driven {
  readonly #sequences = new Map<string, number>();
  #revision = 0;
  state: GateState<Rendered>;

  constructor(words: string, firstRenderWaits = false) {
    this.state = initialGate(7, { firstRenderWaits });
    this.go(words);
  }

  go(words: string): this {
    for (const word of words.split(' ').filter(Boolean)) {
      this.state = gateStep(this.state, this.#event(word));
    }
    return this;
  }

  get level() {
    const { phase, target, accepted, refused, servers } = toDesired(this.state);
    return {
      phase,
      target: target?.plan.id,
      accepted: accepted?.plan.id,
      refused: [...refused].sort().join(''),
      servers: servers?.plan.id,
    };
  }

  get next(): string | undefined {
    return wanted(this.state)?.render.plan.id;
  }

  #event(word: string): GateEvent<Rendered> {
    if (word === '!') return { type: 'retry' };
    const [verdict, id] = [VERDICTS[word[0]!], word.replace(/^[+?-]/, '')];
    const render = { plan: { id }, revision: (this.#revision += 1) };
    if (verdict === undefined) {
      if (this.state.newest?.render.plan.id !== id) {
        this.#sequences.set(id, (this.state.newest?.sequence ?? 0) + 1);
      }
      return { type: 'render', render };
    }
    return { type: 'checked', candidate: { sequence: this.#sequences.get(id)!, render }, verdict };
  }
}

const VERDICTS: Record<string, Verdict | undefined> = {
  '+': PASSED,
  '-': REFUSED,
  '?': INCONCLUSIVE,
};

const level = (
  phase: string,
  { target, accepted, refused = '', servers }: Partial<Driven['level']> = {},
): Driven['level'] => ({ phase, target, accepted, refused, servers }) as Driven['level'];

describe('the table of the gate', () => {
  it('open, render: dispatches at once', () => {
    const gate = new Driven('a +a b');
    expect(gate.level).toEqual(level('open', { target: 'b', accepted: 'a' }));
    expect(gate.next).toBe('b');
  });

  it('open, pass: accepts what was checked', () => {
    const gate = new Driven('a +a');
    expect(gate.level).toEqual(level('open', { target: 'a', accepted: 'a' }));
    expect(gate.next).toBeUndefined();
  });

  it('open, pass of an older render: accepts it and leaves the newest one out', () => {
    const gate = new Driven('a b c +a');
    expect(gate.level).toEqual(level('open', { target: 'c', accepted: 'a' }));
    expect(gate.next).toBe('c');
  });

  it('open, refused: goes back to the accepted render and holds', () => {
    const gate = new Driven('a +a b -b');
    expect(gate.level).toEqual(
      level('holding', { target: 'a', accepted: 'a', refused: 'b', servers: 'b' }),
    );
    expect(gate.next).toBeUndefined();
  });

  it('open, refused while later renders went out: takes them back too, and checks the newest next', () => {
    const gate = new Driven('a +a b c d -b');
    expect(gate.level).toEqual(
      level('holding', { target: 'a', accepted: 'a', refused: 'bcd', servers: 'd' }),
    );
    expect(gate.next).toBe('d');
  });

  it('open, refused with nothing accepted in this term: leaves no target', () => {
    const gate = new Driven('a b -a');
    expect(gate.level).toEqual(level('holding', { refused: 'ab', servers: 'b' }));
  });

  it('open, refused: an earlier render that nobody judged is not among the refused', () => {
    const gate = new Driven('a +a b c -c');
    expect(gate.level.refused).toBe('c');
    expect(gate.level.target).toBe('a');
  });

  it('open, inconclusive: holds, reverts nothing and retries', () => {
    const gate = new Driven('a +a b ?b');
    expect(gate.level).toEqual(level('holding', { target: 'b', accepted: 'a', servers: 'b' }));
    expect(retryMs(gate.state)).toBe(1000);
    expect(gate.next).toBeUndefined();
    expect(gate.go('!').next).toBe('b');
  });

  it('holding, inconclusive: keeps holding and doubles the time to the retry up to 30 s', () => {
    const gate = new Driven('a');
    const waits = [1, 2, 3, 4, 5, 6, 7].map(() => retryMs(gate.go('! ?a').state));
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    expect(gate.level.phase).toBe('holding');
  });

  it('holding, render: keeps it for the next check and lets nothing out but its servers', () => {
    const gate = new Driven('a +a b -b c d');
    expect(gate.level).toEqual(
      level('holding', { target: 'a', accepted: 'a', refused: 'b', servers: 'd' }),
    );
    expect(gate.next).toBe('d');
  });

  it('holding after an inconclusive check, render: what went out last stays', () => {
    const gate = new Driven('a +a b ?b c');
    expect(gate.level).toEqual(level('holding', { target: 'b', accepted: 'a', servers: 'c' }));
  });

  it('holding, pass: accepts, dispatches and opens', () => {
    const gate = new Driven('a +a b -b c +c');
    expect(gate.level).toEqual(level('open', { target: 'c', accepted: 'c' }));
  });

  it('holding, pass of what was checked while newer ones came: opens, and the newest goes out', () => {
    const gate = new Driven('a +a b -b c d e +c');
    expect(gate.level).toEqual(level('open', { target: 'e', accepted: 'c' }));
    expect(gate.next).toBe('e');
  });

  it('holding, refused: is pinned, and nothing moves', () => {
    const gate = new Driven('a +a b -b c -c');
    expect(gate.level).toEqual(
      level('pinned', { target: 'a', accepted: 'a', refused: 'bc', servers: 'c' }),
    );
  });

  it('holding after an inconclusive check, refused: takes back what went out, not yet pinned', () => {
    const gate = new Driven('a +a b ?b ! -b');
    expect(gate.level).toEqual(
      level('holding', { target: 'a', accepted: 'a', refused: 'b', servers: 'b' }),
    );
  });

  it('pinned, refused: stays pinned', () => {
    expect(new Driven('a +a b -b c -c d -d').level.phase).toBe('pinned');
  });

  it('pinned, render: is next to check', () => {
    const gate = new Driven('a +a b -b c -c d');
    expect(gate.level.phase).toBe('pinned');
    expect(gate.next).toBe('d');
  });

  it('pinned, inconclusive: stays pinned and retries', () => {
    const gate = new Driven('a +a b -b c -c d ?d');
    expect(gate.level.phase).toBe('pinned');
    expect(retryMs(gate.state)).toBe(1000);
  });

  it('pinned, pass: accepts, dispatches and opens', () => {
    const gate = new Driven('a +a b -b c -c d +d');
    expect(gate.level).toEqual(level('open', { target: 'd', accepted: 'd' }));
  });

  it('any, leader lost: the next term starts open and remembers nothing', () => {
    expect(new Driven('').level).toEqual(level('open'));
    expect(new Driven('').next).toBeUndefined();
  });
});

describe('what the gate remembers inside a term', () => {
  it('refuses a known refused plan at once, without it reaching the fleet', () => {
    const gate = new Driven('a +a b -b c +c b');
    expect(gate.level).toEqual(
      level('holding', { target: 'c', accepted: 'c', refused: 'b', servers: 'b' }),
    );
    expect(gate.next).toBeUndefined();
  });

  it('accepts a known plan at once and releases', () => {
    const gate = new Driven('a +a b -b a');
    expect(gate.level).toEqual(level('open', { target: 'a', accepted: 'a' }));
    expect(gate.next).toBeUndefined();
  });

  it('keeps what went out without judgement when a known refused plan follows, and checks it', () => {
    const gate = new Driven('a +a x -x b +b c x');
    expect(gate.level).toMatchObject({ phase: 'holding', target: 'c', accepted: 'b' });
    expect(gate.next).toBe('c');
    expect(gate.go('+c').level).toMatchObject({ phase: 'holding', target: 'c', accepted: 'c' });
  });

  it('keeps what went out later when an older render passes and a known refused plan is the newest', () => {
    const gate = new Driven('a +a x -x b +b c d x +c');
    expect(gate.level).toMatchObject({ phase: 'holding', target: 'd', accepted: 'c' });
    expect(gate.next).toBe('d');
  });

  it('is pinned by a known refused plan while it holds', () => {
    expect(new Driven('a +a b -b c b').level.phase).toBe('pinned');
  });

  it('counts the same plan rendered again as one render, with its newest content', () => {
    const gate = new Driven('a +a b -b b b');
    expect(gate.level.phase).toBe('holding');
    const again = new Driven('a a +a a');
    expect(toDesired(again.state).target?.revision).toBe(4);
    expect(toDesired(again.state).accepted?.revision).toBe(4);
  });

  it('forgets the plan that was used least recently', () => {
    const gate = new Driven('x -x a +a');
    const others = Array.from({ length: REMEMBERED - 1 }, (_, index) => `p${index}`);
    gate.go(others.map((id) => `${id} +${id}`).join(' '));
    expect(judgementOf(gate.state, 'x')).toBeUndefined();
    expect(judgementOf(gate.state, 'a')).toEqual(PASSED);
    expect(gate.state.verdicts.size).toBe(REMEMBERED);
  });

  it('never remembers an inconclusive check', () => {
    expect(judgementOf(new Driven('a ?a').state, 'a')).toBeUndefined();
  });
});

describe('verdicts that come late', () => {
  it('a refusal of what is older than the accepted render moves nothing', () => {
    const gate = new Driven('a +a b a -b');
    expect(gate.level).toEqual(level('open', { target: 'a', accepted: 'a' }));
    expect(judgementOf(gate.state, 'b')).toEqual(REFUSED);
  });

  it('a pass of what is older than the accepted render does not go backwards', () => {
    const gate = new Driven('a +a b a +b');
    expect(gate.level).toEqual(level('open', { target: 'a', accepted: 'a' }));
  });

  it('an inconclusive check of what is older than the accepted render does not hold', () => {
    expect(new Driven('a +a b a ?b').level.phase).toBe('open');
  });

  it('a refusal of a plan that came again takes back everything since its first time', () => {
    const gate = new Driven('a +a b c b');
    const first = { sequence: 2, render: { plan: { id: 'b' }, revision: 0 } };
    gate.state = gateStep(gate.state, { type: 'checked', candidate: first, verdict: REFUSED });
    expect(gate.level.refused).toBe('bc');
  });

  it('a refusal of a kept plan that had gone out before takes back everything since then', () => {
    const gate = new Driven('a +a d e ?e ! d -d');
    expect(gate.level).toMatchObject({ phase: 'holding', target: 'a', refused: 'de' });
  });

  it('a pass of a plan that came again accepts it where it stands now', () => {
    const gate = new Driven('a b a');
    const first = { sequence: 1, render: { plan: { id: 'a' }, revision: 0 } };
    gate.state = gateStep(gate.state, { type: 'checked', candidate: first, verdict: PASSED });
    expect(gate.level).toEqual(level('open', { target: 'a', accepted: 'a' }));
    expect(gate.state.accepted?.sequence).toBe(3);
  });

  it('a verdict ends the wait for a retry', () => {
    const gate = new Driven('a +a b ?b a');
    expect(retryMs(gate.state)).toBeUndefined();
    expect(gate.go('c ?c').state.attempts).toBe(1);
  });

  it('a retry that nobody waits for changes nothing', () => {
    const { state } = new Driven('a');
    expect(gateStep(state, { type: 'retry' })).toBe(state);
  });
});

describe('pods that join (G12)', () => {
  it('get the newest dispatched render while open', () => {
    expect(new Driven('a +a b').level.target).toBe('b');
  });

  it('get the accepted render while holding after a refusal', () => {
    expect(new Driven('a +a b c -b d').level.target).toBe('a');
  });
});

describe('option firstRenderWaits', () => {
  it('holds the first render of the term until its check passes', () => {
    const gate = new Driven('a', true);
    expect(gate.level).toEqual(level('holding', { servers: 'a' }));
    expect(gate.next).toBe('a');
    expect(gate.go('+a b').level).toEqual(level('open', { target: 'b', accepted: 'a' }));
  });
});

it('checks follow one another without rest only while the gate is closed', () => {
  expect(isUrgent(new Driven('a +a b').state)).toBe(false);
  expect(isUrgent(new Driven('a +a b -b').state)).toBe(true);
});
