import {
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  ignoreElements,
  merge,
  mergeMap,
  type Observable,
  scan,
  switchMap,
} from 'rxjs';
import { objectPath } from '../kube/api-resource.ts';
import { KubeError } from '../kube/client.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { Notification, Observer } from '../ports.ts';
import { deepEqual } from '../routing/fields.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { describeProblem } from './log-problems.ts';
import { whileLeading } from './while-leading.ts';
import {
  asCall,
  createWriter,
  type Members,
  type Writer,
  type WriterOptions,
  type WrittenResource,
} from './write-objects.ts';

/** Options of {@link configStatus}. */
export interface ConfigStatusOptions extends WriterOptions {
  /** RFC 3339, for `lastTransitionTime`. */
  readonly now: () => string;
}

const CONFIG: WrittenResource = {
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  plural: 'haproxytemplateconfigs',
};

/** Problems that a status lists, and characters of one. */
const MOST_ERRORS = 20;
const MOST_CHARACTERS = 1_024;

/** What became of the newest generation of the configuration object. */
interface Verdict {
  readonly object: ObjectRef;
  readonly generation: number;
  /** Undefined: accepted. */
  readonly problems: readonly Problem[] | undefined;
}

/**
 * Writes to the status of the `HAProxyTemplateConfig` what became of its newest generation: condition `Accepted` with
 * reason and message, and the problems as a list. The time of the condition moves only with its status, and what is there
 * already is not written again. Only the leader writes.
 */
export const configStatus =
  (options: ConfigStatusOptions): Observer =>
  (streams) =>
    defer(() => {
      const verdict$ = streams.notifications$.pipe(
        scan(nextVerdict, undefined as Verdict | undefined),
        filter((verdict) => verdict !== undefined),
        distinctUntilChanged(),
        shareLatest(),
      );
      return merge(
        verdict$.pipe(ignoreElements()),
        whileLeading(streams, () =>
          defer(() => {
            const writer = createWriter(options);
            return verdict$.pipe(
              switchMap((verdict) => writer.untilDone(write(verdict, writer, options))),
            );
          }),
        ),
      );
    });

/** A stand-in from the store has no object and changes nothing about the newest generation. */
const nextVerdict = (verdict: Verdict | undefined, event: Notification): Verdict | undefined => {
  if (event.type !== 'ConfigLoaded' && event.type !== 'ConfigRefused') return verdict;
  const { object, observedGeneration: generation } = event;
  if (object === undefined || generation === undefined) return verdict;
  const problems = event.type === 'ConfigRefused' ? event.problems : undefined;
  return { object, generation, problems };
};

const write = (
  verdict: Verdict,
  writer: Writer,
  options: ConfigStatusOptions,
): Observable<Notification> =>
  writer.run((writeOne) =>
    current(verdict, options).pipe(
      mergeMap((found) => {
        const status = statusOf(verdict, found['status'], options.now());
        return writeOne({
          write: () =>
            status === undefined
              ? undefined
              : {
                  ...{ verb: 'apply', resource: CONFIG, subresource: 'status' },
                  ...{ namespace: verdict.object.namespace, name: verdict.object.name },
                  // Another object of this name is not meant.
                  body: { metadata: { uid: verdict.object.uid }, status },
                },
          done: () => undefined,
          refused: () => undefined,
        });
      }),
    ),
  );

/** The object as it is; nothing when it is gone or another one. */
const current = (
  { object: { namespace, name, uid } }: Verdict,
  { client }: ConfigStatusOptions,
): Observable<KubeObject> => {
  const { apiVersion, plural } = CONFIG;
  return client
    .request({ method: 'GET', path: objectPath({ apiVersion, plural, namespace, name }) })
    .pipe(
      mergeMap((answer) => {
        const found = answer as KubeObject;
        return found.metadata.uid === uid ? [found] : [];
      }),
      catchError((error: unknown) =>
        error instanceof KubeError && error.code === 'not-found'
          ? EMPTY
          : asCall({ verb: 'get', resource: CONFIG, namespace, name })(error),
      ),
    );
};

/** The status to write; undefined when it is there. */
const statusOf = (verdict: Verdict, found: unknown, now: string): Members | undefined => {
  const status = isMembers(found) ? found : {};
  const conditions: readonly unknown[] = Array.isArray(status['conditions'])
    ? status['conditions']
    : [];
  const before = conditions.filter(isMembers).find(({ type }) => type === 'Accepted');
  const { condition, ...summary } = describe(verdict);
  const { lastTransitionTime, ...known } = before ?? {};
  const names = Object.keys(summary);
  const same = deepEqual(
    [summary, condition],
    [Object.fromEntries(names.map((name) => [name, status[name]])), known],
  );
  if (same) return undefined;
  const time = known['status'] === condition.status ? (lastTransitionTime ?? now) : now;
  return { ...summary, conditions: [{ ...condition, lastTransitionTime: time }] };
};

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const describe = ({ generation, problems }: Verdict) =>
  problems === undefined ? accepted(generation) : refused(generation, problems);

const accepted = (generation: number) => {
  const message = `Generation ${generation} is in force.`;
  return {
    observedGeneration: generation,
    validationStatus: 'Valid',
    validationMessage: message,
    validationErrors: [] as readonly string[],
    condition: {
      ...{ type: 'Accepted', status: 'True', observedGeneration: generation },
      ...{ reason: 'Accepted', message },
    },
  };
};

const refused = (generation: number, problems: readonly Problem[]): ReturnType<typeof accepted> => {
  const errors = problems.map((problem) => bounded(describeProblem(problem)));
  const [first = `Generation ${generation} is refused.`] = errors;
  const reason = problems[0]?.reason ?? '';
  const others = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return {
    observedGeneration: generation,
    validationStatus: 'Invalid',
    validationMessage: first,
    validationErrors: errors.slice(0, MOST_ERRORS),
    condition: {
      ...{ type: 'Accepted', status: 'False', observedGeneration: generation },
      ...{ reason: isReason(reason) ? reason : 'Refused', message: `${first}${others}` },
    },
  };
};

/** As Kubernetes wants the reason of a condition. */
const isReason = (word: string): boolean => /^[A-Za-z][A-Za-z0-9_]{0,127}$/.test(word);

const bounded = (text: string): string =>
  text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
