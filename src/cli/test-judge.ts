import { type Observable, of } from 'rxjs';
import { createChecker } from '../gate/checker.ts';
import type { Checkable, Checked } from '../gate/verdict.ts';
import { type Call, CommandError } from './command.ts';
import { findHaproxy } from './haproxy-binary.ts';

/** Asks HAProxy, where there is one. */
export interface Judge {
  /** Undefined where there is none. */
  readonly version: string | undefined;
  readonly check: (render: Checkable) => Observable<Checked>;
  readonly close: () => Promise<void>;
}

/**
 * The HAProxy that judges: one that is named has to be there; without any, only the tests that need it cannot be judged.
 *
 * @param dir existing directory for its files
 * @throws CommandError when the one that is named cannot be run
 */
export const judgeOf = async (
  { values, terminal: { environment } }: Call,
  dir: string,
): Promise<Judge> => {
  const flag = values['haproxy'];
  const named = typeof flag === 'string' ? flag : undefined;
  try {
    const { path, version } = await findHaproxy(named, environment);
    const checker = createChecker({ binary: path, dir });
    return { version, check: (render) => checker.check(render), close: () => checker.close() };
  } catch (error: unknown) {
    const isNamed = named !== undefined || environment['HAPROXY'] !== undefined;
    if (isNamed || !(error instanceof CommandError)) throw error;
    return nobody(error.message);
  }
};

const nobody = (cause: string): Judge => ({
  version: undefined,
  check: ({ plan }) =>
    of({ planId: plan.id, durationMs: 0, verdict: { result: 'inconclusive', cause } }),
  close: () => Promise.resolve(),
});
