import { fc, test } from '@fast-check/vitest';
import { expect } from 'vitest';
import type { TemplateEngine } from '../../../src/render/render.ts';
import type { IndexedSnapshot } from '../../../src/snapshot/apply-batch.ts';
import { runSteps } from '../../support/templates.ts';
import { anyObject, Cluster, described, event, worldEngine } from './incremental-world.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
const RUNS = LONG ? 10_000 : 100;
const TIMEOUT_MS = LONG ? 7_200_000 : 60_000;

/** What becomes of a batch of events: rendered, never seen, or cut off after some steps; or tried and taken back. */
const fate = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ type: 'rendered' as const }) },
  { weight: 2, arbitrary: fc.constant({ type: 'skipped' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('cutOff' as const),
      steps: fc.oneof(fc.nat({ max: 4 }), fc.nat({ max: 80 })),
      ended: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('tried' as const), steps: fc.nat({ max: 80 }) }),
  },
);

const batch = fc.record({
  events: fc.array(event, { maxLength: 4 }),
  fate,
  /** Another configuration takes over first. */
  reconfigured: fc.nat({ max: 9 }).map((number) => number === 0),
});

const take = (engine: TemplateEngine, snapshot: IndexedSnapshot, count: number) => {
  const steps = engine.steps(snapshot);
  for (let step = 0; step < count; step += 1) if (steps.next().done === true) break;
  return steps;
};

/** Fresh engines are expensive to compile and cheap to fork. */
const SCRATCH = [worldEngine(0), worldEngine(1)] as const;

const expectAsFromScratch = (engine: TemplateEngine, config: 0 | 1, snapshot: IndexedSnapshot) => {
  const fresh = SCRATCH[config].fork();
  const [result, scratch] = [runSteps(engine, snapshot), runSteps(fresh, snapshot)];
  expect(described(result)).toStrictEqual(described(scratch));
  if (scratch.ok) expect(engine.stats()).toStrictEqual(fresh.stats());
};

test.prop(
  [
    fc.array(anyObject, { minLength: 5, maxLength: 25, size: 'max' }),
    fc.array(batch, { minLength: 2, maxLength: 10, size: 'max' }),
  ],
  {
    numRuns: RUNS,
  },
)(
  'P6: over the libraries a render equals the one from scratch and keeps as much, whatever was cut off, skipped, refused or taken back (R1, R2)',
  (objects, history) => {
    let config: 0 | 1 = 0;
    let engine = SCRATCH[config].fork();
    const cluster = new Cluster(engine);
    cluster.snapshot = cluster.after(objects.map((object) => ({ type: 'write', object })));
    for (const { events, fate, reconfigured } of history) {
      if (reconfigured) {
        config = config === 0 ? 1 : 0;
        engine = SCRATCH[config].fork();
      }
      const snapshot = cluster.after(events);
      if (fate.type === 'tried') {
        take(engine, snapshot, fate.steps);
        continue;
      }
      cluster.snapshot = snapshot;
      if (fate.type === 'rendered') expectAsFromScratch(engine, config, snapshot);
      if (fate.type !== 'cutOff') continue;
      const steps = take(engine, snapshot, fate.steps);
      if (fate.ended) steps.return({ ok: false, failure: { phase: 'plan', problems: [] } });
    }
    expectAsFromScratch(engine, config, cluster.snapshot);
  },
  TIMEOUT_MS,
);
