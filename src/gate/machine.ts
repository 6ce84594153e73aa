import type { Digest } from '../protocol/protocol.ts';
import type { GatePhase, Verdict } from './verdict.ts';

/** All that the machine needs to know of a render. */
export interface Gated {
  readonly plan: { readonly id: Digest };
}

/** A render in the order in which it came; a later one has a higher sequence. */
export interface Candidate<R extends Gated> {
  readonly sequence: number;
  readonly render: R;
}

/** A plan that went out. */
interface Sent {
  readonly sequence: number;
  readonly id: Digest;
}

/** A verdict that judges; an inconclusive one does not and is never remembered. */
export type Judgement = Exclude<Verdict, { result: 'inconclusive' }>;

/** The latch between rendering and the fleet for one leader term (docs/gate.md). Immutable. */
export interface GateState<R extends Gated> {
  readonly epoch: number;
  readonly phase: GatePhase;
  /** Newest render, whether it went out or not. */
  readonly newest: Candidate<R> | undefined;
  /** What pods get: the newest render that went out, or the accepted one after a refusal. */
  readonly dispatched: Candidate<R> | undefined;
  /** Newest render that passed in this term. */
  readonly accepted: Candidate<R> | undefined;
  /** What went out after the accepted render, oldest first: what a refusal may have to take back. */
  readonly unaccepted: readonly Sent[];
  /** Plans that the refusals of this hold took back. */
  readonly reverted: readonly Digest[];
  /** Plans nobody may stay on without having loaded them; empty unless held after a refusal. */
  readonly refused: ReadonlySet<Digest>;
  /** Judgements of this term by plan id, least recently used first, at most {@link REMEMBERED}. */
  readonly verdicts: ReadonlyMap<Digest, Judgement>;
  /** Inconclusive checks in a row. */
  readonly attempts: number;
  /** True from an inconclusive check until its retry is due. */
  readonly waiting: boolean;
}

/** What happens to a gate. Loss of leadership is not among it: the caller drops the state. */
export type GateEvent<R extends Gated> =
  | { readonly type: 'render'; readonly render: R }
  | { readonly type: 'checked'; readonly candidate: Candidate<R>; readonly verdict: Verdict }
  /** The time that {@link retryMs} gave is over. */
  | { readonly type: 'retry' };

/** Options of {@link initialGate}. */
export interface InitialGateOptions {
  /** The first render of a term is held until its check passes. Default: false, it goes out at once. */
  readonly firstRenderWaits?: boolean;
}

/** How many judgements a term remembers. */
export const REMEMBERED = 16;

const NO_IDS: ReadonlySet<Digest> = new Set();
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 30_000;

/** The gate at the start of a leader term: open, with nothing remembered. */
export const initialGate = <R extends Gated>(
  epoch: number,
  { firstRenderWaits = false }: InitialGateOptions = {},
): GateState<R> => ({
  epoch,
  phase: firstRenderWaits ? 'holding' : 'open',
  newest: undefined,
  dispatched: undefined,
  accepted: undefined,
  unaccepted: [],
  reverted: [],
  refused: NO_IDS,
  verdicts: new Map(),
  attempts: 0,
  waiting: false,
});

/** The gate after one event: each row of the table in docs/gate.md is a branch of it. Pure. */
export const gateStep = <R extends Gated>(
  state: GateState<R>,
  event: GateEvent<R>,
): GateState<R> => {
  switch (event.type) {
    case 'render':
      return onRender(state, event.render);
    case 'checked':
      return onChecked(state, event.candidate, event.verdict);
    case 'retry':
      return state.waiting ? { ...state, waiting: false } : state;
  }
};

/** The judgement of a plan, as far as this term remembers it. */
export const judgementOf = <R extends Gated>(
  { verdicts, accepted }: GateState<R>,
  id: Digest,
): Judgement | undefined =>
  accepted?.render.plan.id === id ? { result: 'passed' } : verdicts.get(id);

const onRender = <R extends Gated>(state: GateState<R>, render: R): GateState<R> => {
  const { newest } = state;
  if (newest?.render.plan.id === render.plan.id) return refresh(state, { ...newest, render });
  const candidate = { sequence: (newest?.sequence ?? 0) + 1, render };
  return offer({ ...state, newest: candidate }, candidate);
};

/** The same plan again, from a newer snapshot: nothing to judge anew. */
const refresh = <R extends Gated>(state: GateState<R>, again: Candidate<R>): GateState<R> => {
  const renewed = (old: Candidate<R> | undefined): Candidate<R> | undefined =>
    old?.render.plan.id === again.render.plan.id ? again : old;
  return {
    ...state,
    newest: again,
    dispatched: renewed(state.dispatched),
    accepted: renewed(state.accepted),
  };
};

/** The newest render meets the latch: judged at once where its plan is known. */
const offer = <R extends Gated>(state: GateState<R>, candidate: Candidate<R>): GateState<R> => {
  const { id } = candidate.render.plan;
  const judgement = judgementOf(state, id);
  if (judgement !== undefined) {
    return judged({ ...state, verdicts: remember(state.verdicts, id, judgement) }, candidate);
  }
  return state.phase === 'open' ? dispatch(state, candidate) : state;
};

const dispatch = <R extends Gated>(state: GateState<R>, candidate: Candidate<R>): GateState<R> => ({
  ...state,
  dispatched: candidate,
  unaccepted: [...state.unaccepted, { sequence: candidate.sequence, id: candidate.render.plan.id }],
});

const onChecked = <R extends Gated>(
  state: GateState<R>,
  candidate: Candidate<R>,
  verdict: Verdict,
): GateState<R> => {
  if (verdict.result !== 'inconclusive') {
    const { id } = candidate.render.plan;
    return judged({ ...state, verdicts: remember(state.verdicts, id, verdict) }, candidate);
  }
  // Something newer was accepted meanwhile: whether this one is good no longer matters.
  if (isSettled(state, candidate)) return state;
  return {
    ...state,
    phase: state.phase === 'open' ? 'holding' : state.phase,
    attempts: state.attempts + 1,
    waiting: true,
  };
};

const judged = <R extends Gated>(state: GateState<R>, candidate: Candidate<R>): GateState<R> => {
  if (isSettled(state, candidate)) return state;
  const resumed = { ...state, attempts: 0, waiting: false };
  return state.verdicts.get(candidate.render.plan.id)?.result === 'passed'
    ? onPass(resumed, candidate)
    : onRefusal(resumed, candidate);
};

/** The gate never moves backwards: a verdict on what is older than the accepted render is only remembered. */
const isSettled = <R extends Gated>(
  { accepted }: GateState<R>,
  { sequence }: Candidate<R>,
): boolean => accepted !== undefined && sequence <= accepted.sequence;

const onPass = <R extends Gated>(state: GateState<R>, checked: Candidate<R>): GateState<R> => {
  const { newest, dispatched } = state;
  // A plan that came again while its check ran is accepted as the newest render with its id.
  const accepted = newest?.render.plan.id === checked.render.plan.id ? newest : checked;
  const ahead = dispatched !== undefined && dispatched.sequence > accepted.sequence;
  const open: GateState<R> = {
    ...state,
    phase: 'open',
    accepted,
    dispatched: ahead ? dispatched : accepted,
    unaccepted: state.unaccepted.filter(({ sequence }) => sequence > accepted.sequence),
    reverted: [],
    refused: NO_IDS,
  };
  const kept = newest !== undefined && newest.sequence > (open.dispatched?.sequence ?? 0);
  return kept ? offer(open, newest) : open;
};

const onRefusal = <R extends Gated>(state: GateState<R>, checked: Candidate<R>): GateState<R> => {
  const suspects = sentSince(state.unaccepted, checked);
  const wentOut = suspects.length > 0;
  const reverted = [...state.reverted, ...suspects.map((sent) => sent.id)];
  return {
    ...state,
    // Held for want of a verdict, a first refusal still finds its render in the fleet: that is not yet pinned.
    phase: state.phase === 'open' || (state.phase === 'holding' && wentOut) ? 'holding' : 'pinned',
    dispatched: wentOut ? state.accepted : state.dispatched,
    unaccepted: wentOut ? [] : state.unaccepted,
    reverted,
    refused: new Set([...reverted, ...refusedIds(state)]),
  };
};

/** The plan that was checked and what went out after it, counted from the first time it did. */
const sentSince = <R extends Gated>(
  sent: readonly Sent[],
  checked: Candidate<R>,
): readonly Sent[] => {
  const first = sent.find(({ id }) => id === checked.render.plan.id);
  const since = Math.min(first?.sequence ?? Infinity, checked.sequence);
  return sent.filter(({ sequence }) => sequence >= since);
};

const refusedIds = <R extends Gated>({ verdicts }: GateState<R>): Digest[] =>
  [...verdicts].filter(([, { result }]) => result === 'refused').map(([id]) => id);

const remember = (
  verdicts: ReadonlyMap<Digest, Judgement>,
  id: Digest,
  judgement: Judgement,
): ReadonlyMap<Digest, Judgement> => {
  const others = [...verdicts].filter(([known]) => known !== id);
  return new Map([...others.slice(1 - REMEMBERED), [id, judgement]]);
};

/**
 * What is to be checked next: the newest render that nobody has judged, else what the fleet holds without judgement.
 * `undefined`: nothing, or a retry is not yet due.
 */
export const wanted = <R extends Gated>(state: GateState<R>): Candidate<R> | undefined =>
  state.waiting
    ? undefined
    : [state.newest, state.dispatched].find(
        (candidate) =>
          candidate !== undefined && judgementOf(state, candidate.render.plan.id) === undefined,
      );

/** Milliseconds from the last inconclusive check to its retry: 1 s, doubling to 30 s; `undefined`: none is due. */
export const retryMs = <R extends Gated>({
  waiting,
  attempts,
}: GateState<R>): number | undefined =>
  waiting ? Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), LAST_RETRY_MS) : undefined;

/** Whether checks follow one another without rest. */
export const isUrgent = <R extends Gated>({ phase }: GateState<R>): boolean => phase !== 'open';

/** {@link GateState} as the level the fleet is brought to. */
export interface GateLevel<R extends Gated> {
  readonly epoch: number;
  readonly phase: GatePhase;
  readonly target: R | undefined;
  readonly accepted: R | undefined;
  readonly refused: ReadonlySet<Digest>;
  readonly servers: R | undefined;
}

/** What the fleet shall hold: `Desired` of the ports without the pacing, which is the schedule's. */
export const toDesired = <R extends Gated>(state: GateState<R>): GateLevel<R> => ({
  epoch: state.epoch,
  phase: state.phase,
  target: state.dispatched?.render,
  accepted: state.accepted?.render,
  refused: state.refused,
  servers: state.phase === 'open' ? undefined : state.newest?.render,
});
