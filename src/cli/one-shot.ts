import { constants } from 'node:os';
import {
  auditTime,
  combineLatest,
  filter,
  lastValueFrom,
  map,
  Observable,
  of,
  switchMap,
  take,
  takeUntil,
} from 'rxjs';
import type { ResourceSource } from '../ports.ts';
import type { ParsedConfig } from '../render/config/parse-config.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import { describeProblem } from '../sinks/log-problems.ts';
import { directoryConfig } from '../streams/config.ts';
import { directorySource } from '../streams/directory.ts';
import { type ReceivedRender, renderConfig } from '../vetting/render-config.ts';
import { isOurs } from '../vetting/supervised.ts';
import { CommandError, type Terminal } from './command.ts';
import { compileSettings, withLibraries } from './compile.ts';
import type { OneShotOptions } from './compile-options.ts';
import { manifestDirectory } from './manifest-directory.ts';
import { vetProgram } from './programs.ts';

/** What one directory gives: a render, and everything worth telling about it. */
export interface Rendered {
  /** Undefined when configuration or templates failed; `problems` says why. */
  readonly render: ReceivedRender | undefined;
  readonly problems: readonly Problem[];
}

const NOTHING: Rendered = { render: undefined, problems: [] };

/**
 * Reads a directory, and renders it once in a process of its own that is killed when it takes too much time or memory.
 *
 * @throws CommandError when it is no directory, when no process can be run, and when the user ends it
 */
export const renderDirectory = async (path: string, options: OneShotOptions): Promise<Rendered> => {
  const source = directorySource(await manifestDirectory(path), { problemsMs: 0 });
  const read$ = withLibraries(options, (parse) => directoryConfig(source, parse)).pipe(
    take(1),
    switchMap((parsed) => withObjects(source, parsed)),
  );
  const rendered$ = settled(source, read$).pipe(
    switchMap(({ value, problems }) => rendered(value, problems, options)),
  );
  return untilStopped(rendered$, options.signal, NOTHING);
};

/** How long the list of problems gets to be complete once everything is read, in milliseconds. */
const SETTLE_MS = 20;

/** The first value that a directory gives, with what is wrong in the directory. */
export const settled = <T>(
  source: ResourceSource,
  value$: Observable<T>,
): Observable<{ readonly value: T; readonly problems: readonly Problem[] }> =>
  // Which kinds nobody watches is known a turn after the watches have begun, so they go on until then.
  combineLatest([value$, source.problems$]).pipe(
    auditTime(SETTLE_MS),
    take(1),
    map(([value, problems]) => ({ value, problems })),
  );

interface Read {
  readonly parsed: ParsedConfig;
  readonly objects: ReadonlyMap<string, readonly KubeObject[]>;
}

/** A configuration with the objects that it watches; never completes, so that the watches go on. */
const withObjects = (source: ResourceSource, parsed: ParsedConfig): Observable<Read> => {
  const watched = parsed.ok ? parsed.config.watched : [];
  if (watched.length === 0) return of({ parsed, objects: new Map() });
  return combineLatest(watched.map((resource) => listOf(source, resource))).pipe(
    map((lists) => ({ parsed, objects: new Map(lists) })),
  );
};

const listOf = (
  source: ResourceSource,
  resource: WatchedResource,
): Observable<readonly [string, readonly KubeObject[]]> =>
  source.watch(resource).pipe(
    filter((event) => event.type === 'Replaced'),
    map(({ objects }) => [resource.name, objects] as const),
  );

const rendered = (
  { parsed, objects }: Read,
  problems: readonly Problem[],
  options: OneShotOptions,
): Observable<Rendered> => {
  if (!parsed.ok) return of({ render: undefined, problems: [...problems, ...parsed.problems] });
  const { limits } = options;
  const settings = compileSettings(options);
  return renderConfig(parsed.config, { program: vetProgram(), settings, objects, limits }).pipe(
    map((result): Rendered => {
      if (result.ok) {
        const { render } = result;
        return { render, problems: [...problems, ...render.problems] };
      }
      throwIfOurs(result.problems);
      return { render: undefined, problems: [...problems, ...result.problems] };
    }),
  );
};

/** @throws CommandError when the process that vets could not do its work */
export const throwIfOurs = (problems: readonly Problem[]): void => {
  const ours = problems.find(isOurs);
  if (ours !== undefined) throw new CommandError(ours.message);
};

/**
 * The last value of some work, or the default without any. The work ends at once when the user wants the command to end.
 *
 * @throws CommandError with the status of the signal when the user does
 */
export const untilStopped = <T>(
  work$: Observable<T>,
  signal: AbortSignal,
  defaultValue: T,
): Promise<T> => lastValueFrom(work$.pipe(takeUntil(stopped(signal))), { defaultValue });

/** Errors when the signal aborts. */
const stopped = (signal: AbortSignal): Observable<never> =>
  new Observable((subscriber) => {
    const stop = (): void => subscriber.error(interrupted(signal.reason));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    return () => signal.removeEventListener('abort', stop);
  });

/** Statuses of a program that a signal ends begin here. */
const SIGNALLED = 128;

const interrupted = (reason: unknown): CommandError => {
  const number = Object.entries(constants.signals).find(([name]) => name === reason)?.[1];
  return new CommandError('interrupted', SIGNALLED + (number ?? constants.signals.SIGINT));
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
