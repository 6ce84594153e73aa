import { catchError, defer, delay, Observable, of, switchMap, throwError, timer } from 'rxjs';
import { KubeError, type KubeClient, type KubeRequest } from '../../src/kube/client.ts';
import { refusalError } from '../../src/kube/kube-error.ts';
import { type ApiModel, type CollectionQuery, Gone, TooLarge } from './api-model.ts';
import { statusObject } from './fault-server.ts';

/** How one request goes wrong; the time it takes to answer comes in any case. */
export type ModelFault =
  /** The request is refused. */
  | { readonly type: 'refused'; readonly code: KubeError['code'] }
  /** A watch breaks after so many events. */
  | { readonly type: 'broken'; readonly after: number }
  /** A watch says an ERROR event after so many events. */
  | { readonly type: 'error-event'; readonly after: number; readonly status: number }
  /** A watch ends in order after so many events. */
  | { readonly type: 'ended'; readonly after: number }
  /** A watch sends nothing. */
  | { readonly type: 'silent' }
  /** A watch sends each event twice. */
  | { readonly type: 'twice' };

/** What happens to a request. */
export interface ModelAnswer {
  readonly latencyMs: number;
  readonly fault: ModelFault | undefined;
}

/**
 * A client whose API server is a model in virtual time: for faults in numbers that no socket can be made to show. Every
 * watch gets a bookmark a minute.
 *
 * @param answers what happens to each request in turn
 */
export const modelClient = (model: ApiModel, answers: () => ModelAnswer): KubeClient => {
  const answered =
    (run: (request: KubeRequest, fault?: ModelFault) => Observable<unknown>) =>
    (request: KubeRequest): Observable<unknown> =>
      defer(() => {
        const { latencyMs, fault } = answers();
        return timer(latencyMs).pipe(
          switchMap(() =>
            fault?.type === 'refused'
              ? throwError(() => new KubeError(fault.code, 'refused'))
              : run(request, fault),
          ),
        );
      });
  return {
    request: answered(({ path, query = {} }) =>
      // Pages of two objects, so that there are several; the answer is of an earlier moment than its arrival.
      guarded(() => of(model.list(selection(path), 2, String(query['continue'] ?? '')))).pipe(
        delay(5),
      ),
    ),
    stream: answered((request, fault) => guarded(() => watchOf(model, request, fault))),
    close: () => Promise.resolve(),
  };
};

const selection = (path: string): CollectionQuery => ({
  namespace: /\/namespaces\/([^/]+)\//.exec(path)?.[1],
});

/** What the model throws, as the errors that an API server's answers would be. */
const guarded = (ask: () => Observable<unknown>): Observable<unknown> =>
  defer(ask).pipe(
    catchError((error: unknown) => {
      if (error instanceof Gone) throw new KubeError('gone', 'too old');
      if (!(error instanceof TooLarge)) throw error;
      const details = { causes: [{ reason: 'ResourceVersionTooLarge' }] };
      throw refusalError({ request: 'watch', status: 504, answer: { details } });
    }),
  );

const watchOf = (
  model: ApiModel,
  { path, query = {} }: KubeRequest,
  fault: ModelFault | undefined,
): Observable<unknown> =>
  new Observable((subscriber) => {
    let sent = Number(query['resourceVersion']);
    let count = 0;
    const fail = (kind: ModelFault): void => {
      if (kind.type === 'broken') subscriber.error(new KubeError('unreachable', 'reset'));
      if (kind.type === 'ended') subscriber.complete();
      if (kind.type !== 'error-event') return;
      subscriber.next({ type: 'ERROR', object: statusObject(kind.status, 'a fault') });
    };
    const send = (event: unknown): void => {
      if (fault?.type === 'silent') return;
      if (fault !== undefined && 'after' in fault && count >= fault.after) {
        fail(fault);
        return;
      }
      count += 1;
      subscriber.next(event);
      if (fault?.type === 'twice') subscriber.next(event);
    };
    const flush = (): void => {
      const events = model.eventsAfter(sent, selection(path));
      sent = model.version;
      for (const event of events) send(event);
    };
    flush();
    subscriber.add(model.onChange(flush));
    subscriber.add(timer(60_000, 60_000).subscribe(() => send(model.bookmark())));
  });
