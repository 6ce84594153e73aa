/** The cells of one configuration over time: evaluates what a snapshot changed, and keeps everything else. */
import { CellIndex, Slot } from '../cells/cells.ts';
import type { Chunk } from '../cells/chunk.ts';
import type { DigestFunction } from '../plan/plan.ts';
import type { RouteModel } from '../routing/model.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import { changesTo } from '../snapshot/changes-to.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { FileContext } from './assemble-files.ts';
import type { CellUpdate } from './cell-updates.ts';
import { commit } from './commit.ts';
import {
  nothingCommitted,
  type Committed,
  type CommittedSlot,
  type SlotPlan,
} from './committed.ts';
import {
  AWAITED,
  evaluateRoot,
  type CellResult,
  type RootResult,
  type Surroundings,
} from './evaluate.ts';
import { RenderNeeds } from './render-needs.ts';
import { nameOf } from './language/failure.ts';
import { objectsIn } from './language/object-of.ts';
import { FinishedRenders, type Counts } from './finished-renders.ts';
import type { RenderResult } from './render.ts';
import { SECRETS_AWAITED, SUPERSEDED, failed, planProblem, problemsOf } from './render-failures.ts';
import type { Scope } from './language/run.ts';
import { cellOwner, placeSlots, rootOwner, type PlacedRoot } from './slot-plans.ts';
import { eachSliced, withSlices } from './slices.ts';
import { NO_SLOT, cellsOf, changedKeys, goneCells, textOf } from './slot-cells.ts';
import type { TemplateConfig } from './config/template-config.ts';
import type { TemplateSet } from './language/template-set.ts';
import { ReadKeys, SnapshotWorld } from './world.ts';
import { TextDigests, type TextHasher } from './text-digests.ts';

/** Routes of snapshots; `steps` make the same model in small pieces. */
export interface SnapshotRouting {
  route(snapshot: Snapshot): RouteModel;
  steps?(snapshot: Snapshot): Generator<void, RouteModel>;
}

export interface RendererParts {
  readonly config: TemplateConfig;
  readonly set: TemplateSet;
  /** For example `3.4.7`. */
  readonly haproxyVersion: string;
  readonly globals: Scope;
  readonly routing: SnapshotRouting;
  readonly digest: DigestFunction;
  readonly hasher: () => TextHasher;
}

const NO_READS: ReadonlySet<string> = new Set();

export class Renderer {
  readonly #parts: RendererParts;
  readonly #context: FileContext;
  readonly #keys: ReadKeys;
  readonly #needs: RenderNeeds;
  readonly #index: CellIndex;
  readonly #roots: Slot<RootResult>;
  readonly #slots = new Map<string, Slot<CellResult>>();
  readonly #finished: FinishedRenders;
  #committed: Committed;
  #seen: SnapshotWorld | undefined;
  #run = 0;

  constructor(parts: RendererParts) {
    this.#parts = parts;
    const { config, digest } = parts;
    this.#context = { config, digest, digests: new TextDigests(parts.hasher) };
    this.#keys = new ReadKeys(config.watched);
    this.#needs = new RenderNeeds(config.watched);
    this.#index = new CellIndex(this.#needs.follows);
    this.#roots = new Slot(this.#index);
    this.#finished = new FinishedRenders(config, parts.set.warnings, parts.haproxyVersion);
    this.#committed = nothingCommitted(digest);
  }

  stats(): { readonly cells: number; readonly reads: number } {
    let cells = this.#roots.size;
    for (const slot of this.#slots.values()) cells += slot.size;
    return { cells, reads: this.#index.size };
  }

  readsFor(objects: readonly ObjectRef[]): (object: ObjectRef) => ReadonlySet<string> {
    const reads = new Map(objects.map((object) => [nameOf(object), new Set<string>()]));
    for (const cell of [...this.#slots.values()].flatMap((slot) => [...slot.cells()])) {
      const made = cell.reads.length === 0 ? [] : [...objectsIn(cell.argument)];
      const wanted = made.flatMap((object) => reads.get(nameOf(object)) ?? []);
      for (const known of wanted) cell.reads.forEach((read) => known.add(read));
    }
    return (object) => reads.get(nameOf(object)) ?? NO_READS;
  }

  *steps(snapshot: Snapshot): Generator<void, RenderResult> {
    this.#run += 1;
    const run = this.#run;
    const work = this.#work(snapshot);
    for (let step = work.next(); ; step = work.next()) {
      if (step.done === true) return this.#withNeeds(step.value);
      yield;
      if (run !== this.#run) return failed('snapshot', [SUPERSEDED]);
    }
  }

  #withNeeds(result: RenderResult): RenderResult {
    const needs = this.#seen === undefined ? undefined : this.#needs.of(this.#index, this.#seen);
    return needs === undefined ? result : { ...result, needs };
  }

  /** Looks at what is new since the snapshot seen last, and drops the cells that it concerns. */
  *#enter(snapshot: Snapshot): Generator<void, SnapshotWorld> {
    const before = this.#seen;
    if (before?.snapshot === snapshot) return before;
    const { routing } = this.#parts;
    const model =
      routing.steps === undefined ? routing.route(snapshot) : yield* routing.steps(snapshot);
    const world = new SnapshotWorld(snapshot, model);
    if (before !== undefined) yield* this.#refresh(before, world);
    // Not earlier: who goes on after abandoned steps must look at everything again.
    this.#seen = world;
    return world;
  }

  *#refresh(before: SnapshotWorld, now: SnapshotWorld): Generator<void> {
    const refresh = (key: string): void => this.#index.refresh(key, () => now.look(key));
    yield* eachSliced(this.#keys.ofObjects(changesTo(before.snapshot, now.snapshot)), refresh);
    yield* eachSliced(this.#keys.ofRoutes(before.model, now.model), refresh);
  }

  *#work(snapshot: Snapshot): Generator<void, RenderResult> {
    const world = yield* this.#enter(snapshot);
    if (world.model.awaited > 0) return { ...failed('snapshot', [SECRETS_AWAITED]), awaits: true };
    const { digest, globals } = this.#parts;
    const around: Surroundings = { world, digest, globals };
    const counts: Counts = { evaluated: 0, total: 0 };
    const updates: CellUpdate[] = [];
    const placed = yield* this.#evaluateRoots(around, { counts, updates });
    const slots = new Map<string, CommittedSlot>();
    for (const slot of placed.flatMap((root) => root.slots)) {
      slots.set(slot.id, yield* this.#evaluateSlot(slot, around, { counts, updates }));
    }
    for (const [id, { collection, results }] of this.#committed.slots) {
      if (slots.has(id)) continue;
      for (const update of goneCells(id, collection, results)) updates.push(update);
    }
    const problems = problemsOf(updates);
    const real = problems.filter(({ reason }) => reason !== AWAITED);
    if (real.length > 0) return failed('template', real);
    if (problems.length > 0) return { ...failed('snapshot', problems), awaits: true };
    const before = this.#committed;
    try {
      const output = yield* commit({ before, placed, slots, updates }, this.#context);
      this.#settle(output.committed);
      return this.#finished.of({ output, world, counts, held: this.stats() });
    } catch (error: unknown) {
      return failed('plan', [planProblem(error)]);
    }
  }

  *#evaluateRoots(
    around: Surroundings,
    { counts, updates }: { counts: Counts; updates: CellUpdate[] },
  ): Generator<void, PlacedRoot[]> {
    const placed: PlacedRoot[] = [];
    for (const [index, root] of this.#parts.set.roots.entries()) {
      let cell = this.#roots.valid(root.id, undefined);
      if (cell === undefined) {
        const { result, reads } = evaluateRoot(root, around);
        cell = this.#roots.keep(root.id, { argument: undefined, result, reads });
        counts.evaluated += 1;
      }
      counts.total += 1;
      const { result } = cell;
      const before = this.#committed.roots.get(root.id);
      if (before !== result) updates.push({ owner: rootOwner(index), before, after: result });
      placed.push(placeSlots({ root, index, result }, around.world, this.#parts.set.backendTag));
      yield;
    }
    return placed;
  }

  *#evaluateSlot(
    plan: SlotPlan,
    around: Surroundings,
    { counts, updates }: { counts: Counts; updates: CellUpdate[] },
  ): Generator<void, CommittedSlot> {
    const { collection } = plan;
    const slot = this.#slotOf(plan.id);
    const before = this.#committed.slots.get(plan.id) ?? NO_SLOT;
    const results = new Map<string, CellResult | undefined>();
    const chunks = new Map<string, Chunk | undefined>();
    const evaluate = cellsOf({ plan, slot, around, counts });
    counts.total += collection.size;
    slot.follow(collection, before.collection);
    for (const key of changedKeys(collection, before.collection, slot)) {
      const [old, now] = [before.results.get(key), evaluate(key)];
      if (old === now) continue;
      results.set(key, now);
      chunks.set(key, textOf(now));
      updates.push({ owner: cellOwner(plan, key), before: old, after: now });
      yield;
    }
    return {
      collection,
      results: yield* withSlices(before.results, results),
      chunks: yield* withSlices(before.chunks, chunks),
    };
  }

  #slotOf(id: string): Slot<CellResult> {
    const known = this.#slots.get(id);
    if (known !== undefined) return known;
    const slot = new Slot<CellResult>(this.#index);
    this.#slots.set(id, slot);
    return slot;
  }

  /** The render is complete: it is what the next one starts from, and cells that left are forgotten. */
  #settle(committed: Committed): void {
    this.#committed = committed;
    this.#roots.settle();
    for (const [id, slot] of this.#slots) {
      if (committed.slots.has(id)) slot.settle();
      else {
        slot.clear();
        this.#slots.delete(id);
      }
    }
  }
}
