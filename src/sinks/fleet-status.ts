import type { Verdict } from '../gate/verdict.ts';
import type { AgentNotification, Notification, Pod } from '../ports.ts';
import type { Digest } from '../protocol/protocol.ts';

/** What happened last at one pod. */
export interface PodDeployment {
  readonly pod: Pod;
  readonly planId: Digest | undefined;
  /** Of the last apply: `runtime`, `files`, `reload`, `scheduled`, `noop`, `up-to-date`, or why it failed. */
  readonly lastOutcome: string;
  /** Milliseconds since 1970 of the last success, if there was one. */
  readonly deployedAtMs: number | undefined;
  readonly lastError: string | undefined;
  readonly consecutiveErrors: number;
}

/** What the fleet and the gate have told in this process. */
export interface FleetStatus {
  /** By key of the pod. */
  readonly pods: ReadonlyMap<string, PodDeployment>;
  /** The newest verdict of this term. */
  readonly verdict: { readonly planId: Digest; readonly verdict: Verdict } | undefined;
}

export const initialFleet: FleetStatus = { pods: new Map(), verdict: undefined };

/** Longest text of an error in a status, in characters, on one line. */
const ERROR_LENGTH = 256;

/** The fleet after one notification; itself when that changes nothing of it. */
export const fleetStep =
  (now: () => number) =>
  (fleet: FleetStatus, event: Notification): FleetStatus => {
    switch (event.type) {
      case 'Checked':
        return { ...fleet, verdict: event.checked };
      case 'Leadership':
        return { ...fleet, verdict: undefined };
      case 'PodGone': {
        const pods = new Map(fleet.pods);
        pods.delete(event.pod.key);
        return { ...fleet, pods };
      }
      case 'Applied':
      case 'ApplyFailed':
      case 'ReloadDone':
      case 'UpToDate': {
        const before = fleet.pods.get(event.pod.key);
        const after = deploymentAfter(before, event, now());
        if (after === before || after === undefined) return fleet;
        return { ...fleet, pods: new Map(fleet.pods).set(event.pod.key, after) };
      }
      default:
        return fleet;
    }
  };

type Deployed = Extract<
  AgentNotification,
  { type: 'Applied' | 'ApplyFailed' | 'ReloadDone' | 'UpToDate' }
>;

const deploymentAfter = (
  before: PodDeployment | undefined,
  event: Deployed,
  nowMs: number,
): PodDeployment | undefined => {
  const { pod } = event;
  const succeeded = (lastOutcome: string, planId: Digest): PodDeployment => ({
    pod,
    planId,
    lastOutcome,
    deployedAtMs: nowMs,
    lastError: undefined,
    consecutiveErrors: 0,
  });
  const failed = (lastOutcome: string, message: string): PodDeployment => ({
    pod,
    planId: before?.planId,
    lastOutcome,
    deployedAtMs: before?.deployedAtMs,
    lastError: message.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, ERROR_LENGTH),
    consecutiveErrors: (before?.consecutiveErrors ?? 0) + 1,
  });
  switch (event.type) {
    case 'Applied':
      // A rejected apply is told by the failure that follows.
      return event.outcome.outcome === 'rejected'
        ? before
        : succeeded(event.outcome.outcome, event.planId);
    case 'ApplyFailed':
      return failed(event.cause, event.message);
    case 'ReloadDone':
      return event.ok ? succeeded('reload', event.planId) : failed('reload-failed', event.message);
    case 'UpToDate':
      return before?.planId === event.planId && before.lastError === undefined
        ? before
        : succeeded('up-to-date', event.planId);
  }
};
