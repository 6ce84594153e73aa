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
import { closedVersion, needsProtection } from './stand-in.ts';
import type { ReadsFor } from './state.ts';
import { isUnchanged, placesOf } from './suspects.ts';

/** What is known when somebody is to be blamed. */
export interface Charge {
  /** What could not be served, and what could be before. */
  readonly bad: IndexedSnapshot;
  readonly good: IndexedSnapshot | undefined;
  /** It could be served under another configuration. */
  readonly goodIsOfAnother: boolean;
  /** What is rendered now, with which quarantine. */
  readonly now: IndexedSnapshot;
  readonly quarantine: Quarantine;
  readonly foundBy: Quarantined['foundBy'];
  /** Sources of protective templates. */
  readonly protective: ReadonlySet<string>;
  readonly readsFor: ReadsFor;
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
  const guilty = new Map<string, Accused>();
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
      const worst = worstOf([...(guilty.get(id)?.problems ?? []), problem], charge.protective);
      guilty.set(id, { object, differences, problems: worst });
    }
  }
  return { guilty: quarantined([...guilty.values()], charge), innocent: [...innocent], outdated };
};

/** The problem that decides, alone: of several of one object a fault of its protection. */
export const worstOf = (
  problems: readonly Problem[],
  protective: ReadonlySet<string>,
): readonly Problem[] => {
  const worst = problems.find((problem) => protects(problem, protective)) ?? problems[0];
  return worst === undefined ? [] : [worst];
};

/** What could be served before; nothing for what is in quarantine with an earlier version already. */
const beforeAt = (place: Place, { good, quarantine }: Charge): KubeObject | undefined =>
  quarantine.has(placeId(place)) ? undefined : objectAt(good, place);

/** An object and why it cannot be served. */
export interface Accused {
  readonly object: ObjectRef;
  /** Where it is watched, and what could be served there. */
  readonly differences: readonly (Place & { readonly before: KubeObject | undefined })[];
  /** The first one is what is told. */
  readonly problems: readonly Problem[];
}

/** Objects in quarantine, each with what stands in for it. */
export const quarantined = (
  accused: readonly Accused[],
  charge: Charge,
): readonly Quarantined[] => {
  const readsOf = charge.readsFor(accused.map(({ object }) => object));
  return accused.map(({ object, differences, problems }) => {
    const [cause = UNKNOWN] = problems;
    const isProtection = protects(cause, charge.protective);
    const substitutes = differences.map((one) => substituteFor(one, isProtection, charge));
    return {
      ...{ object, substitutes, foundBy: charge.foundBy },
      stand: standOf(substitutes, isProtection),
      reads: withReferences(readsOf(object), substitutes),
      cause: { ...cause, object },
    };
  });
};

const UNKNOWN: Problem = {
  severity: 'error',
  reason: 'TemplateError',
  message: 'With this object nothing can be served.',
  nextStep: 'Change the object.',
};

const inQuarantine = (quarantine: Quarantine, { kind, namespace, name }: ObjectRef) =>
  quarantinedObjects(quarantine).filter(
    ({ object }) => object.kind === kind && object.namespace === namespace && object.name === name,
  );

const isOutdated = (place: Place, { bad, now }: Charge): boolean =>
  objectAt(bad, place) !== objectAt(now, place);

/** Of another configuration nothing is known to be good: what it could serve may be at fault now. */
const mayBeAtFault = (
  place: Place,
  { bad, good, goodIsOfAnother, quarantine, cleared }: Charge,
): boolean => {
  if (quarantine.has(placeId(place))) return true;
  const version = objectAt(bad, place);
  if (cleared.has(placeId(place)) && cleared.get(placeId(place)) === version) return false;
  return good === undefined || goodIsOfAnother || !isUnchanged(objectAt(good, place), version);
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
  const known = charge.quarantine.get(placeId(place));
  const earlier = known?.substitutes.find((one) => one.resource === resource && one.key === key);
  if (earlier !== undefined) {
    const mustBeClosed =
      (isProtection || known?.stand === 'closed') && needsProtection(earlier.refused);
    return { ...earlier, instead: mustBeClosed ? undefined : before };
  }
  const refused = objectAt(charge.bad, place);
  return { resource, key, refused, instead: insteadOf(refused, before, isProtection) };
};

const insteadOf = (
  refused: KubeObject | undefined,
  before: KubeObject | undefined,
  isProtection: boolean,
): KubeObject | undefined => {
  if (isProtection && needsProtection(refused)) return refused && closedVersion(refused);
  return isUnchanged(before, refused) ? undefined : before;
};

const standOf = (substitutes: readonly Substitute[], isProtection: boolean): Stand => {
  const [first] = substitutes;
  const stands = substitutes.some(({ instead }) => instead !== undefined);
  const isClosed = isProtection && needsProtection(first?.refused);
  if (isClosed && (stands || first?.refused?.kind === 'Service')) return 'closed';
  return stands ? 'accepted' : 'nothing';
};

/** A cure may lie in what its cells looked at, and in what it names and is not there. */
const withReferences = (
  read: ReadonlySet<string>,
  substitutes: readonly Substitute[],
): ReadonlySet<string> => {
  const reads = new Set(read);
  for (const { refused } of substitutes) {
    for (const { resource, namespace, name } of refused ? referencesOf(refused) : []) {
      reads.add(JSON.stringify(['get', resource, namespace, name]));
    }
  }
  return reads;
};
