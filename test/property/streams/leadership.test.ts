import fc from 'fast-check';
import { map, merge, NEVER, switchMap, timer } from 'rxjs';
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
}

/** Every time of leading of every replica, in the order in which they began. */
const play = (replicas: readonly Replica[], deletedAtMs: readonly number[]): readonly Led[] =>
  inVirtualTime(({ flush }) => {
    const lease = new ModelLease();
    const led: Led[] = [];
    deletedAtMs.forEach((ms) => timer(ms).subscribe(() => (lease.object = undefined)));
    replicas.forEach((replica, by) => {
      const { startMs, lifeMs, isOrderly } = replica;
      const election = electionOf(replica, { identity: `replica-${String(by)}`, lease, led });
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
          current = { by, epoch: leader.epoch, from: frame(), to: END };
          led.push(current);
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
    led,
  }: {
    readonly identity: string;
    readonly lease: ModelLease;
    readonly led: readonly Led[];
  },
): Election => {
  const { skewMs, randoms, lifeMs, isOrderly, reports } = replica;
  let drawn = 0;
  return leadership({
    client: lease.client((_, index) => (frame() < CALM ? fateAt(replica, index) : {})),
    lease: { namespace: 'ns', name: 'haptic' },
    identity,
    settings: () => settings,
    // Every leader has written to the agents at once.
    agentEpoch$: timer(1).pipe(map(() => Math.max(0, ...led.map(({ epoch }) => epoch)))),
    overtaken$: merge(...reports.map(({ atMs, epoch }) => timer(atMs).pipe(map(() => epoch)))),
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

  it('R13: whoever deletes the Lease, each term has a higher epoch, so agents fence the others off', () => {
    const deletions = fc.array(fc.nat({ max: CALM }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(replicas, deletions, (all, deletedAtMs) => {
        const led = play(all, deletedAtMs);
        led.slice(1).forEach((term, index) => {
          expect(term.epoch).toBeGreaterThan(led[index]!.epoch);
        });
        expect(led.at(-1)?.to).toBe(END);
      }),
      options,
    );
  });
});
