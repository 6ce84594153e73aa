import { catchError, defer, EMPTY, from, mergeMap, type Observable, of } from 'rxjs';
import type { Chunk } from '../cells/chunk.ts';
import type { Checkable } from '../gate/verdict.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { CompileSettings } from '../streams/compile-config.ts';
import type { FromVetter, ToVetter } from './messages.ts';
import { DEFAULT_LIMITS, problemsOf, supervised, type VetterLimits } from './supervised.ts';
import { objectMessages, receivedLeaf, receivedRender } from './transfer.ts';

/** What rendering in a process of its own needs. */
export interface RenderConfigOptions {
  /** JavaScript file of the process that vets. */
  readonly program: string;
  readonly settings: CompileSettings;
  /** All objects by the name of their watched resource. */
  readonly objects: ReadonlyMap<string, readonly KubeObject[]>;
  readonly limits?: Partial<VetterLimits>;
}

/** A render that another process made, as far as it travels. */
export interface ReceivedRender extends Checkable {
  readonly problems: readonly Problem[];
  /** As `serialisePlan` writes it. */
  readonly serialisedPlan: string;
}

/** A render, or why there is none. */
export type ReceivedResult =
  | { readonly ok: true; readonly render: ReceivedRender }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Compiles a configuration and renders objects once, in a process of its own with limits of time and heap: no template
 * holds up or ends this one. Emits one result and never errors; unsubscribing kills the process.
 */
export const renderConfig = (
  config: TemplateConfig,
  { program, settings, objects, limits }: RenderConfigOptions,
): Observable<ReceivedResult> =>
  defer(() => {
    const leaves: Chunk[] = [];
    const respond = ({ type }: FromVetter): Observable<ToVetter> => {
      if (type === 'ready')
        return of({ type: 'start', config, settings, task: { type: 'render' } });
      return type === 'compiled' ? from(allMessages(objects)) : EMPTY;
    };
    const resultsOf = (message: FromVetter): readonly ReceivedResult[] => {
      switch (message.type) {
        case 'leaves':
          for (const leaf of message.leaves) leaves.push(receivedLeaf(leaf));
          return [];
        case 'rendered': {
          const { plan, problems } = message;
          const render = receivedRender(message.render, leaves);
          return [{ ok: true, render: { ...render, problems, serialisedPlan: plan } }];
        }
        case 'done':
          return message.problems.length > 0 ? [{ ok: false, problems: message.problems }] : [];
        default:
          return [];
      }
    };
    return supervised(program, respond, { ...DEFAULT_LIMITS, ...limits }).pipe(
      mergeMap(resultsOf),
      catchError((error: unknown) =>
        of<ReceivedResult>({ ok: false, problems: problemsOf(error) }),
      ),
    );
  });

function* allMessages(objects: RenderConfigOptions['objects']): Generator<ToVetter> {
  for (const [resource, list] of objects) yield* objectMessages(resource, list);
  yield { type: 'render' };
}
