import { EPOCH_ANNOTATION, type Lease, leaseRef, type LeaseName } from '../kube/lease.ts';
import { KubeError } from '../kube/client.ts';
import type { Problem } from '../snapshot/problem.ts';

/** What the election was doing when a request failed. */
export type LeaseVerb = 'get' | 'create' | 'update';

/** Requests about the Lease that fail, one after the other, and what is told of it. */
export interface Failing {
  readonly since: number;
  readonly code: string;
  /** Undefined while it may be no more than a blip. */
  readonly problem: Problem | undefined;
}

/** A request that failed: when, by the election's clock in milliseconds, at what, and how. */
export interface LeaseFailure {
  readonly now: number;
  readonly verb: LeaseVerb;
  readonly error: unknown;
  /** How long, in milliseconds, failures that pass by themselves are not told. */
  readonly patienceMs: number;
}

/** These do not pass with time: somebody has to do something. */
const LASTING: readonly string[] = ['unauthorized', 'forbidden', 'invalid', 'not-found'];

/** What is known of the failing requests after one more. The text stays the same while the cause does. */
export const failAgain = (
  before: Failing | undefined,
  where: LeaseName,
  { now, verb, error, patienceMs }: LeaseFailure,
): Failing => {
  const code = `${verb} ${error instanceof KubeError ? error.code : 'internal'}`;
  const since = before?.since ?? now;
  const told = before?.code === code ? before.problem : undefined;
  const due = isLasting(error) || now - since >= patienceMs;
  return { since, code, problem: told ?? (due ? failureOf(where, verb, error) : undefined) };
};

const isLasting = (error: unknown): boolean =>
  !(error instanceof KubeError) || LASTING.includes(error.code);

const failureOf = (where: LeaseName, verb: LeaseVerb, error: unknown): Problem => {
  const why = error instanceof Error ? error.message : String(error);
  const isRight = error instanceof KubeError && error.code === 'forbidden';
  return {
    severity: 'error',
    reason: isRight ? 'LeaseForbidden' : 'LeaseUnavailable',
    message: `the verb ${verb} on the Lease that decides who leads fails: ${why}`,
    nextStep: isRight
      ? `Allow the service account get, create and update on leases (coordination.k8s.io) in namespace ${where.namespace}, as the chart's Role does.`
      : 'Without the Lease this replica cannot lead; HAProxy goes on as it is. See whether the API server answers, and what it says.',
    object: leaseRef(where),
  };
};

/** The epoch on the Lease cannot be used and does not count. */
export const leaseEpochProblem = (where: LeaseName, lease: Lease): Problem => ({
  severity: 'warning',
  reason: 'LeaseEpochInvalid',
  message: `the Lease carries ${String(lease.oddEpoch)}, which is no epoch that an election gives; it is ignored`,
  nextStep:
    'Leave this annotation to the controllers; the next leader writes it anew, above what the agents report.',
  object: leaseRef(where, lease),
  field: `metadata.annotations[${EPOCH_ANNOTATION}]`,
});

/** An agent refuses as stale what no election can ever overtake. */
export const agentEpochProblem = (where: LeaseName, epoch: number): Problem => ({
  severity: 'error',
  reason: 'AgentEpochInvalid',
  message: `an agent reports the epoch ${String(epoch)}, which no election gives, so nothing can be applied to its pod`,
  nextStep:
    'Delete the HAProxy pod whose applies fail as stale-epoch: the agent of its successor starts anew.',
  object: leaseRef(where),
});

/** The Lease could not be given back at the end. */
export const notReleased = (where: LeaseName, error: unknown): Problem => ({
  severity: 'warning',
  reason: 'LeaseNotReleased',
  message: `the Lease could not be given back: ${error instanceof Error ? error.message : String(error)}`,
  nextStep: 'Nothing: another replica takes over when the duration of the Lease has passed.',
  object: leaseRef(where),
});
