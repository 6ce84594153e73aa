import {
  catchError,
  concat,
  connect,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  NEVER,
  type Observable,
  of,
  startWith,
  switchMap,
  take,
  takeUntil,
  takeWhile,
  throwError,
  timeout,
  timer,
} from 'rxjs';
import type { Chunk } from '../cells/chunk.ts';
import type { Checkable, Checked, Verdict } from '../gate/verdict.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import type { ResourceSource } from '../ports.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import type { Judgement } from '../render/validation/run-tests.ts';
import type { ContentOutcome, Need } from '../snapshot/content.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';
import type { CompileSettings } from '../streams/compile-config.ts';
import { type ChildLimits, converse } from './conversation.ts';
import type { Findings, FromVetter, ToVetter } from './messages.ts';
import { receivedLeaf, receivedRender } from './transfer.ts';
import { broken, tooSlow, unlisted } from './vet-problems.ts';

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
export interface VetLimits extends ChildLimits {
  /** Compiling, rendering, or one test, in milliseconds. Default 30000. */
  readonly phaseMs: number;
  /** Until all objects are listed, in milliseconds. Default 60000. */
  readonly listMs: number;
  /** First wait, in milliseconds, before HAProxy is asked again when it gave no verdict; twice as long each time. Default 1000. */
  readonly recheckMs: number;
}

/** 10,000 Ingresses with a backend of five endpoints each fit into a heap of 256 MiB. */
const DEFAULTS: VetLimits = {
  heapMb: 512,
  cpuSeconds: 600,
  phaseMs: 30_000,
  listMs: 60_000,
  recheckMs: 1_000,
};

/** Objects of one message. */
const BATCH = 200;
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
    return converse<FromVetter, ToVetter>(options.program, answer, limits).pipe(
      inTime(limits.phaseMs),
      takeWhile(({ type }) => type !== 'done', true),
      explained(limits),
    );
  });

/** Longest start of the process, in milliseconds; no template has a say in it. */
const START_MS = 60_000;
const STARTING = 'Starting the process that vets configurations';

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
        return of({ type: 'start', config, settings });
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
        mergeMap((event) => from(partsOf(resource.name, event))),
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

function* partsOf(
  resource: string,
  { objects: all }: Extract<WatchEvent, { type: 'Replaced' }>,
): Generator<ToVetter> {
  for (let from = 0; from < all.length; from += BATCH) {
    const part: readonly KubeObject[] = all.slice(from, from + BATCH);
    yield { type: 'objects', resource, objects: part };
  }
}

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

const toJudgement = (verdict: Verdict): Judgement => {
  if (verdict.result !== 'refused' || verdict.problems.length > 0) return verdict;
  const problem: Problem = {
    severity: 'error',
    reason: 'RefusedByHAProxy',
    message: `HAProxy refuses the rendered configuration: ${verdict.message.slice(0, 2_000)}`,
    nextStep: 'Correct the templates.',
  };
  return { result: 'refused', problems: [problem] };
};

/** What ends a vetting from outside. */
class Refusal extends Error {
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(problems.map(({ message }) => message).join(' '));
    this.name = 'Refusal';
    this.problems = problems;
  }
}

/** Errors when the child is busy with one thing for too long. */
const inTime =
  (phaseMs: number) =>
  (message$: Observable<FromVetter>): Observable<FromVetter> =>
    message$.pipe(
      connect((shared$) =>
        merge(
          shared$,
          shared$.pipe(
            filter((message) => message.type === 'phase'),
            startWith({ phase: STARTING, waits: false }),
            switchMap(({ phase, waits }) =>
              waits ? NEVER : lateAfter(phase === STARTING ? START_MS : phaseMs, phase),
            ),
            ignoreElements(),
          ),
        ),
      ),
    );

const lateAfter = (ms: number, phase: string): Observable<never> =>
  timer(ms).pipe(mergeMap(() => throwError(() => new Refusal([tooSlow(phase, ms)]))));

/** The findings, also when the child gives none. */
const explained =
  (limits: VetLimits) =>
  (message$: Observable<FromVetter>): Observable<Findings> =>
    defer(() => {
      let busyWith = STARTING;
      return message$.pipe(
        mergeMap((message): readonly Findings[] => {
          if (message.type === 'phase') busyWith = message.phase;
          return message.type === 'done' ? [message] : [];
        }),
        map(({ problems, mayPass }) => ({ problems, mayPass })),
        catchError((error: unknown) => {
          const problems =
            error instanceof Refusal ? error.problems : [broken(error, busyWith, limits)];
          return of<Findings>({ problems, mayPass: true });
        }),
      );
    });
