import { catchError, concat, defer, EMPTY, map, type Observable, of, tap, throwError } from 'rxjs';
import type { ApiResource } from '../kube/api-resource.ts';
import { collectionPath, objectPath } from '../kube/api-resource.ts';
import type { KubeClient, KubeRequest } from '../kube/client.ts';
import type { Notification } from '../ports.ts';
import type { Problem } from '../snapshot/problem.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import { type ApiCall, CallFailed, callProblem } from './call-failed.ts';

/** Owner of the fields that HAPTIC applies. */
export const FIELD_MANAGER = 'haptic';

export type Members = Readonly<Record<string, unknown>>;

/** A kind that is written. */
export type WrittenResource = Pick<ApiResource, 'apiVersion' | 'kind' | 'plural'>;

/**
 * One write: `apply` is server-side apply that takes over the fields it names, `create` refuses what exists, `delete`
 * is content with what is gone.
 */
export interface ObjectWrite extends ApiCall {
  readonly verb: 'apply' | 'create' | 'delete';
  readonly name: string;
  /** Members of the object; apiVersion, kind, name and namespace are added. */
  readonly body?: Members;
  /** Default `haptic`. Two writers of one object need two, or each would take away what the other applied. */
  readonly fieldManager?: string;
}

/** Something to be written when its turn comes. */
export interface WriteTask {
  /** What is to be written now; undefined when that is no longer needed. */
  readonly write: () => ObjectWrite | undefined;
  /** It is written, or what was to be deleted or to get a status is gone. */
  readonly done: () => void;
  /** The server will refuse the same again. */
  readonly refused: () => void;
}

/** Carries out one task of a run. Errors when the rest of the run is in vain. */
export type WriteOne = (task: WriteTask) => Observable<Notification>;

/** How a term writes to the API server. */
export interface Writer {
  /**
   * One run over what is to be written. It goes on past objects that are refused, gone, in conflict or in a namespace
   * without rights, and ends at once when the server cannot be asked. Errors at its end with {@link CallFailed} when
   * something is left to be tried again.
   */
  run(tasks: (write: WriteOne) => Observable<Notification>): Observable<Notification>;
  /** Runs again until it succeeds, later and later, not before the server wants it; every failure is told. */
  untilDone(attempt$: Observable<Notification>): Observable<Notification>;
  /** What is not written on purpose is told like what cannot be. */
  withheld(call: Told, problem: Problem): Notification;
}

type WriteFailed = Extract<Notification, { type: 'WriteFailed' }>;

/** Options of {@link createWriter}. */
export interface WriterOptions {
  readonly client: KubeClient;
  /** Randomness for jitter, from 0 up to 1. */
  readonly random: () => number;
}

/** Waits between runs, in milliseconds. */
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 60_000;

/** A writer for one term; what it told belongs to the term. */
export const createWriter = ({ client, random }: WriterOptions): Writer => {
  const told = new Tellings();
  const tell = (failure: CallFailed): Observable<Notification> => {
    if (failure.told) return EMPTY;
    failure.told = true;
    return of(told.failure(failure.call, failure.code, callProblem(failure)));
  };
  return {
    run: (tasks) =>
      defer(() => {
        const blocked = new Set<string>();
        let open: CallFailed | undefined;
        const failed = (task: WriteTask, failure: CallFailed): Observable<Notification> => {
          switch (outcomeOf(failure)) {
            case 'done':
              task.done();
              return EMPTY;
            case 'refused':
              task.refused();
              return tell(failure);
            case 'blocked':
              blocked.add(scopeOf(failure.call));
              break;
            case 'again':
              break;
            case 'stop':
              return failing(failure);
          }
          open = failure;
          return tell(failure);
        };
        const writeOne: WriteOne = (task) =>
          defer(() => {
            const write = task.write();
            if (write === undefined || blocked.has(scopeOf(write))) return EMPTY;
            const request = requestOf(write);
            return client.request(request).pipe(
              tap(() => {
                task.done();
              }),
              map(() => told.written(write, sizeOf(request))),
              catchError((error: unknown) => failed(task, CallFailed.of(write, error))),
            );
          });
        return concat(
          tasks(writeOne),
          defer(() => failing(open)),
        );
      }),
    untilDone: (attempt$) =>
      attempt$.pipe(
        catchError((error: unknown) => {
          if (!(error instanceof CallFailed)) throw error;
          return concat(tell(error), failing(error));
        }),
        retryBackoff({
          initialMs: FIRST_RETRY_MS,
          maxMs: LAST_RETRY_MS,
          jitter: 0.3,
          random,
          // A run that tells its failures emits: only one that went on for a while is a sign of health.
          resetAfterMs: LAST_RETRY_MS,
          retryAfter: (error) =>
            error instanceof CallFailed ? error.cause.retryAfterMs : undefined,
          shouldRetry: (error) => error instanceof CallFailed,
        }),
      ),
    withheld: (call, problem) => told.failure(call, 'withheld', problem),
  };
};

type Told = Pick<ApiCall, 'resource' | 'namespace'>;

/** Which failures were told and are not over: one is when a write of its kind in its namespace succeeds. */
class Tellings {
  readonly #open = new Map<string, Set<string>>();

  written(call: Told, bytes: number): Notification {
    this.#open.delete(keyOf(call));
    return { type: 'Written', kind: call.resource.kind, bytes };
  }

  failure(call: Told, outcome: WriteFailed['outcome'], problem: Problem): WriteFailed {
    const open = this.#open.get(keyOf(call)) ?? new Set<string>();
    this.#open.set(keyOf(call), open);
    // The next step says what a person has to do: of a thousand objects it is told once.
    const key = `${outcome} ${problem.nextStep}`;
    const repeated = open.has(key);
    open.add(key);
    return { type: 'WriteFailed', kind: call.resource.kind, outcome, problem, repeated };
  }
}

const keyOf = ({ resource, namespace }: Told): string => `${resource.kind} ${namespace}`;

const outcomeOf = ({
  code,
  call,
}: CallFailed): 'done' | 'refused' | 'blocked' | 'again' | 'stop' => {
  switch (code) {
    case 'not-found':
      // A delete has nothing left to do, nor has a status without its object, nor what was to be created in a namespace
      // that is gone.
      return call.verb !== 'apply' || call.subresource === 'status' ? 'done' : 'blocked';
    case 'conflict':
      // Whoever creates under a name that says all has created the same before.
      return call.verb === 'create' ? 'done' : 'again';
    case 'invalid':
      return 'refused';
    case 'forbidden':
      return 'blocked';
    default:
      return 'stop';
  }
};

const scopeOf = ({ verb, resource, namespace, subresource }: ApiCall): string =>
  [verb, resource.apiVersion, resource.plural, subresource, namespace].join(' ');

const requestOf = (write: ObjectWrite): KubeRequest => {
  const { verb, resource, namespace, name, body = {} } = write;
  const { apiVersion, kind, plural } = resource;
  const where = { apiVersion, plural, ...(namespace === '' ? {} : { namespace }) };
  const path = objectPath({
    ...where,
    name,
    ...(write.subresource === undefined ? {} : { subresource: write.subresource }),
  });
  if (verb === 'delete') return { method: 'DELETE', path };
  const metadata = { ...(body['metadata'] as Members | undefined), name };
  const object = {
    ...body,
    apiVersion,
    kind,
    metadata: namespace === '' ? metadata : { ...metadata, namespace },
  };
  const fieldManager = write.fieldManager ?? FIELD_MANAGER;
  if (verb === 'create') {
    return { method: 'POST', path: collectionPath(where), query: { fieldManager }, body: object };
  }
  return {
    method: 'PATCH',
    path,
    query: { fieldManager, force: true },
    contentType: 'application/apply-patch+yaml',
    body: object,
  };
};

const failing = (failure: CallFailed | undefined): Observable<never> =>
  failure === undefined ? EMPTY : throwError(() => failure);

const sizeOf = ({ body }: KubeRequest): number =>
  body === undefined ? 0 : Buffer.byteLength(JSON.stringify(body));

/** For errors of calls that read what is there before something is written. */
export const asCall =
  (call: ApiCall) =>
  (error: unknown): Observable<never> =>
    throwError(() => CallFailed.of(call, error));
