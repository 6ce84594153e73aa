import type { Notification } from '../ports.ts';
import type { ApplyOutcome } from '../protocol/answers.ts';
import type { Digest } from '../protocol/protocol.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** Changes that wait for their confirmation; what is older than so many is given up. */
const MOST_CHANGES = 1_024;
const MOST_RENDERS = 256;

interface Change {
  readonly number: number;
  readonly at: number;
}

/**
 * How long changes take from the snapshot that contains them to the confirmed apply at a pod (R5). Returns a function
 * that takes every notification and gives the durations in milliseconds that it completes: one for each change of a
 * snapshot and pod. A change that leaves the plan as it was has nothing to apply and is not counted.
 *
 * @param now a monotonic clock in milliseconds
 */
export const createChangeLatency = (
  now: () => number,
): ((event: Notification) => readonly number[]) => {
  let changes: Change[] = [];
  // Snapshots are counted here: their own versions start anew with each configuration.
  let last = 0;
  const numbers = new WeakMap<Snapshot, number>();
  /** Plan → number of the newest snapshot that it covers, oldest first. */
  const renders = new Map<Digest, number>();
  /** Pod → number of the newest snapshot that it is known to hold. */
  const held = new Map<string, number>();
  let newest: { readonly planId: Digest; readonly number: number } | undefined;

  const rendered = (planId: Digest, number: number): void => {
    if (newest?.planId === planId) {
      const { number: before } = newest;
      changes = changes.filter((change) => change.number <= before || change.number > number);
    }
    newest = { planId, number };
    renders.delete(planId);
    renders.set(planId, number);
    const oldest = renders.keys().next();
    if (renders.size > MOST_RENDERS && oldest.done !== true) renders.delete(oldest.value);
  };

  const confirmed = (pod: string, planId: Digest, agoMs = 0): readonly number[] => {
    const number = renders.get(planId);
    const before = held.get(pod) ?? -1;
    if (number === undefined || number <= before) return [];
    const at = now() - agoMs;
    held.set(pod, number);
    const waited = changes
      .filter((change) => change.number > before && change.number <= number)
      .map((change) => Math.max(0, at - change.at));
    const everywhere = Math.min(...held.values());
    changes = changes.filter((change) => change.number > everywhere);
    return waited;
  };

  return (event) => {
    switch (event.type) {
      case 'Snapshot':
        last += 1;
        numbers.set(event.snapshot, last);
        changes = [...changes, { number: last, at: now() }].slice(-MOST_CHANGES);
        return [];
      case 'Rendered':
        rendered(event.render.plan.id, numbers.get(event.render.snapshot) ?? 0);
        return [];
      case 'Applied':
        return isConfirmed(event)
          ? confirmed(event.pod.key, event.planId, commitMs(event.outcome))
          : [];
      case 'UpToDate':
        return confirmed(event.pod.key, event.planId);
      case 'ReloadDone':
        return event.ok ? confirmed(event.pod.key, event.planId) : [];
      case 'PodGone':
        held.delete(event.pod.key);
        return [];
      default:
        return [];
    }
  };
};

/**
 * For how many milliseconds before its answer the agent had the worker's confirmation: meanwhile it committed the files,
 * which no request waits for.
 */
export const commitMs = ({ timings: { confirmed, total } }: ApplyOutcome): number =>
  confirmed > 0 ? Math.max(0, total - confirmed) : 0;

const isConfirmed = ({ outcome, reverted }: Extract<Notification, { type: 'Applied' }>): boolean =>
  !reverted && outcome.outcome !== 'scheduled' && outcome.outcome !== 'rejected';
