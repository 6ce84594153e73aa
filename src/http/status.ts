import type { Isolation } from '../gate/sandbox.ts';
import type { GatePhase } from '../gate/verdict.ts';
import type { Notification } from '../ports.ts';
import type { Plan } from '../plan/plan.ts';
import type { AgentState } from '../protocol/answers.ts';
import type { Digest } from '../protocol/protocol.ts';
import type { Render } from '../render/render.ts';
import type { Quarantined } from '../quarantine/quarantine.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** What the process knows of itself: the document behind `/readyz` and `/debug/vars`. Holds no content, so no secrets. */
export interface Status {
  readonly startedAt: string;
  readonly shuttingDown: boolean;
  readonly leading: boolean;
  readonly epoch: number;
  readonly config: { readonly generation: string; readonly watched: readonly string[] } | undefined;
  readonly configProblems: readonly Problem[];
  readonly sourceProblems: readonly Problem[];
  readonly snapshot: Snapshot | undefined;
  /** The newest render; counted only when somebody looks. */
  readonly render: { readonly newest: Render; readonly durationMs: number } | undefined;
  readonly lastRenderFailure: readonly Problem[];
  /** Objects that are not rendered as they are. */
  readonly quarantine: readonly Quarantined[];
  readonly gate: GateStatus;
  readonly agents: Readonly<Record<string, AgentStatus>>;
  /** What else is to be shown. */
  readonly facts: Facts;
  /** HAProxy pods that there are; undefined before anybody looked. */
  readonly podsFound: number | undefined;
  /** HAProxy pods that there are from the start: 1 in standalone, 0 where they come and go. */
  readonly minPods: number;
}

/** What the program found out about where it runs, by name. */
export interface Facts {
  readonly [name: string]: unknown;
  /** What confines the gate's checks. */
  readonly checkerIsolation?: Isolation;
}

export interface GateStatus {
  readonly phase: GatePhase;
  readonly accepted: Digest | undefined;
  readonly lastVerdict: string | undefined;
  /** The plan that verdict is about. */
  readonly lastVerdictPlanId: Digest | undefined;
  /** HAProxy's own words, or why there was no verdict. */
  readonly lastMessage: string | undefined;
  /** Where a refusal comes from: templates and objects. */
  readonly lastProblems: readonly Problem[];
}

export interface AgentStatus {
  readonly name: string;
  readonly state: AgentState | undefined;
  /** When `state` was read, ISO 8601. */
  readonly readAt: string | undefined;
  readonly planId: Digest | undefined;
  readonly lastOutcome: string | undefined;
  /** Why the last reload was needed. */
  readonly lastReasons: readonly string[];
  readonly lastError: string | undefined;
  readonly confirmed: boolean;
}

export const initialStatus = (startedAt: string, minPods = 0): Status => ({
  startedAt,
  shuttingDown: false,
  leading: false,
  epoch: 0,
  config: undefined,
  configProblems: [],
  sourceProblems: [],
  snapshot: undefined,
  render: undefined,
  lastRenderFailure: [],
  quarantine: [],
  gate: {
    phase: 'open',
    accepted: undefined,
    lastVerdict: undefined,
    lastVerdictPlanId: undefined,
    lastMessage: undefined,
    lastProblems: [],
  },
  agents: {},
  facts: {},
  podsFound: undefined,
  minPods,
});

/** The status after one more notification, and when that came (ISO 8601) where it matters. Pure. */
export const statusStep = (status: Status, event: Notification, now?: string): Status => {
  const change = changes[event.type] as
    ((status: Status, event: Notification, now: string | undefined) => Partial<Status>) | undefined;
  return change === undefined ? status : { ...status, ...change(status, event, now) };
};

type Of<T extends Notification['type']> = Extract<Notification, { type: T }>;
type Changes = {
  readonly [T in Notification['type']]?: (
    status: Status,
    event: Of<T>,
    now: string | undefined,
  ) => Partial<Status>;
};

const changes: Changes = {
  ConfigLoaded: (_, { generation, watched }) => ({
    config: { generation, watched },
    configProblems: [],
  }),
  ConfigRefused: (_, { problems }) => ({ configProblems: problems }),
  SourceProblems: (_, { problems }) => ({ sourceProblems: problems }),
  Snapshot: (_, { snapshot }) => ({ snapshot }),
  Rendered: (_, { render, durationMs }) => ({
    render: { newest: render, durationMs },
    lastRenderFailure: [],
  }),
  RenderFailed: (_, { failure }) => ({ lastRenderFailure: failure.problems }),
  Quarantine: (_, { objects }) => ({ quarantine: objects }),
  GateChanged: ({ gate }, { phase, accepted }) => ({ gate: { ...gate, phase, accepted } }),
  Checked: ({ gate }, { checked }) => ({
    gate: {
      ...gate,
      lastVerdict: checked.verdict.result,
      lastVerdictPlanId: checked.planId,
      lastMessage: verdictMessage(checked.verdict),
      lastProblems: checked.verdict.result === 'refused' ? checked.verdict.problems : [],
    },
  }),
  Leadership: (_, { leadership }) => ({
    leading: leadership.leading,
    ...(leadership.leading ? { epoch: leadership.epoch } : {}),
  }),
  Applied: (status, { pod, planId, outcome, reasons }) =>
    withAgent(status, pod, {
      planId,
      lastOutcome: outcome.outcome,
      lastReasons: reasons,
      lastError: outcome.error?.message,
      ...(isConfirmed(outcome.outcome) ? { confirmed: true } : {}),
    }),
  ReloadDone: (status, { pod, ok, message }) =>
    withAgent(status, pod, ok ? { confirmed: true } : { lastError: message }),
  ApplyFailed: (status, { pod, message }) => withAgent(status, pod, { lastError: message }),
  UpToDate: (status, { pod, planId }) =>
    withAgent(status, pod, { planId, lastError: undefined, confirmed: true }),
  AgentState: (status, { pod, state }, readAt) => withAgent(status, pod, { state, readAt }),
  PodGone: ({ agents }, { pod }) => ({
    agents: Object.fromEntries(Object.entries(agents).filter(([key]) => key !== pod.key)),
  }),
  PodsFound: (_, { pods }) => ({ podsFound: pods.size }),
  ShuttingDown: () => ({ shuttingDown: true }),
};

const isConfirmed = (outcome: string): boolean => outcome !== 'scheduled' && outcome !== 'rejected';

/** Whether an event says that a pod's HAProxy runs what it was sent. */
export const isConfirming = (event: Notification): boolean =>
  (event.type === 'Applied' && isConfirmed(event.outcome.outcome)) ||
  (event.type === 'ReloadDone' && event.ok) ||
  event.type === 'UpToDate';

const verdictMessage = (verdict: Of<'Checked'>['checked']['verdict']): string | undefined => {
  if (verdict.result === 'refused') return verdict.message;
  return verdict.result === 'inconclusive' ? verdict.cause : undefined;
};

const noAgent: Omit<AgentStatus, 'name'> = {
  state: undefined,
  readAt: undefined,
  planId: undefined,
  lastOutcome: undefined,
  lastReasons: [],
  lastError: undefined,
  confirmed: false,
};

const withAgent = (
  { agents }: Status,
  pod: { readonly key: string; readonly name: string },
  change: Partial<AgentStatus>,
): Partial<Status> => ({
  agents: { ...agents, [pod.key]: { ...noAgent, name: pod.name, ...agents[pod.key], ...change } },
});

/**
 * Whether this replica may take traffic for its role (R11): synced and rendered; a leader besides with one confirmed
 * apply, or with no HAProxy pod to apply to; in standalone always with its one pod's. `reasons` says what is missing.
 */
export const readiness = (
  status: Status,
): { readonly ready: boolean; readonly reasons: readonly string[] } => {
  const reasons = [...missingInside(status), ...missingInFleet(status)];
  return { ready: reasons.length === 0, reasons };
};

const missingInside = ({ shuttingDown, config, snapshot, render }: Status): readonly string[] => {
  const reasons: string[] = [];
  if (shuttingDown) reasons.push('shutting down');
  if (config === undefined) reasons.push('no valid configuration yet');
  if (snapshot === undefined) reasons.push('watched resources have not synced yet');
  else if (render === undefined) reasons.push('nothing rendered yet');
  return reasons;
};

const missingInFleet = ({ leading, podsFound, minPods, agents }: Status): readonly string[] => {
  const unknown = leading && podsFound === undefined ? ['HAProxy pods not known yet'] : [];
  const needsPod = minPods > 0 || (leading && podsFound !== undefined && podsFound > 0);
  const isConfirmedByOne = Object.values(agents).some(({ confirmed }) => confirmed);
  return needsPod && !isConfirmedByOne
    ? [...unknown, 'no apply confirmed by any HAProxy pod yet']
    : unknown;
};

/**
 * The agents by the name that logs and metrics call their pod; of several pods with one name the later ones by their keys.
 */
const agentsByName = (
  agents: Readonly<Record<string, AgentStatus>>,
): Readonly<Record<string, AgentStatus & { readonly key: string }>> => {
  const named = new Map<string, AgentStatus & { readonly key: string }>();
  for (const [key, agent] of Object.entries(agents)) {
    named.set(named.has(agent.name) ? key : agent.name, { key, ...agent });
  }
  return Object.fromEntries(named);
};

/** What `/debug/vars` shows: the status with renders and snapshots reduced to ids and counts. */
export const debugVars = (status: Status): Readonly<Record<string, unknown>> => ({
  ...status,
  snapshot: status.snapshot && {
    version: status.snapshot.version,
    objects: objectCounts(status.snapshot),
  },
  render: status.render && {
    ...planCounts(status.render.newest.plan),
    planId: status.render.newest.plan.id,
    generation: status.render.newest.generation,
    files: status.render.newest.files.size,
    cells: status.render.newest.cells,
    durationMs: status.render.durationMs,
    problems: status.render.newest.problems,
  },
  quarantine: status.quarantine.map(({ object, stand, foundBy, cause }) => ({
    ...{ object, stand, foundBy, cause },
  })),
  agents: agentsByName(status.agents),
  readiness: readiness(status),
});

/** Objects of each watched resource. */
export const objectCounts = (snapshot: Snapshot): Readonly<Record<string, number>> =>
  Object.fromEntries(snapshot.resources.map((name) => [name, snapshot.store(name).size]));

/** Backends, servers and map entries of a plan. */
export const planCounts = (
  plan: Plan,
): { readonly backends: number; readonly servers: number; readonly mapEntries: number } => {
  let servers = 0;
  let mapEntries = 0;
  for (const backend of plan.backends.values()) servers += backend.servers.length;
  for (const map of plan.maps.values()) mapEntries += map.entries.size;
  return { backends: plan.backends.size, servers, mapEntries };
};
