import type { GatePhase } from '../gate/verdict.ts';
import type { Digest } from '../protocol/protocol.ts';
import { listAt, textAt } from '../routing/fields.ts';
import type { FleetStatus, PodDeployment } from './fleet-status.ts';
import type { Members } from './write-objects.ts';

/** What the status of the published configuration is made of. */
export interface StatusFacts {
  /** Undefined: nothing was dispatched in this term yet. */
  readonly planId: Digest | undefined;
  /** Checksum of the main file by plan, as far as it is remembered. */
  readonly checksums: ReadonlyMap<Digest, string>;
  readonly phase: GatePhase;
  readonly fleet: FleetStatus;
}

/** A status holds at most this many pods, by name: it is one object (R21). */
const MAX_PODS = 200;
/** Longest message of a condition in characters. */
const MESSAGE_LENGTH = 4_096;

interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/**
 * The status after `observed`, which is what the object holds now: times of what did not change stay, also those that a
 * leader before this one wrote.
 */
export const statusAfter = (observed: unknown, facts: StatusFacts, nowMs: number): Members => {
  const pods = [...facts.fleet.pods.values()].sort((left, right) =>
    left.pod.key < right.pod.key ? -1 : 1,
  );
  return {
    ...(facts.planId === undefined ? {} : { planId: facts.planId }),
    conditions: [validated(facts), pinned(facts)].map((condition) => ({
      ...condition,
      lastTransitionTime: transitionTime(observed, condition) ?? timeOf(nowMs),
    })),
    podCount: pods.length,
    deployedToPods: pods
      .slice(0, MAX_PODS)
      .map((deployment) => podStatus(deployment, listAt(observed, 'deployedToPods'), facts)),
  };
};

const validated = ({ fleet }: StatusFacts): Condition => {
  const type = 'ConfigValidated';
  if (fleet.verdict === undefined) {
    return {
      type,
      status: 'Unknown',
      reason: 'NotCheckedYet',
      message: "HAProxy's checker has not judged a render of this leader yet.",
    };
  }
  const { planId, verdict } = fleet.verdict;
  switch (verdict.result) {
    case 'passed':
      return {
        type,
        status: 'True',
        reason: 'Passed',
        message: `HAProxy's checker accepted plan ${planId}.`,
      };
    case 'refused':
      return {
        type,
        status: 'False',
        reason: 'Refused',
        message: cut(`HAProxy's checker refused plan ${planId}: ${verdict.message}`),
      };
    case 'inconclusive':
      return {
        type,
        status: 'Unknown',
        reason: 'Inconclusive',
        message: cut(`The check of plan ${planId} gave no verdict: ${verdict.cause}`),
      };
  }
};

const pinned = ({ phase }: StatusFacts): Condition => {
  const type = 'ConfigPinned';
  switch (phase) {
    case 'open':
      return { type, status: 'False', reason: 'Open', message: 'Every render goes to the fleet.' };
    case 'holding':
      return {
        type,
        status: 'False',
        reason: 'Holding',
        message: 'The newest renders wait for their check; the fleet keeps the accepted one.',
      };
    case 'pinned':
      return {
        type,
        status: 'True',
        reason: 'Refused',
        message:
          'Renders were refused again while they were held: the fleet stays on the accepted one until one passes.',
      };
  }
};

const transitionTime = (observed: unknown, { type, status }: Condition): string | undefined => {
  const before = listAt(observed, 'conditions').find((old) => textAt(old, 'type') === type);
  return textAt(before, 'status') === status ? textAt(before, 'lastTransitionTime') : undefined;
};

const podStatus = (
  deployment: PodDeployment,
  observed: readonly unknown[],
  { checksums }: StatusFacts,
): Members => {
  const { pod, planId, lastError, consecutiveErrors } = deployment;
  const [namespace = '', podName = '', podUID = ''] = pod.key.split('/');
  const known = observed.find(
    (entry) => textAt(entry, 'podName') === podName && textAt(entry, 'podUID') === podUID,
  );
  return {
    podName,
    namespace,
    podUID,
    ...defined('planId', planId),
    ...defined('checksum', planId === undefined ? undefined : checksums.get(planId)),
    ...success(deployment, known),
    ...(lastError === undefined ? {} : { lastError, consecutiveErrors }),
  };
};

/** A new leader finds a pod up to date: how and when it came to that is what the leader before it wrote. */
const success = ({ planId, lastOutcome, deployedAtMs }: PodDeployment, known: unknown): Members => {
  const before = lastOutcome === 'up-to-date' && textAt(known, 'planId') === planId ? known : {};
  const at = deployedAtMs === undefined ? undefined : timeOf(deployedAtMs);
  return {
    lastOutcome: textAt(before, 'lastOutcome') ?? lastOutcome,
    ...defined('deployedAt', textAt(before, 'deployedAt') ?? at),
  };
};

const defined = (name: string, value: string | undefined): Members =>
  value === undefined ? {} : { [name]: value };

/** RFC 3339, in seconds, as times in Kubernetes are. */
const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

const cut = (text: string): string => text.slice(0, MESSAGE_LENGTH);
