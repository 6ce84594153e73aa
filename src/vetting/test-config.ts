import { catchError, concat, defer, EMPTY, map, mergeMap, type Observable, of } from 'rxjs';
import type { Chunk } from '../cells/chunk.ts';
import type { Checkable, Checked } from '../gate/verdict.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import type { TestReport } from '../render/validation/run-tests.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { CompileSettings } from '../streams/compile-config.ts';
import type { FromVetter, ToVetter } from './messages.ts';
import { DEFAULT_LIMITS, isOurs, problemsOf, supervised, type VetterLimits } from './supervised.ts';
import { receivedLeaf, receivedRender } from './transfer.ts';
import { toJudgement } from './vet-config.ts';

/** What running the tests of a configuration needs. */
export interface TestConfigOptions {
  /** JavaScript file of the process that vets. */
  readonly program: string;
  readonly settings: CompileSettings;
  /** Tests of the configuration, in the order in which they run. */
  readonly names: readonly string[];
  /** Asks HAProxy, for `haproxy_valid`. */
  readonly check: (render: Checkable) => Observable<Checked>;
  /** Milliseconds of a steady clock. */
  readonly now: () => number;
  readonly limits?: Partial<VetterLimits>;
}

/** What happens while tests run. */
export type TestEvent =
  | { readonly type: 'Started'; readonly name: string }
  | { readonly type: 'Tested'; readonly report: TestReport; readonly durationMs: number }
  /** The configuration does not compile, or no process runs: no further test is run. */
  | { readonly type: 'Refused'; readonly problems: readonly Problem[] };

/**
 * Runs tests of a configuration in a process of its own with limits of time and heap. A test that does not end, or takes
 * too much memory, is killed with its process and has failed; the tests behind it run in another one. Never errors;
 * unsubscribing ends everything.
 */
export const testConfig = (
  config: TemplateConfig,
  options: TestConfigOptions,
): Observable<TestEvent> =>
  defer(() => {
    const { program, names, now } = options;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    let running: { readonly name: string; readonly since: number } | undefined;
    const eventsOf = (message: FromVetter): readonly TestEvent[] => {
      if (message.type === 'phase' && message.test !== undefined) {
        running = { name: message.test, since: now() };
        return [{ type: 'Started', name: message.test }];
      }
      if (message.type === 'tested') {
        running = undefined;
        return [{ ...message, type: 'Tested' }];
      }
      return message.type === 'done' && message.problems.length > 0
        ? [{ type: 'Refused', problems: message.problems }]
        : [];
    };
    return supervised(program, answers(config, options), limits).pipe(
      mergeMap(eventsOf),
      catchError((error: unknown) => {
        const problems = problemsOf(error);
        if (running === undefined) return of<TestEvent>({ type: 'Refused', problems });
        const { name, since } = running;
        const left = names.slice(names.indexOf(name) + 1);
        return concat(
          of<TestEvent>({
            type: 'Tested',
            report: { ...describedBy(config, name), ...killed(problems) },
            durationMs: now() - since,
          }),
          left.length === 0 ? EMPTY : testConfig(config, { ...options, names: left }),
        );
      }),
    );
  });

const answers = (
  config: TemplateConfig,
  { settings, names, check }: TestConfigOptions,
): ((message: FromVetter) => Observable<ToVetter>) => {
  let leaves: Chunk[] = [];
  return (message) => {
    switch (message.type) {
      case 'ready':
        return of({ type: 'start', config, settings, task: { type: 'test', names } });
      case 'leaves':
        for (const leaf of message.leaves) leaves.push(receivedLeaf(leaf));
        return EMPTY;
      case 'check': {
        const render = receivedRender(message.render, leaves);
        leaves = [];
        return check(render).pipe(
          map(({ verdict }) => ({ type: 'judgement', judgement: toJudgement(verdict) })),
        );
      }
      default:
        return EMPTY;
    }
  };
};

const describedBy = (
  { validationTests }: TemplateConfig,
  name: string,
): Pick<TestReport, 'name' | 'description'> => {
  const description = validationTests.get(name)?.description;
  return { name, ...(description !== undefined && { description }) };
};

/** A process that ended for a reason of its own says nothing about the test. */
const killed = (problems: readonly Problem[]): Pick<TestReport, 'outcome' | 'reasons'> => ({
  outcome: problems.some(isOurs) ? 'inconclusive' : 'failed',
  reasons: problems.map((problem) => ({ problem })),
});
