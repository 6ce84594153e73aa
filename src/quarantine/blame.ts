/** Which objects the problems of a failed render or of a refusal name. */
import { referencesOf } from '../routing/references.ts';
import type { IndexedSnapshot } from '../snapshot/apply-batch.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import {
  objectAt,
  type Place,
  placeId,
  type Quarantine,
  type Quarantined,
  quarantinedObjects,
  type Stand,
  type Substitute,
} from './quarantine.ts';
import { canBeClosed, closedVersion } from './stand-in.ts';
import { isUnchanged, placesOf } from './suspects.ts';

/** What is known when somebody is to be blamed. */
export interface Charge {
  /** What could not be served, and what could be before. */
  readonly bad: IndexedSnapshot;
  readonly good: IndexedSnapshot | undefined;
  /** What is rendered now, with which quarantine. */
  readonly now: IndexedSnapshot;
  readonly quarantine: Quarantine;
  readonly foundBy: Quarantined['foundBy'];
  /** Sources of protective templates. */
  readonly protective: ReadonlySet<string>;
  readonly readsFor: (object: ObjectRef) => ReadonlySet<string>;
  /** Versions that were blamed without effect, by place. */
  readonly cleared: ReadonlyMap<string, KubeObject | undefined>;
}

/** What comes of blaming. */
export interface Verdict {
  /** To be put into quarantine, or given another substitute. */
  readonly guilty: readonly Quarantined[];
  /** In quarantine, and blamed all the same: it is not at fault. */
  readonly innocent: readonly Quarantined[];
  /** Something blamed is another version by now, so it has to be rendered first. */
  readonly outdated: boolean;
}

/**
 * Who is named by problems, as far as it can be at fault: it differs from what was good, and taking it out was not tried
 * in vain. What is named and in quarantine already gets nothing instead of an earlier version; with nothing instead it is
 * innocent.
 */
export const blame = (problems: readonly Problem[], charge: Charge): Verdict => {
  const guilty = new Map<string, Quarantined>();
  const innocent = new Set<Quarantined>();
  let outdated = false;
  for (const problem of problems) {
    const { object, severity } = problem;
    if (object === undefined || severity !== 'error') continue;
    const places = placesOf(charge.bad, object);
    if (places.length === 0) {
      for (const known of inQuarantine(charge.quarantine, object)) innocent.add(known);
    } else if (places.some((place) => isOutdated(place, charge))) {
      outdated = true;
    } else if (places.some((place) => mayBeAtFault(place, charge))) {
      const id = places.map(placeId).join();
      const differences = places.map((place) => ({ ...place, before: beforeAt(place, charge) }));
      if (!guilty.has(id)) guilty.set(id, quarantined({ object, differences, problem }, charge));
    }
  }
  return { guilty: [...guilty.values()], innocent: [...innocent], outdated };
};

/** What could be served before; nothing for what is in quarantine with an earlier version already. */
const beforeAt = (place: Place, { good, quarantine }: Charge): KubeObject | undefined =>
  quarantine.has(placeId(place)) ? undefined : objectAt(good, place);

/** An object and why it cannot be served. */
export interface Accused {
  readonly object: ObjectRef;
  /** Where it is watched, and what could be served there. */
  readonly differences: readonly (Place & { readonly before: KubeObject | undefined })[];
  readonly problem: Problem;
}

/** An object in quarantine, with what stands in for it. */
export const quarantined = (
  { object, differences, problem }: Accused,
  charge: Charge,
): Quarantined => {
  const isProtection = protects(problem, charge.protective);
  const substitutes = differences.map((one) => substituteFor(one, isProtection, charge));
  return {
    object,
    substitutes,
    stand: standOf(substitutes, isProtection),
    reads: readsOf(object, substitutes, charge),
    cause: { ...problem, object },
    foundBy: charge.foundBy,
  };
};

const inQuarantine = (quarantine: Quarantine, { kind, namespace, name }: ObjectRef) =>
  quarantinedObjects(quarantine).filter(
    ({ object }) => object.kind === kind && object.namespace === namespace && object.name === name,
  );

const isOutdated = (place: Place, { bad, now }: Charge): boolean =>
  objectAt(bad, place) !== objectAt(now, place);

const mayBeAtFault = (place: Place, { bad, good, quarantine, cleared }: Charge): boolean => {
  if (quarantine.has(placeId(place))) return true;
  const version = objectAt(bad, place);
  const wasCleared = cleared.has(placeId(place)) && cleared.get(placeId(place)) === version;
  return !wasCleared && (good === undefined || !isUnchanged(objectAt(good, place), version));
};

/** A fault without a place may lie in anything that is printed, protection included. */
const protects = ({ place }: Problem, protective: ReadonlySet<string>): boolean =>
  place === undefined ? protective.size > 0 : protective.has(place.source);

const substituteFor = (
  { before, ...place }: Accused['differences'][number],
  isProtection: boolean,
  charge: Charge,
): Substitute => {
  const { resource, key } = place;
  const known = charge.quarantine
    .get(placeId(place))
    ?.substitutes.find((one) => one.resource === resource && one.key === key);
  if (known !== undefined) return { ...known, instead: before };
  const refused = objectAt(charge.bad, place);
  if (isProtection && refused !== undefined && canBeClosed(refused)) {
    return { resource, key, refused, instead: closedVersion(refused) };
  }
  return { resource, key, refused, instead: isUnchanged(before, refused) ? undefined : before };
};

const standOf = (substitutes: readonly Substitute[], isProtection: boolean): Stand => {
  const [first] = substitutes;
  const closes = isProtection && first?.refused !== undefined && canBeClosed(first.refused);
  if (closes) return 'closed';
  return substitutes.some(({ instead }) => instead !== undefined) ? 'accepted' : 'nothing';
};

/** A cure may lie in what its cells looked at, and in what it names and is not there. */
const readsOf = (
  object: ObjectRef,
  substitutes: readonly Substitute[],
  { readsFor }: Charge,
): ReadonlySet<string> => {
  const reads = new Set(readsFor(object));
  for (const { refused } of substitutes) {
    if (refused === undefined) continue;
    for (const { resource, namespace, name } of referencesOf(refused)) {
      reads.add(JSON.stringify(['get', resource, namespace, name]));
    }
  }
  return reads;
};
