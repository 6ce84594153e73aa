import fc from 'fast-check';
import { map, merge, NEVER, type Observable, Subject, switchMap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Election, leadership } from '../../../src/streams/leadership.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { type Fate, ModelLease } from '../../support/model-lease.ts';
import { frame, runs } from '../operators/timelines.ts';

/** Milliseconds. Requests misbehave until the calm; after it a leader must be found. */
const CALM = 120_000;
const END = 240_000;
const settings = { leaseDurationMs: 30_000, renewDeadlineMs: 20_000, retryPeriodMs: 5_000 };

interface Replica {
  /** What its clocks say at the start, in milliseconds. */
  readonly skewMs: number;
  readonly delays: readonly Pick<Fate, 'toMs' | 'backMs'>[];
  /** Times in which its requests, or the answers, are lost. */
  readonly outages: readonly {
    readonly fromMs: number;
    readonly lastMs: number;
    readonly lost: 'request' | 'answer';
  }[];
  readonly randoms: readonly number[];
  /** How long it lives from its start, and when it starts. */
  readonly startMs: number;
  readonly lifeMs: number;
  /** Whether its last act is to give the Lease back. */
  readonly isOrderly: boolean;
  /** Epochs that agents report to it. */
  readonly reports: readonly { readonly atMs: number; readonly epoch: number }[];
}

interface Led {
  readonly by: number;
  readonly epoch: number;
  readonly from: number;
  to: number;
  /** Whether agents took what it wrote when it began. */
  readonly isObeyed: boolean;
}

/** Agents that every leader writes to at once; of two leaders of one epoch they know the first. */
class Agents {
  epoch = 0;
  #leader: number | undefined;

  write({ by, epoch }: Pick<Led, 'by' | 'epoch'>): boolean {
    if (epoch < this.epoch || (epoch === this.epoch && by !== this.#leader)) return false;
    [this.epoch, this.#leader] = [epoch, by];
    return true;
  }
}

/** Every time of leading of every replica, in the order in which they began. */
const play = (replicas: readonly Replica[], deletedAtMs: readonly number[]): readonly Led[] =>
  inVirtualTime(({ flush }) => {
    const lease = new ModelLease();
    const agents = new Agents();
    const led: Led[] = [];
    deletedAtMs.forEach((ms) => timer(ms).subscribe(() => (lease.object = undefined)));
    replicas.forEach((replica, by) => {
      const { startMs, lifeMs, isOrderly } = replica;
      const fencedOff$ = new Subject<number>();
      const identity = `replica-${String(by)}`;
      const election = electionOf(replica, { identity, lease, agents, fencedOff$ });
      let current: Led | undefined;
      const close = (): void => {
        if (current !== undefined) current.to = frame();
        current = undefined;
      };
      const subscription = timer(startMs)
        .pipe(switchMap(() => election.leader$))
        .subscribe((leader) => {
          close();
          if (!leader.leading) return;
          const isObeyed = agents.write({ by, epoch: leader.epoch });
          current = { by, epoch: leader.epoch, from: frame(), to: END, isObeyed };
          led.push(current);
          if (!isObeyed) timer(1).subscribe(() => fencedOff$.next(agents.epoch));
        });
      const deathMs = startMs + lifeMs + (isOrderly ? 5_000 : 0);
      timer(Math.min(deathMs, END)).subscribe(() => {
        close();
        subscription.unsubscribe();
      });
    });
    flush();
    return led;
  });

const electionOf = (
  replica: Replica,
  {
    identity,
    lease,
    agents,
    fencedOff$,
  }: {
    readonly identity: string;
    readonly lease: ModelLease;
    readonly agents: Agents;
    readonly fencedOff$: Observable<number>;
  },
): Election => {
  const { skewMs, randoms, lifeMs, isOrderly, reports } = replica;
  let drawn = 0;
  return leadership({
    client: lease.client((_, index) => (frame() < CALM ? fateAt(replica, index) : {})),
    lease: { namespace: 'ns', name: 'haptic' },
    identity,
    settings: () => settings,
    agentEpoch$: timer(1).pipe(map(() => agents.epoch)),
    overtaken$: merge(
      fencedOff$,
      ...reports.map(({ atMs, epoch }) => timer(atMs).pipe(map(() => epoch))),
    ),
    release$: isOrderly ? timer(lifeMs) : NEVER,
    random: () => randoms[drawn++ % randoms.length] ?? 0,
    now: () => frame() + skewMs,
    wallNow: () => frame() + skewMs,
  });
};

const fateAt = ({ delays, outages }: Replica, index: number): Fate => {
  const now = frame();
  const outage = outages.find(({ fromMs, lastMs }) => fromMs <= now && now < fromMs + lastMs);
  return { ...delays[index % delays.length], ...(outage !== undefined && { lost: outage.lost }) };
};

const delay = fc.oneof(
  { weight: 8, arbitrary: fc.nat({ max: 20 }) },
  { weight: 1, arbitrary: fc.nat({ max: 9_000 }) },
);
const replica = fc.record({
  skewMs: fc.integer({ min: -60_000, max: 60_000 }),
  delays: fc.array(fc.record({ toMs: delay, backMs: delay }), { minLength: 1, maxLength: 20 }),
  outages: fc.array(
    fc.record({
      fromMs: fc.nat({ max: CALM }),
      lastMs: fc.nat({ max: 60_000 }),
      lost: fc.constantFrom('request' as const, 'answer' as const),
    }),
    { maxLength: 4 },
  ),
  randoms: fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 1, maxLength: 5 }),
  startMs: fc.nat({ max: 60_000 }),
  // Whoever dies does so long before the end.
  lifeMs: fc.oneof(fc.nat({ max: 100_000 }), fc.constant(2 * END)),
  isOrderly: fc.boolean(),
  reports: fc.array(fc.record({ atMs: fc.nat({ max: CALM }), epoch: fc.nat({ max: 20 }) }), {
    maxLength: 3,
  }),
});
const replicas = fc
  .tuple(replica, fc.array(replica, { minLength: 1, maxLength: 2 }))
  .map(([one, others]) => [{ ...one, lifeMs: 2 * END }, ...others]);

const options: fc.Parameters<unknown> = { numRuns: (runs.numRuns ?? 0) / 2 };

describe('an election among replicas with clocks of their own, whose requests are late or lost', () => {
  it('R13: two never lead at once, each term has a higher epoch, and in the end somebody leads', () => {
    fc.assert(
      fc.property(replicas, (all) => {
        const led = play(all, []);
        led.slice(1).forEach((term, index) => {
          const before = led[index]!;
          expect(term.from).toBeGreaterThanOrEqual(before.to);
          expect(term.epoch).toBeGreaterThan(before.epoch);
        });
        expect(led.at(-1)?.to).toBe(END);
      }),
      options,
    );
  });

  it('R13: whoever deletes the Lease, agents obey terms of rising epochs, in the end the one that leads', () => {
    const deletions = fc.array(fc.nat({ max: CALM }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(replicas, deletions, (all, deletedAtMs) => obeysInTheEnd(play(all, deletedAtMs))),
      options,
    );
  });

  it('R13: two that take one epoch, for the Lease was deleted while an answer was late: who holds it is obeyed', () => {
    const prompt: Replica = {
      ...{ skewMs: 0, delays: [{ toMs: 0, backMs: 0 }], outages: [], randoms: [0], reports: [] },
      ...{ startMs: 0, lifeMs: 2 * END, isOrderly: false },
    };
    const answeredAfter = (startMs: number, backMs: number): Replica => ({
      ...prompt,
      ...{ startMs, delays: [...prompt.delays, { toMs: 0, backMs }, ...prompt.delays] },
    });
    // Each finds no Lease and makes one. The first hears of its own when that has gone, and writes to the agents first.
    const led = play([answeredAfter(100, 2_500), answeredAfter(1_000, 2_000)], [500]);
    expect(led.slice(0, 2).map(({ by, epoch }) => [by, epoch])).toEqual([
      [0, 1],
      [1, 1],
    ]);
    obeysInTheEnd(led);
  });
});

const obeysInTheEnd = (led: readonly Led[]): void => {
  const obeyed = led.filter(({ isObeyed }) => isObeyed);
  obeyed.slice(1).forEach((term, index) => {
    const before = obeyed[index]!;
    expect(term.by === before.by ? term.epoch + 1 : term.epoch).toBeGreaterThan(before.epoch);
  });
  expect(led.filter(({ to }) => to === END)).toMatchObject([{ isObeyed: true }]);
};
