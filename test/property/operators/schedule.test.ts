import fc from 'fast-check';
import { map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Pace, schedule } from '../../../src/operators/schedule.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { frame, runs, type Timeline, timelines } from './timelines.ts';

interface State {
  readonly id: number;
  readonly structure: number;
  readonly servers: number;
}

interface Sent extends State {
  readonly at: number;
  /** The earliest time at which the agent may reload. */
  readonly reloadAt: number;
  readonly causesReload: boolean;
}

/** The letters are states: few, so that changes are often taken back. */
const meaning: Record<string, Pick<State, 'structure' | 'servers'>> = {
  a: { structure: 1, servers: 1 },
  b: { structure: 1, servers: 2 },
  c: { structure: 2, servers: 1 },
  d: { structure: 2, servers: 2 },
};

function classify(last: State | undefined, next: State): Pace {
  const structure = last?.structure !== next.structure;
  const servers = last?.servers !== next.servers;
  if (structure) return servers ? 'both' : 'later';
  return servers ? 'now' : 'none';
}

function play({ diagram }: Timeline, intervalMs: number): Sent[] {
  return inVirtualTime(({ cold, flush }) => {
    const sent: Sent[] = [];
    cold(diagram)
      .pipe(
        map((letter, id): State => ({ id, ...meaning[letter]! })),
        schedule({ intervalMs, classify }),
      )
      .subscribe(({ value, notBeforeMs }) => {
        const causesReload = sent.at(-1)?.structure !== value.structure;
        sent.push({ ...value, at: frame(), reloadAt: frame() + notBeforeMs, causesReload });
      });
    flush();
    return sent;
  });
}

const intervals = fc.integer({ min: 1, max: 12 });

describe('schedule on random timelines (P7)', () => {
  it('causes at most one reload per interval (G6)', () => {
    fc.assert(
      fc.property(timelines('abcd'), intervals, (timeline, intervalMs) => {
        const sent = play(timeline, intervalMs);
        const reloads = new Set(sent.filter((it) => it.causesReload).map((it) => it.reloadAt));
        const times = [...reloads];
        times.slice(1).forEach((time, index) => {
          expect(time - times[index]!).toBeGreaterThanOrEqual(intervalMs);
        });
      }),
      runs,
    );
  });

  it('never lets an emission pull a reload forward that is still ahead', () => {
    fc.assert(
      fc.property(timelines('abcd'), intervals, (timeline, intervalMs) => {
        const sent = play(timeline, intervalMs);
        let ahead = 0;
        for (const { at, reloadAt, causesReload } of sent) {
          if (ahead > at) expect(reloadAt).toBe(ahead);
          else if (!causesReload) expect(reloadAt).toBe(at);
          expect(reloadAt - at).toBeLessThanOrEqual(intervalMs);
          if (causesReload) ahead = reloadAt;
        }
      }),
      runs,
    );
  });

  it('never delays what needs no reload (G7)', () => {
    fc.assert(
      fc.property(timelines('abcd'), intervals, (timeline, intervalMs) => {
        const sent = play(timeline, intervalMs);
        for (const { id, at, letter } of timeline.arrivals) {
          const known = sent.filter((it) => it.at <= at && it.id <= id).at(-1);
          expect(known?.servers).toBe(meaning[letter]!.servers);
        }
      }),
      runs,
    );
  });

  it('sends what needs a reload at once after a quiet interval, else within it (G6)', () => {
    fc.assert(
      fc.property(timelines('abcd'), intervals, (timeline, intervalMs) => {
        const sent = play(timeline, intervalMs);
        timeline.arrivals.forEach(({ id, at, letter }, index) => {
          const before = sent.filter((it) => it.id < id && it.at <= at);
          if (before.at(-1)?.structure === meaning[letter]!.structure) return;
          const reloadAt = Math.max(
            -Infinity,
            ...before.filter((it) => it.causesReload).map((it) => it.reloadAt),
          );
          const due = reloadAt > at ? at : Math.max(at, reloadAt + intervalMs);
          const takenBack = timeline.arrivals
            .slice(index + 1)
            .some(
              (it) => it.at <= due && meaning[it.letter]!.structure === before.at(-1)?.structure,
            );
          const gone = sent.find((it) => it.id >= id);
          if (!takenBack) expect(gone?.at).toBeLessThanOrEqual(due);
        });
      }),
      runs,
    );
  });

  it('always sends the last state, newest first, and none twice (G6)', () => {
    fc.assert(
      fc.property(timelines('abcd'), intervals, (timeline, intervalMs) => {
        const sent = play(timeline, intervalMs);
        const last = timeline.arrivals.at(-1);
        expect(sent.at(-1)).toMatchObject(last === undefined ? {} : meaning[last.letter]!);
        sent.slice(1).forEach((it, index) => {
          expect(it.id).toBeGreaterThan(sent[index]!.id);
          expect(classify(sent[index], it)).not.toBe('none');
        });
        for (const { id, at } of sent) {
          expect(timeline.arrivals.filter((it) => it.id > id && it.at < at)).toStrictEqual([]);
        }
        expect(Math.max(0, ...sent.map((it) => it.at))).toBeLessThanOrEqual(timeline.end);
      }),
      runs,
    );
  });
});
