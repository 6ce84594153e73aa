/** Evaluates one cell: a whole template, or the body of a `cells` tag for one element. */
import { Reads } from '../cells/cells.ts';
import { EMPTY_CHUNK, type Chunk } from '../cells/chunk.ts';
import { Pending } from '../cells/pending.ts';
import type { DigestFunction } from '../plan/plan.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { NO_EFFECTS, compactEffects, noEffects, type Effects } from './language/effects.ts';
import { TemplateFailure, asFailure, type Place } from './language/failure.ts';
import { objectOf } from './language/object-of.ts';
import { Scope, type CellRun } from './language/run.ts';
import type { SlotRequest } from './language/slots.ts';
import type { RootTemplate } from './language/template-set.ts';
import { ItemWriter, Writer, type Item } from './language/writer.ts';
import type { SnapshotWorld } from './world.ts';

/** What a cell made. With a problem the rest is empty. */
export interface CellResult {
  readonly object: ObjectRef | undefined;
  readonly chunk: Chunk;
  readonly effects: Effects;
  readonly problem: Problem | undefined;
}

/** What a whole template made. */
export interface RootResult extends CellResult {
  readonly items: readonly Item<SlotRequest>[];
}

export interface Evaluated<Result> {
  readonly result: Result;
  readonly reads: Reads;
}

/** What all cells of a render have in common. */
export interface Surroundings {
  readonly world: SnapshotWorld;
  readonly digest: DigestFunction;
  readonly globals: Scope;
}

export const evaluateRoot = (root: RootTemplate, around: Surroundings): Evaluated<RootResult> => {
  const place = { source: root.source, line: 1, column: 1 };
  const cell = cellRun(around, { place, map: root.kind === 'map' ? root.name : undefined });
  const out = new ItemWriter<SlotRequest>();
  const problem = guarded(cell, place, () =>
    root.run({ cell, scope: new Scope(around.globals, true), out }),
  );
  const items = problem === undefined ? out.items() : [];
  return { result: { ...resultOf(cell, problem, EMPTY_CHUNK), items }, reads: cell.reads };
};

/** One cell of a slot; `map` is the map whose template the tag stands in. */
export const evaluateCell = (
  { tag, element, map, declaresBackends }: CellOrder,
  around: Surroundings,
): Evaluated<CellResult> => {
  const object = objectOf(element);
  const cell = cellRun(around, { place: tag.place, map, object, inSlot: true });
  const scope = new Scope(around.globals, true);
  scope.bind(tag.name, element);
  const out = new Writer();
  const problem = guarded(cell, tag.place, () => {
    tag.body({ cell, scope, out });
    if (declaresBackends && !isBlank(out.text().value)) throw strayText(tag.place);
  });
  const chunk = isBlank(out.text().value) ? EMPTY_CHUNK : out.chunk(object);
  return { result: resultOf(cell, problem, chunk), reads: cell.reads };
};

export interface CellOrder {
  readonly tag: SlotRequest['tag'];
  readonly element: unknown;
  readonly map: string | undefined;
  readonly declaresBackends: boolean;
}

interface CellSettings {
  readonly place: Place;
  readonly map: string | undefined;
  readonly object?: ObjectRef | undefined;
  readonly inSlot?: boolean;
}

const cellRun = (
  { world, digest, globals }: Surroundings,
  { place, map, object, inSlot = false }: CellSettings,
): CellRun => ({
  ...{ world, digest, globals, map, object, inSlot },
  ...{ reads: new Reads(), effects: noEffects(), told: undefined },
  ...{ callPlace: place, depth: 0 },
});

const guarded = (cell: CellRun, place: Place, run: () => void): Problem | undefined => {
  try {
    run();
    return undefined;
  } catch (error: unknown) {
    if (error instanceof Pending) return pending(error, place).toProblem(cell.object);
    return asFailure(error, place).toProblem(cell.object);
  }
};

/** The reason of a cell that waits, which is no problem of anybody. */
export const AWAITED = 'ContentAwaited';

const pending = ({ key }: Pending, place: Place): TemplateFailure =>
  new TemplateFailure(`${key} is not there yet`, {
    place,
    nextStep: 'Nothing: it is fetched.',
    reason: AWAITED,
  });

const strayText = (place: Place): TemplateFailure =>
  new TemplateFailure('cells that declare backends print nothing but backend()', {
    place,
    nextStep: 'Move the text into the body of the backend, or out of the cells.',
  });

/** Of all cells that declare and print nothing. */
const NOTHING: CellResult = {
  object: undefined,
  chunk: EMPTY_CHUNK,
  effects: NO_EFFECTS,
  problem: undefined,
};

const resultOf = (cell: CellRun, problem: Problem | undefined, chunk: Chunk): CellResult => {
  const { object } = cell;
  if (problem !== undefined) return { object, chunk: EMPTY_CHUNK, effects: NO_EFFECTS, problem };
  const effects = compactEffects(cell.effects);
  if (effects === NO_EFFECTS && chunk === EMPTY_CHUNK) return NOTHING;
  return { object, chunk, effects, problem };
};

export const isBlank = (text: string): boolean => text.trim() === '';
