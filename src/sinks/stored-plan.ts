import { sha256 } from '../digest.ts';
import { applyOperations } from '../plan/apply-operations.ts';
import type { RuntimeState } from '../plan/change-set.ts';
import type { Plan } from '../plan/plan.ts';
import { parsePlan } from '../plan/serialise.ts';
import type { StoredPlan } from '../protocol/answers.ts';
import type { Digest } from '../protocol/protocol.ts';

/** The plan an agent keeps, if it is the one asked for and can be read; a leader before us sent it (docs/protocol.md). */
export const storedPlan = (planId: Digest, stored: StoredPlan | undefined): Plan | undefined => {
  if (stored?.planId !== planId || stored.plan === '') return undefined;
  try {
    const plan = parsePlan(stored.plan, sha256);
    return plan.id === planId ? plan : undefined;
  } catch {
    return undefined;
  }
};

/** A fresh worker's state with the operations an agent keeps; undefined when they are not all there or do not fit. */
export const withStoredOperations = (
  fresh: RuntimeState,
  planId: Digest,
  kept: { readonly stored: StoredPlan | undefined; readonly workerOperations: number },
): RuntimeState | undefined => {
  const { stored, workerOperations } = kept;
  if (stored?.planId !== planId || stored.operations.length !== workerOperations) return undefined;
  try {
    return applyOperations(fresh, stored.operations, sha256);
  } catch {
    return undefined;
  }
};
