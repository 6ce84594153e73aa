/** How an object in quarantine is told to people. */
import type { Render } from '../render/render.ts';
import type { Problem } from '../snapshot/problem.ts';
import { type Quarantine, type Quarantined, quarantinedObjects } from './quarantine.ts';

const STANDS: Readonly<Record<Quarantined['stand'], string>> = {
  accepted: 'It is served as it was accepted last, because its newest version cannot be served',
  closed: 'Its routes answer 503, because its protection cannot be built',
  nothing: 'It is left out, because it cannot be served',
};

/** The problem of an object in quarantine; its message goes on with the cause. */
export const quarantineProblem = ({ object, stand, cause }: Quarantined): Problem => ({
  ...cause,
  severity: 'error',
  reason: 'Quarantined',
  object,
  message: `${STANDS[stand]}: ${cause.message}`,
  nextStep: `${cause.nextStep} It is tried again when it changes, or what it looks at, or the configuration.`,
});

/**
 * A render with what is to be told about the objects that it leaves out. What was found wrong with what stands in for
 * them is not told: it is not what people have written.
 */
export const withQuarantineProblems = (render: Render, quarantine: Quarantine): Render => {
  const objects = quarantinedObjects(quarantine);
  if (objects.length === 0) return render;
  const ids = new Set(objects.map(({ object }) => idOf(object)));
  const others = render.problems.filter(
    ({ object }) => object === undefined || !ids.has(idOf(object)),
  );
  return { ...render, problems: [...others, ...objects.map(quarantineProblem)] };
};

const idOf = ({ kind, namespace, name }: Quarantined['object']): string =>
  `${kind} ${namespace}/${name}`;
