import { BASE_CAPABILITIES, classify } from '../plan/classify.ts';
import type { Desired } from '../ports.ts';

/** A level as the gate gives it. */
export type GateLevel = Omit<Desired, 'reloadNotBeforeMs' | 'settings'>;

/** A level before the scheduler has said when its reload may start. */
export type PacedLevel = Omit<Desired, 'reloadNotBeforeMs'>;

/** Least time between two reloads, in milliseconds. */
export const reloadIntervalOf = ({ settings }: PacedLevel): number =>
  settings.minDeploymentIntervalMs;

/**
 * How a level is to be paced after the one that went out last (G6, G7): reverts, releases of the accepted render and
 * servers that flow while held need no reload and go at once; a new target goes as the difference of the plans says.
 */
export const classifyLevels = (
  last: GateLevel | undefined,
  next: GateLevel,
): 'now' | 'later' | 'both' | 'none' => {
  if (next.target === undefined) return sameLevel(last, next) ? 'none' : 'now';
  if (last?.target === undefined) return 'later';
  if (next.refused.size > 0) return sameLevel(last, next) ? 'none' : 'now';
  const haproxy = next.target.haproxyVersion;
  const pace = classify(last.target.plan, next.target.plan, { ...BASE_CAPABILITIES, haproxy });
  return pace === 'none' && !sameLevel(last, next) ? 'now' : pace;
};

const sameLevel = (last: GateLevel | undefined, next: GateLevel): boolean =>
  last !== undefined &&
  last.phase === next.phase &&
  last.target === next.target &&
  last.servers === next.servers &&
  last.accepted === next.accepted &&
  last.refused.size === next.refused.size &&
  [...next.refused].every((planId) => last.refused.has(planId));
