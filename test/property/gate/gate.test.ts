import { fc, test } from '@fast-check/vitest';
import { finalize, map, type Observable, timer } from 'rxjs';
import { describe, expect } from 'vitest';
import type { Checked, Verdict } from '../../../src/gate/verdict.ts';
import type { Render } from '../../../src/render/render.ts';
import { gate, type GateOutput, isLevel } from '../../../src/streams/gate.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { makeRender } from '../../support/renders.ts';

/** Plans with a small letter are good, with a capital letter bad. */
const LETTERS = 'abcdefABCDEF'.split(/(?!^)/);
const renders = Object.fromEntries(LETTERS.map((id) => [id, makeRender({ id })]));

const verdictOf = (id: string, failing: boolean): Verdict => {
  if (failing) return { result: 'inconclusive', cause: 'killed' };
  const good = id === id.toLowerCase();
  return good ? { result: 'passed' } : { result: 'refused', message: 'no', problems: [] };
};

interface Timeline {
  /** Renders and pauses, as a marble diagram. */
  readonly diagram: string;
  /** How long the n-th check takes, in ms, and whether it cannot say. */
  readonly checks: readonly { readonly ms: number; readonly failing: boolean }[];
}

const timeline: fc.Arbitrary<Timeline> = fc.record({
  diagram: fc
    .array(fc.oneof(fc.constantFrom(...LETTERS), fc.constant('-'), fc.constant('----')), {
      minLength: 1,
      maxLength: 40,
    })
    .map((parts) => parts.join('')),
  checks: fc.array(fc.record({ ms: fc.integer({ min: 0, max: 12 }), failing: fc.boolean() }), {
    minLength: 1,
    maxLength: 12,
  }),
});

/** Plays a timeline, and then a long time with a checker that works. */
const play = ({ diagram, checks }: Timeline) =>
  inVirtualTime(({ cold, flush }) => {
    const outputs: GateOutput[] = [];
    let [started, running, most] = [0, 0, 0];
    const check = (render: Render): Observable<Checked> => {
      const { ms, failing } = checks[started] ?? { ms: 2, failing: false };
      started += 1;
      running += 1;
      most = Math.max(most, running);
      const { id: planId } = render.plan;
      return timer(ms).pipe(
        map(() => ({ planId, verdict: verdictOf(planId, failing), durationMs: ms })),
        finalize(() => (running -= 1)),
      );
    };
    cold(`${diagram} 1000s |`, renders)
      .pipe(gate({ check, epoch: 1 }))
      .subscribe((output) => outputs.push(output));
    flush();
    return { outputs, most, running, levels: outputs.filter(isLevel) };
  });

const newestOf = ({ diagram }: Timeline): string | undefined => diagram.replaceAll('-', '').at(-1);

describe('the gate on random timelines (G9, P7)', () => {
  test.prop([timeline])('never runs two checks at once, and leaves none behind', (given) => {
    const { most, running } = play(given);
    expect(most).toBeLessThanOrEqual(1);
    expect(running).toBe(0);
  });

  test.prop([timeline])(
    'ends open on the newest render if that is good, closed if it is bad',
    (given) => {
      const last = play(given).levels.at(-1);
      const newest = newestOf(given);
      if (newest === undefined) return;
      if (newest === newest.toLowerCase()) {
        expect(last).toMatchObject({
          phase: 'open',
          target: { plan: { id: newest } },
          accepted: { plan: { id: newest } },
        });
      } else {
        expect(last?.phase).not.toBe('open');
        expect(last?.target?.plan.id).not.toBe(newest);
      }
    },
  );

  test.prop([timeline])('each level that takes something back says so just before', (given) => {
    const { outputs } = play(given);
    outputs.forEach((output, index) => {
      if (isLevel(output) || output.type !== 'Reverting') return;
      const level = outputs[index + 1];
      expect(level !== undefined && isLevel(level)).toBe(true);
      expect(level).toMatchObject({ refused: new Set(output.refused) });
      expect((level as { target?: Render }).target?.plan.id).toBe(output.to);
    });
  });
});
