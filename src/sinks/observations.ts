import { AgentError, type AgentNotification, type Desired, type Pod } from '../ports.ts';
import type { AgentState, ApplyOutcome } from '../protocol/answers.ts';
import type { Digest } from '../protocol/protocol.ts';
import { driftedFiles, type Decision, type PodKnowledge } from './decide.ts';

/** What was known before a state was read, and what is known with it. */
export interface Learnt {
  readonly before: PodKnowledge | undefined;
  readonly known: PodKnowledge;
  /** `atMs` of the newest reload told so far, 0 for none; undefined when it is not known, which was told last. */
  readonly lastReloadAt: number | undefined;
  /** Plan of a scheduled reload whose result nobody has read yet. */
  readonly awaited: Digest | undefined;
}

/** What a state tells besides itself: reloads that ended meanwhile, files and workers that changed behind our back. */
export const observations = (
  { pod, verify }: { readonly pod: Pod; readonly verify: boolean },
  state: AgentState,
  learnt: Learnt,
): readonly AgentNotification[] => [
  { type: 'AgentState', pod, state },
  ...reloadDone(pod, state, learnt),
  ...(verify ? fileDrift(pod, learnt.known) : []),
  ...repairedDrift(pod, state),
  ...workerDrift(pod, learnt),
];

const reloadDone = (
  pod: Pod,
  { lastReload }: AgentState,
  { lastReloadAt, awaited }: Learnt,
): readonly AgentNotification[] => {
  if (lastReload === null) return [];
  const isNews =
    lastReloadAt === undefined ? lastReload.planId === awaited : lastReload.atMs !== lastReloadAt;
  if (!isNews) return [];
  const { planId, ok, message, durationMs } = lastReload;
  return [{ type: 'ReloadDone', pod, planId, ok, message, durationMs }];
};

const fileDrift = (pod: Pod, known: PodKnowledge): readonly AgentNotification[] => {
  const details = known.render === undefined ? [] : driftedFiles(known, known.render);
  return details.length === 0 ? [] : [{ type: 'DriftFound', pod, kind: 'file', details }];
};

/** What the agent has found and set right by itself, so that nobody has to send anything. */
const repairedDrift = (pod: Pod, { drift }: AgentState): readonly AgentNotification[] =>
  [['mode', drift?.modes ?? []] as const, ['runtime', drift?.runtime ?? []] as const].flatMap(
    ([kind, details]) => (details.length === 0 ? [] : [{ type: 'DriftFound', pod, kind, details }]),
  );

const workerDrift = (pod: Pod, { before, known }: Learnt): readonly AgentNotification[] => {
  const replaced =
    before !== undefined && before.roles.running !== null && known.roles.running === null;
  return replaced
    ? [{ type: 'DriftFound', pod, kind: 'worker', details: ['HAProxy was replaced'] }]
    : [];
};

/** What an answered apply did, for people and metrics. */
export const appliedOf = (
  { pod, desired }: { readonly pod: Pod; readonly desired: Desired },
  { mode, planId, changes }: Extract<Decision, { do: 'apply' }>,
  { outcome, durationMs }: { readonly outcome: ApplyOutcome; readonly durationMs: number },
): AgentNotification => ({
  type: 'Applied',
  pod,
  planId,
  verdict: outcome.outcome === 'noop' ? 'noop' : changes.verdict,
  reverted: mode === 'revert' && desired.refused.size > 0,
  outcome,
  operations: changes.operations.length + changes.inPlaceOperations.length,
  reasons: changes.reasons.map((reason) => reason.message),
  causes: [...new Set(changes.reasons.map((reason) => reason.cause))],
  durationMs,
});

/** Why an agent could not be asked, in one line. */
export const messageOf = (error: unknown): string => {
  if (error instanceof AgentError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
};
