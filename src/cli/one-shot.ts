import {
  auditTime,
  combineLatest,
  lastValueFrom,
  map,
  type Observable,
  of,
  switchMap,
  take,
} from 'rxjs';
import type { ConfigEvent } from '../ports.ts';
import type { Render, RenderResult } from '../render/render.ts';
import type { Problem } from '../snapshot/problem.ts';
import { describeProblem } from '../sinks/log-problems.ts';
import { directorySource } from '../streams/directory.ts';
import { snapshots } from '../streams/snapshots.ts';
import type { Terminal } from './command.ts';
import { compiledConfigs, type CompileOptions } from './compile.ts';
import { manifestDirectory } from './manifest-directory.ts';

/** What one directory gives: a render, and everything worth telling about it. */
export interface Rendered {
  /** Undefined when configuration or templates failed; `problems` says why. */
  readonly render: Render | undefined;
  readonly problems: readonly Problem[];
}

/** How long the list of problems gets to be complete once there is a render, in milliseconds. */
const SETTLE_MS = 20;

/** Reads and renders a directory once. Throws CommandError when it is none. */
export const renderDirectory = async (path: string, options: CompileOptions): Promise<Rendered> => {
  const directory = await manifestDirectory(path);
  const source = directorySource(directory, { problemsMs: 0 });
  const result$: Observable<RenderResult | ConfigEvent> = compiledConfigs(source, options).pipe(
    take(1),
    switchMap((event) =>
      event.ok
        ? snapshots((resource) => source.watch(resource), event.engine.watched).pipe(
            switchMap((snapshot) => event.engine.render(snapshot)),
          )
        : of(event),
    ),
  );
  // Which kinds nobody watches is known a turn after the watches have begun, so they go on until then.
  const rendered$ = combineLatest([result$, source.problems$]).pipe(
    auditTime(SETTLE_MS),
    take(1),
    map(([result, problems]): Rendered => {
      if ('render' in result) {
        return { render: result.render, problems: [...problems, ...result.render.problems] };
      }
      return { render: undefined, problems: [...problems, ...failureOf(result)] };
    }),
  );
  return lastValueFrom(rendered$, { defaultValue: { render: undefined, problems: [] } });
};

const failureOf = (result: RenderResult | ConfigEvent): readonly Problem[] => {
  if ('problems' in result) return result.problems;
  return 'failure' in result ? result.failure.problems : [];
};

/** Whether anything in the list is more than a warning. */
export const hasErrors = (problems: readonly Problem[]): boolean =>
  problems.some(({ severity }) => severity === 'error');

/** Problems as text lines on standard error. */
export const tellProblems = (problems: readonly Problem[], { err }: Terminal): void => {
  for (const problem of problems) err(`${problem.severity}: ${describeProblem(problem)}\n`);
};

/** A result as `--output json` prints it; it holds the problems too, and standard error stays empty. */
export const toldAsJson = (result: object): string => `${JSON.stringify(result, undefined, 2)}\n`;
