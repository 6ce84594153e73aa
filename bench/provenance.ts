/**
 * What it costs that every line knows where it comes from: full renders with and without marks by turns, in one process.
 * Counted is processor time, which other processes disturb least.
 *
 * ```
 * node --expose-gc bench/provenance.ts [N] [ROUNDS]
 * ```
 */
import { LineMarks } from '../src/render/language/line-marks.ts';
import { applyBatch, emptySnapshot } from '../src/snapshot/apply-batch.ts';
import { eventKey } from '../src/snapshot/fold.ts';
import type { KubeObject } from '../src/snapshot/objects.ts';
import type { Snapshot } from '../src/snapshot/snapshot.ts';
import type { WatchEvent } from '../src/snapshot/watch.ts';
import { resourceOfKind } from '../src/streams/directory-kinds.ts';
import { benchEngine } from './render-engine.ts';
import { summary } from './statistics.ts';
import { application } from './world.ts';

const [n = 10_000, rounds = 9] = process.argv.slice(2).map(Number);
const WARM_UP = 2;

const marked = Object.getOwnPropertyDescriptors(LineMarks.prototype);
const nothing = { value: () => undefined };
const unmarked = { printed: nothing, copied: nothing };

const objects = Array.from({ length: n }, (_, index) =>
  application(`app-${String(index)}`, `team-${String(index % 50)}`, [9]),
).flat() as KubeObject[];

const fullRenderMs = async (): Promise<number> => {
  const engine = await benchEngine();
  const lists = engine.watched.map(({ name, resources }) => {
    const event: WatchEvent = {
      type: 'Replaced',
      objects: objects.filter(({ kind }) => resourceOfKind(kind) === resources),
    };
    return [name, new Map([[eventKey(event), event]])] as const;
  });
  const snapshot: Snapshot = applyBatch(emptySnapshot(engine.watched), new Map(lists));
  globalThis.gc?.();
  const startedAt = process.cpuUsage();
  const steps = engine.steps(snapshot);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done !== true) continue;
    if (!step.value.ok) throw new Error(JSON.stringify(step.value.failure.problems[0]));
    const { user, system } = process.cpuUsage(startedAt);
    return (user + system) / 1_000;
  }
};

const times: Record<'with' | 'without', number[]> = { with: [], without: [] };
for (let round = -WARM_UP; round < rounds; round += 1) {
  // Whoever comes second finds a warmer machine, so that is each of them by turns.
  const order = round % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const);
  for (const name of order) {
    Object.defineProperties(LineMarks.prototype, name === 'with' ? marked : unmarked);
    const ms = await fullRenderMs();
    if (round >= 0) times[name].push(ms);
  }
}

const [withMarks, withoutMarks] = [summary(times.with).p50, summary(times.without).p50];
const share = ((withMarks - withoutMarks) / withMarks) * 100;
process.stdout.write(
  [
    `N = ${String(n)}, processor time, median of ${String(rounds)} full renders each`,
    `with marks     ${withMarks.toFixed(1)} ms`,
    `without marks  ${withoutMarks.toFixed(1)} ms`,
    `marks cost     ${share.toFixed(1)} % of the full render (budget 10 %)`,
    '',
  ].join('\n'),
);
