/** What goes into quarantine and what leaves it, as a pure machine: events in, the next state out. */
import { changesBetween, type IndexedSnapshot } from '../snapshot/apply-batch.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { blame, type Charge, quarantined, worstOf } from './blame.ts';
import {
  objectAt,
  placeId,
  type Quarantined,
  substitute,
  withObjects,
  withoutObjects,
} from './quarantine.ts';
import { dueAgain, nextReturn, release } from './release.ts';
import type { Good, QuarantineEvent, QuarantineState, Wanted } from './state.ts';
import { fromStored, type StoredQuarantine } from './stored.ts';

/** The quarantine after one event. */
export const quarantineStep = (state: QuarantineState, event: QuarantineEvent): QuarantineState => {
  switch (event.type) {
    case 'watched':
      return onWatched(state, event.snapshot, event.now);
    case 'rendered':
      return onRendered(state, event.snapshot);
    case 'failed':
      return onFailed(state, event);
    case 'accepted':
      return onAccepted(state, event);
    case 'refused':
      return onRefused(state, event);
    case 'searched':
      return onSearched(state, event);
    case 'restored':
      return onRestored(state, event.stored);
    case 'due':
      return onDue(state, event.now);
  }
};

const onWatched = (
  before: QuarantineState,
  snapshot: IndexedSnapshot,
  now: number,
): QuarantineState => {
  const { current, cleared, facts, stored } = before;
  const state = { ...before, clock: now };
  if (stored !== undefined) {
    const quarantine = fromStored(stored, snapshot, facts.digest);
    return shown({ ...state, stored: undefined, quarantine }, snapshot);
  }
  if (current === undefined || isQuiet(state)) return shown(state, snapshot);
  const changes = changesBetween(current.watched, snapshot);
  const ids = new Set(changes.map(placeId));
  const next = release(state, { changes, snapshot, now, watched: facts.watched });
  const kept = new Map([...cleared].filter(([id]) => !ids.has(id)));
  return shown({ ...state, ...next, cleared: kept }, snapshot);
};

/** Nothing is remembered that a change could end. */
const isQuiet = ({ quarantine, cleared, returns }: QuarantineState): boolean =>
  quarantine.size === 0 && cleared.size === 0 && returns.size === 0;

/** The state with what it makes of the newest snapshot. */
const shown = (
  state: QuarantineState,
  snapshot: IndexedSnapshot | undefined = state.current?.watched,
): QuarantineState =>
  snapshot === undefined
    ? state
    : { ...state, current: substitute(state.current, snapshot, state.quarantine) };

/** What is found here counts for more than what is told. */
const onRestored = (state: QuarantineState, stored: StoredQuarantine): QuarantineState => {
  const { facts, current } = state;
  if (stored.generation !== facts.generation) return state;
  if (current === undefined) return { ...state, stored };
  const told = fromStored(stored, current.watched, facts.digest);
  const news = [...told].filter(([id]) => !state.quarantine.has(id));
  if (news.length === 0) return state;
  return shown({ ...state, quarantine: new Map([...news, ...state.quarantine]) });
};

const onDue = (before: QuarantineState, now: number): QuarantineState => {
  const state = { ...before, clock: now };
  const { current, complaint, facts } = state;
  if (current === undefined) return state;
  const held = { changes: [], snapshot: current.watched, now, watched: facts.watched };
  const next = shown({ ...state, ...release(state, held) });
  return complaint === undefined ? next : searching(next, complaint);
};

/** Milliseconds on the clock of the events at which something is to be tried again; undefined: nothing is. */
export const nextDue = (state: QuarantineState): number | undefined => {
  const { complaint, wanted, searchAgainAt } = state;
  const search = complaint !== undefined && wanted === undefined ? searchAgainAt : undefined;
  const times = [nextReturn(state), search].filter((time) => time !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
};

const onRendered = (state: QuarantineState, snapshot: IndexedSnapshot): QuarantineState => {
  const rendered = { snapshot, generation: state.facts.generation };
  return settled({ ...state, rendered }, snapshot, 'render');
};

const onAccepted = (state: QuarantineState, { snapshot, generation }: Good): QuarantineState => {
  const next = { ...state, accepted: { snapshot, generation } };
  return generation === state.facts.generation ? settled(next, snapshot, 'check') : next;
};

/** Of a render that is not the newest any more nothing follows: the newest is on its way. */
const onFailed = (
  state: QuarantineState,
  { snapshot, problems }: Extract<QuarantineEvent, { type: 'failed' }>,
): QuarantineState =>
  snapshot === state.current?.rendered
    ? accuse(state, { bad: snapshot, problems, by: 'render' })
    : state;

/** What rendered and is refused is nothing to go back to, for renders either. */
const onRefused = (
  state: QuarantineState,
  { snapshot, generation, problems }: Extract<QuarantineEvent, { type: 'refused' }>,
): QuarantineState => {
  const { rendered, accepted, facts } = state;
  if (generation !== facts.generation) return state;
  const isRefused = rendered !== undefined && rendered.snapshot.version >= snapshot.version;
  const good = accepted?.generation === facts.generation ? accepted : undefined;
  const next = isRefused ? { ...state, rendered: good } : state;
  return accuse(next, { bad: snapshot, problems, by: 'check' });
};

/** What was complained of up to this snapshot no longer matters. */
const settled = (
  state: QuarantineState,
  { version }: IndexedSnapshot,
  by: Wanted['by'],
): QuarantineState => {
  const isOver = (one: Wanted | undefined): boolean => one?.by === by && one.bad.version <= version;
  const next = { ...state, wanted: isOver(state.wanted) ? undefined : state.wanted };
  return isOver(state.complaint)
    ? { ...next, complaint: undefined, searchAgainAt: undefined }
    : next;
};

/** Who is named goes into quarantine; where nobody is, it is searched. */
const accuse = (
  state: QuarantineState,
  { bad, problems, by }: Omit<Wanted, 'good'>,
): QuarantineState => {
  const good = by === 'check' ? state.accepted : (state.rendered ?? state.accepted);
  const complaint: Wanted = { bad, good, problems, by };
  const { guilty, innocent, outdated } = blame(problems, chargeOf(complaint, state));
  const kept = withoutObjects(state.quarantine, new Set(innocent));
  const cleared = clearedWith(state.cleared, innocent);
  const next = shown({ ...state, cleared, quarantine: withObjects(kept, guilty) });
  if (guilty.length > 0 || outdated) return { ...next, complaint: undefined };
  // Who was let out belongs to what is to be searched.
  const rendered = innocent.length > 0 ? next.current?.rendered : undefined;
  return searching(next, { ...complaint, bad: rendered ?? bad });
};

/** One search at a time, and none too soon after one that found nobody. */
const searching = (state: QuarantineState, complaint: Wanted): QuarantineState => {
  const { searchAgainAt = -Infinity, clock } = state;
  const wanted = clock < searchAgainAt ? undefined : complaint;
  return { ...state, complaint, wanted: state.wanted ?? wanted };
};

const clearedWith = (
  cleared: QuarantineState['cleared'],
  innocent: readonly Quarantined[],
): QuarantineState['cleared'] => {
  const all = new Map(cleared);
  for (const { substitutes } of innocent) {
    for (const one of substitutes) all.set(placeId(one), one.refused);
  }
  return all;
};

const chargeOf = (
  { bad, good, by }: Omit<Wanted, 'problems'>,
  { current, quarantine, cleared, facts }: QuarantineState,
): Charge => ({
  ...{ bad, good: good?.snapshot, now: current?.rendered ?? bad, foundBy: by },
  goodIsOfAnother: good !== undefined && good.generation !== facts.generation,
  ...{ quarantine, cleared, protective: facts.protective, readsFor: facts.readsFor },
});

/** How long after a search that found nobody at fault the next one may begin, in milliseconds. */
const SEARCH_AGAIN_MS = 60_000;

const onSearched = (
  before: QuarantineState,
  { wanted, found = [], now }: Extract<QuarantineEvent, { type: 'searched' }>,
): QuarantineState => {
  const { current, complaint } = before;
  if (before.wanted !== wanted || current === undefined) return before;
  const state = { ...before, wanted: undefined, clock: now };
  const accused = found
    .filter(({ differences }) =>
      differences.every((one) => objectAt(current.rendered, one) === one.after),
    )
    .map(({ object, differences }) => ({
      ...{ object, differences, problems: causesOf(object, wanted, state.facts.protective) },
    }));
  if (accused.length > 0) {
    const objects = quarantined(accused, chargeOf(wanted, state));
    const returns = dueAgain(state.returns, objects, now);
    const quarantine = withObjects(state.quarantine, objects);
    return shown({ ...state, complaint: undefined, quarantine, returns });
  }
  // It was found too late: what is rendered now has to be searched by itself.
  const isNewer = complaint?.bad === current.rendered && complaint.bad !== wanted.bad;
  return isNewer && found.length > 0
    ? { ...state, wanted: complaint }
    : { ...state, searchAgainAt: now + SEARCH_AGAIN_MS };
};

/** What is said about the object, else about anything. */
const causesOf = (
  { kind, namespace, name }: ObjectRef,
  { problems }: Wanted,
  protective: ReadonlySet<string>,
): readonly Problem[] => {
  const about = problems.filter(
    ({ object }) => object?.kind === kind && object.namespace === namespace && object.name === name,
  );
  return worstOf(about.length > 0 ? about : problems, protective);
};
