import {
  catchError,
  concat,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  from,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  take,
  takeUntil,
  throwError,
  timeout,
} from 'rxjs';
import type { Chunk } from '../cells/chunk.ts';
import type { Checkable, Checked, Verdict } from '../gate/verdict.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import type { ResourceSource } from '../ports.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import type { Judgement } from '../render/validation/run-tests.ts';
import type { ContentOutcome, Need } from '../snapshot/content.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import type { CompileSettings } from '../streams/compile-config.ts';
import type { Findings, FromVetter, ToVetter } from './messages.ts';
import {
  DEFAULT_LIMITS,
  problemsOf,
  Refusal,
  supervised,
  type VetterLimits,
} from './supervised.ts';
import { objectMessages, receivedLeaf, receivedRender } from './transfer.ts';
import { unlisted } from './vet-problems.ts';

/** What vetting needs. */
export interface VetOptions {
  /** JavaScript file of the process that vets. */
  readonly program: string;
  /** Where the objects come from that are rendered; nobody else's, so that its problems are those of this configuration. */
  readonly resources: ResourceSource;
  /** HAProxy's checker, one of its own: the gate goes on checking meanwhile. No verdict is ever reused (S63). */
  readonly check: (render: Checkable) => Observable<Checked>;
  readonly settings: CompileSettings;
  readonly limits?: Partial<VetLimits>;
}

/** What a configuration may cost while it is vetted. */
export interface VetLimits extends VetterLimits {
  /** Until all objects are listed, in milliseconds. Default 60000. */
  readonly listMs: number;
  /** First wait, in milliseconds, before HAProxy is asked again when it gave no verdict; twice as long each time. Default 1000. */
  readonly recheckMs: number;
}

const DEFAULTS: VetLimits = { ...DEFAULT_LIMITS, listMs: 60_000, recheckMs: 1_000 };

/** How often HAProxy is asked until it gives a verdict. */
const MOST_TRIES = 4;

/**
 * Finds out whether a configuration can take over, in a process of its own with limits of time and heap: it compiles, its
 * tests pass, the objects of the cluster render, and HAProxy accepts what comes out. Emits the findings once and never
 * errors; unsubscribing ends everything.
 */
export const vetConfig = (config: TemplateConfig, options: VetOptions): Observable<Findings> =>
  defer(() => {
    const limits = { ...DEFAULTS, ...options.limits };
    const answer = answers(config, options, limits);
    return supervised(options.program, answer, limits).pipe(
      filter((message) => message.type === 'done'),
      map(({ problems, mayPass }): Findings => ({ problems, mayPass })),
      catchError((error: unknown) => of({ problems: problemsOf(error), mayPass: true })),
    );
  });

/** What the controller answers to each message; what came of a render is kept until it is checked. */
const answers = (
  config: TemplateConfig,
  { resources, check, settings }: VetOptions,
  limits: VetLimits,
): ((message: FromVetter) => Observable<ToVetter>) => {
  let leaves: Chunk[] = [];
  const judge = (message: Extract<FromVetter, { type: 'check' }>): Observable<ToVetter> => {
    const render = receivedRender(message.render, leaves);
    leaves = [];
    return judgement(render, check, limits.recheckMs).pipe(
      map((given) => ({ type: 'judgement', judgement: given })),
    );
  };
  return (message) => {
    switch (message.type) {
      case 'ready':
        return of({ type: 'start', config, settings, task: { type: 'vet' } });
      case 'compiled':
        return concat(
          objects(config.watched, resources, limits.listMs),
          of<ToVetter>({ type: 'render' }),
        );
      case 'needs':
        return contents(message.needs, config.watched, resources);
      case 'leaves':
        for (const leaf of message.leaves) leaves.push(receivedLeaf(leaf));
        return EMPTY;
      case 'check':
        return judge(message);
      default:
        return EMPTY;
    }
  };
};

/** One list of each kind, in parts, so that the event loop gets its turns. What cannot be listed at all ends it at once. */
const objects = (
  watched: readonly WatchedResource[],
  source: ResourceSource,
  listMs: number,
): Observable<ToVetter> =>
  merge(
    ...watched.map((resource) =>
      source.watch(resource).pipe(
        filter((event) => event.type === 'Replaced'),
        take(1),
        timeout({
          first: listMs,
          with: () => throwError(() => new Refusal([unlisted(resource, listMs)])),
        }),
        mergeMap((event) => objectMessages(resource.name, event.objects)),
      ),
    ),
  ).pipe(
    takeUntil(
      source.problems$.pipe(
        map((problems) => problems.filter(({ severity }) => severity === 'error')),
        mergeMap((errors) => (errors.length === 0 ? EMPTY : throwError(() => new Refusal(errors)))),
      ),
    ),
  );

/** The content of what a render needs, answer by answer. */
const contents = (
  needs: readonly Need[],
  watched: readonly WatchedResource[],
  { get }: ResourceSource,
): Observable<ToVetter> =>
  from(needs).pipe(
    mergeMap((need): Observable<ToVetter> => {
      const resource = watched.find(({ name }) => name === need.resource);
      const outcome$: Observable<ContentOutcome> =
        get === undefined || resource === undefined ? EMPTY : get(resource, need.key);
      return outcome$.pipe(
        take(1),
        defaultIfEmpty<ContentOutcome, ContentOutcome>({ type: 'Gone' }),
        map((outcome) => ({ type: 'content', need, outcome })),
      );
    }, 16),
  );

/** HAProxy's verdict; without one it is asked again some times. */
const judgement = (
  render: Checkable,
  check: VetOptions['check'],
  recheckMs: number,
): Observable<Judgement> =>
  defer(() => {
    let tries = 0;
    return defer(() => check(render)).pipe(
      take(1),
      map(({ verdict }) => {
        tries += 1;
        if (verdict.result === 'inconclusive' && tries < MOST_TRIES) throw new Error(verdict.cause);
        return toJudgement(verdict);
      }),
      retryBackoff({ initialMs: recheckMs, shouldRetry: () => tries < MOST_TRIES }),
      catchError((error: unknown) =>
        of<Judgement>({ result: 'inconclusive', cause: `the check failed: ${String(error)}` }),
      ),
    );
  });

/** A verdict as the process that vets takes it: a refusal has a problem at least. */
export const toJudgement = (verdict: Verdict): Judgement => {
  if (verdict.result !== 'refused' || verdict.problems.length > 0) return verdict;
  const problem: Problem = {
    severity: 'error',
    reason: 'RefusedByHAProxy',
    message: `HAProxy refuses the rendered configuration: ${verdict.message.slice(0, 2_000)}`,
    nextStep: 'Correct the templates.',
  };
  return { result: 'refused', problems: [problem] };
};
