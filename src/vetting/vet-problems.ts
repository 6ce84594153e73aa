import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import { ChildEnded, type ChildLimits } from './conversation.ts';

const seconds = (ms: number): string => `${ms / 1_000} s`;

/** One phase took too long. */
export const tooSlow = (phase: string, phaseMs: number): Problem => ({
  severity: 'error',
  reason: 'ConfigTooSlow',
  message: `${phase} took longer than ${seconds(phaseMs)} and was ended.`,
  nextStep: 'Look for a loop that has no end or grows with the square of the objects.',
});

/** A list did not come. */
export const unlisted = (
  { name, apiVersions, resources }: WatchedResource,
  listMs: number,
): Problem => ({
  severity: 'error',
  reason: 'ObjectsNotListed',
  message: `The objects of watchedResources.${name} (${resources} in ${apiVersions.join(', ')}) could not be listed within ${seconds(listMs)}.`,
  nextStep: 'Check that the resource exists and that the controller may list and watch it.',
});

/** The process ended without findings. */
export const broken = (error: unknown, busyWith: string, { heapMb }: ChildLimits): Problem => {
  if (error instanceof ChildEnded && error.outOfMemory) {
    return {
      severity: 'error',
      reason: 'ConfigTooLarge',
      message: `${busyWith} needed more than ${heapMb} MiB of memory and was ended.`,
      nextStep: 'Look for a loop or a recursion that makes ever more text.',
    };
  }
  const cause = error instanceof Error ? error.message : String(error);
  return {
    severity: 'error',
    reason: 'ConfigNotVetted',
    message: `${busyWith} was not completed: ${cause}.`,
    nextStep: 'Nothing to do if it passes by itself; else the installation is broken.',
  };
};
