/** The quarantine over random histories, with a model of rendering and checking that has every kind of fault. */
import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { nextDue, quarantineStep } from '../../../src/quarantine/machine.ts';
import { type Quarantined, placeId, substitute } from '../../../src/quarantine/quarantine.ts';
import { search } from '../../../src/quarantine/search.ts';
import {
  initialQuarantine,
  type QuarantineEvent,
  type QuarantineState,
  type ReadsFor,
  type Wanted,
} from '../../../src/quarantine/state.ts';
import { type Suspect, suspectsBetween } from '../../../src/quarantine/suspects.ts';
import {
  applyBatch,
  emptySnapshot,
  type IndexedSnapshot,
} from '../../../src/snapshot/apply-batch.ts';
import { type KubeObject, objectRef } from '../../../src/snapshot/objects.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { sha256 as digest } from '../../../src/digest.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const FAULTS = [
  ...(['none', 'render', 'render-unnamed', 'check', 'check-unnamed', 'pair'] as const),
  'protection',
] as const;
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];
const THINGS = watched('things');

interface Spec {
  readonly fault: (typeof FAULTS)[number];
  /** Name of a thing without which this one cannot be rendered. */
  readonly needs: string | undefined;
}

/** What is rendered for a closed one has neither fault nor need. */
const specOf = (object: KubeObject): Spec => {
  const { fault = 'none', needs } = object['spec'] as Partial<Spec>;
  return { fault, needs };
};
const isClosed = ({ metadata }: KubeObject): boolean =>
  metadata.resourceVersion?.startsWith('closed:') === true;
const objectsOf = (snapshot: IndexedSnapshot): readonly KubeObject[] =>
  snapshot.store('things').list();
const missesNeed = (object: KubeObject, snapshot: IndexedSnapshot): boolean => {
  const { needs } = specOf(object);
  return needs !== undefined && snapshot.store('things').get('default', needs) === undefined;
};

const problem = (message: string, object?: KubeObject): Problem => ({
  severity: 'error',
  reason: 'Model',
  message,
  nextStep: '',
  place: { source: 'template', line: 1 },
  ...(object && { object: objectRef(object) }),
});

const PROTECTION = { source: 'protection', line: 1 };

/** Everything that fails a render, as the cells tell it. */
const renderProblems = (snapshot: IndexedSnapshot): readonly Problem[] =>
  objectsOf(snapshot).flatMap((object) => {
    if (specOf(object).fault === 'render' || missesNeed(object, snapshot)) {
      return [problem('named', object)];
    }
    if (specOf(object).fault === 'protection') {
      return [problem('other', object), { ...problem('named', object), place: PROTECTION }];
    }
    return specOf(object).fault === 'render-unnamed' ? [problem('unnamed')] : [];
  });

/** What HAProxy says: of named faults only the first one. */
const checkProblems = (snapshot: IndexedSnapshot): readonly Problem[] => {
  const all = objectsOf(snapshot);
  const named = all.find((object) => specOf(object).fault === 'check');
  if (named !== undefined) return [problem('named', named)];
  const pairs = all.filter((object) => specOf(object).fault === 'pair').length;
  const isUnnamed = all.some((object) => specOf(object).fault === 'check-unnamed') || pairs > 1;
  return isUnnamed ? [problem('unnamed')] : [];
};

const canServe = (snapshot: IndexedSnapshot, by: Wanted['by']): boolean =>
  renderProblems(snapshot).length === 0 &&
  (by === 'render' || checkProblems(snapshot).length === 0);

const searched = ({ bad, good, by }: Wanted): readonly Suspect[] | undefined => {
  const suspects = suspectsBetween(good?.snapshot, bad);
  const steps = search(suspects, { startIsGood: good !== undefined });
  for (let step = steps.next(); ;) {
    if (step.done === true) return step.value;
    const chosen = new Set(step.value);
    const held = suspects.filter((suspect) => !chosen.has(suspect));
    const quarantine = new Map(
      held.flatMap(({ object, differences }) => {
        const substitutes = differences.map(({ before, after, ...place }) => ({
          ...{ ...place, refused: after, instead: before },
        }));
        const one: Quarantined = {
          ...{ object, substitutes, stand: 'accepted', reads: new Set<string>() },
          ...{ cause: problem(''), foundBy: 'check' },
        };
        return substitutes.map((place) => [placeId(place), one] as const);
      }),
    );
    step = steps.next(canServe(substitute(undefined, bad, quarantine).rendered, by));
  }
};

/** One configuration at work, everything that follows an event included. */
class World {
  state: QuarantineState;
  rounds = 0;
  #now = 0;
  #watched = emptySnapshot([THINGS]);
  #versions = 0;

  constructor() {
    const readsFor: ReadsFor =
      () =>
      ({ name }) => {
        const object = this.#watched.store('things').get('default', name);
        const needs = object && specOf(object).needs;
        return new Set(
          needs === undefined ? [] : [JSON.stringify(['get', 'things', 'default', needs])],
        );
      };
    const facts = {
      generation: 'g',
      watched: [THINGS],
      protective: new Set(['protection']),
      readsFor,
      digest,
    };
    this.state = initialQuarantine(facts);
  }

  get watched(): IndexedSnapshot {
    return this.#watched;
  }

  get rendered(): IndexedSnapshot {
    const { current } = this.state;
    if (current === undefined) throw new TypeError('nothing was watched');
    return current.rendered;
  }

  change(changes: readonly Change[]): void {
    const batch = new Map<string, WatchEvent>();
    for (const { name, spec } of changes) batch.set(`default/${name}`, this.#event(name, spec));
    this.#watched = applyBatch(this.#watched, new Map([['things', batch]]));
    this.#now += 10_000_000;
    this.#settle({ type: 'watched', snapshot: this.#watched, now: this.#now });
    for (let times = 0; times < 3; times += 1) {
      const at = nextDue(this.state);
      if (at === undefined) break;
      this.#now = Math.max(this.#now, at);
      this.#settle({ type: 'due', now: this.#now });
    }
  }

  #event(name: string, spec: Spec | undefined): WatchEvent {
    const key = `default/${name}`;
    if (spec === undefined) return { type: 'Deleted', key };
    this.#versions += 1;
    const metadata = { uid: name, resourceVersion: String(this.#versions) };
    return { type: 'Upserted', object: kubeObject(key, { kind: 'Ingress', metadata, spec }) };
  }

  #step(event: QuarantineEvent): void {
    this.state = quarantineStep(this.state, event);
  }

  /** Renders, checks and searches until nothing moves any more. */
  #settle(event: QuarantineEvent): void {
    this.#step(event);
    for (let before: IndexedSnapshot | undefined; before !== this.rendered || this.state.wanted;) {
      before = this.rendered;
      this.rounds += 1;
      expect(this.rounds).toBeLessThan(2_000);
      const { wanted } = this.state;
      if (wanted !== undefined)
        this.#step({ type: 'searched', wanted, found: searched(wanted), now: this.#now });
      else this.#serve(this.rendered);
    }
  }

  #serve(snapshot: IndexedSnapshot): void {
    const failed = renderProblems(snapshot);
    if (failed.length > 0) {
      this.#step({ type: 'failed', snapshot, problems: failed });
      return;
    }
    this.#step({ type: 'rendered', snapshot });
    const problems = checkProblems(snapshot);
    const verdict = { snapshot, generation: 'g' };
    this.#step(
      problems.length === 0
        ? { type: 'accepted', ...verdict }
        : { type: 'refused', ...verdict, problems },
    );
  }
}

interface Change {
  readonly name: string;
  /** Undefined: it is deleted. */
  readonly spec: Spec | undefined;
}

/** Names of things whose protection is at fault, and for which something open is rendered. */
const unprotected = ({ watched: all, rendered }: World): readonly string[] =>
  objectsOf(all)
    .filter((object) => specOf(object).fault === 'protection')
    // What fails before it comes to its protection is replaced as anything else.
    .filter((object) => !missesNeed(object, all) && !missesNeed(object, rendered))
    .map(({ metadata }) => metadata.name)
    .filter((name) => {
      const found = rendered.store('things').get('default', name);
      return found !== undefined && !isClosed(found);
    });

const change: fc.Arbitrary<Change> = fc.record({
  name: fc.constantFrom(...NAMES),
  spec: fc.option(
    fc.record({
      fault: fc.oneof(
        { weight: 3, arbitrary: fc.constant('none' as const) },
        { weight: 2, arbitrary: fc.constantFrom(...FAULTS) },
      ),
      needs: fc.option(fc.constantFrom(...NAMES), { nil: undefined, freq: 4 }),
    }),
    { nil: undefined, freq: 5 },
  ),
});

const history = fc.array(fc.array(change, { minLength: 1, maxLength: 5 }), { maxLength: 12 });

/** Nothing is wrong with it, nor with what it needs, nor with what that needs; no two need each other. */
const isFaultless = (
  object: KubeObject | undefined,
  world: World,
  seen: ReadonlySet<string> = new Set(),
): boolean => {
  if (object === undefined || specOf(object).fault !== 'none') return false;
  const { needs } = specOf(object);
  if (needs === undefined) return true;
  if (seen.has(needs)) return false;
  const needed = world.watched.store('things').get('default', needs);
  return isFaultless(needed, world, new Set([...seen, needs]));
};

/** What the changes of a snapshot make of the one before. */
const followed = (before: IndexedSnapshot, { changes }: IndexedSnapshot): readonly KubeObject[] => {
  const objects = new Map(objectsOf(before).map((one) => [one.metadata.name, one]));
  for (const { key, before: old, after } of changes) {
    const name = key.split('/')[1] ?? '';
    expect(objects.get(name)).toBe(old);
    if (after === undefined) objects.delete(name);
    else objects.set(name, after);
  }
  return [...objects.values()].sort((left, right) =>
    left.metadata.name < right.metadata.name ? -1 : 1,
  );
};

describe('quarantine', () => {
  test.prop([history], { numRuns: 400 })(
    'R6: what is rendered can be served, and every object without fault is rendered as it is',
    (batches) => {
      const world = new World();
      for (const batch of batches) {
        world.change(batch);
        expect(canServe(world.rendered, 'check')).toBe(true);
        expect(unprotected(world)).toStrictEqual([]);
        for (const object of objectsOf(world.watched)) {
          if (!isFaultless(object, world)) continue;
          const { name } = object.metadata;
          expect(world.rendered.store('things').get('default', name)).toBe(object);
        }
      }
    },
  );

  test.prop([history], { numRuns: 150 })(
    'R6: nothing stays in quarantine when nothing is at fault any more',
    (batches) => {
      const world = new World();
      for (const batch of batches) world.change(batch);
      world.change(NAMES.map((name) => ({ name, spec: { fault: 'none', needs: undefined } })));
      expect([...world.state.quarantine.keys()]).toStrictEqual([]);
      expect(objectsOf(world.rendered)).toStrictEqual(objectsOf(world.watched));
    },
  );

  test.prop([history], { numRuns: 150 })(
    'P6: what is rendered follows from version to version, and its changes lead there',
    (batches) => {
      const world = new World();
      let before: IndexedSnapshot | undefined;
      for (const batch of batches) {
        world.change(batch);
        const { rendered } = world;
        if (before !== undefined && rendered.version === before.version + 1) {
          expect(followed(before, rendered)).toStrictEqual(objectsOf(rendered));
        }
        before = rendered;
      }
    },
  );
});
