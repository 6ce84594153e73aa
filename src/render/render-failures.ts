/** Why there is no render. */
import { PlanError } from '../plan/build.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { CellUpdate } from './cell-updates.ts';
import { AWAITED } from './evaluate.ts';
import { TemplateFailure } from './language/failure.ts';
import type { RenderPhase, RenderResult } from './render.ts';

/** Something newer has started; whoever still holds these steps must not go on with them. */
export const SUPERSEDED: Problem = {
  severity: 'error',
  reason: 'RenderSuperseded',
  message: 'a newer render has started',
  nextStep: 'Use the result of the newer one.',
};

/** A Secret is known by its metadata alone so far. */
export const SECRETS_AWAITED: Problem = {
  severity: 'warning',
  reason: AWAITED,
  message: 'the content of a Secret that a route names is not there yet',
  nextStep: 'Nothing: it is fetched.',
};

/** Problems of cells by owner. A complete render has none, so all there are come from the updates. */
export const problemsOf = (updates: readonly CellUpdate[]): readonly Problem[] =>
  updates
    .filter(({ after }) => after?.problem !== undefined)
    .sort((left, right) => (left.owner < right.owner ? -1 : 1))
    .flatMap(({ after }) => (after?.problem === undefined ? [] : [after.problem]));

/** What is told of an error that ended the commit; throws any other one. */
export const planProblem = (error: unknown): Problem => {
  if (error instanceof TemplateFailure) return error.toProblem();
  if (!(error instanceof PlanError)) throw error;
  return {
    severity: 'error',
    reason: 'PlanRefused',
    message: error.message,
    nextStep: 'Correct the template that declares it.',
  };
};

/** A result without render. */
export const failed = (
  phase: RenderPhase,
  problems: readonly Problem[],
): Extract<RenderResult, { ok: false }> => ({
  ok: false,
  failure: { phase, problems },
});
