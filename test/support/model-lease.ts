import {
  defer,
  mergeMap,
  NEVER,
  type Observable,
  of,
  race,
  ReplaySubject,
  take,
  throwError,
  timer,
} from 'rxjs';
import { KubeError, type KubeClient, type KubeRequest } from '../../src/kube/client.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';

/** What becomes of one request on its way: how long each way takes, and whether it or its answer is lost. */
export interface Fate {
  readonly toMs?: number;
  readonly backMs?: number;
  readonly lost?: 'request' | 'answer';
  /** What the server says instead. */
  readonly error?: KubeError;
}

interface Spec {
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
  readonly renewTime: string;
  readonly leaseTransitions: number;
}

/** One Lease as a server keeps it, in virtual time: compare-and-set by resourceVersion, and requests that take time. */
export class ModelLease {
  object: KubeObject | undefined;
  #version = 0;
  readonly writes: string[] = [];

  /** A client whose requests meet these fates, by number from 0. */
  client(fate: (request: KubeRequest, index: number) => Fate = () => ({})): KubeClient {
    let count = 0;
    return {
      request: (request) =>
        defer(() => {
          const { toMs = 1, backMs = 1, lost, error } = fate(request, count++);
          const answer$ = new ReplaySubject<Observable<unknown>>(1);
          // A request that was sent arrives, whether or not anybody still waits for its answer.
          if (lost !== 'request') {
            timer(toMs).subscribe(() => answer$.next(this.#answer(request, error)));
          }
          const late$ = timer(request.timeoutMs ?? 30_000).pipe(
            mergeMap(() => throwError(() => new KubeError('timeout', 'no answer'))),
          );
          const back$ = answer$.pipe(
            take(1),
            mergeMap((answer) =>
              lost === 'answer' ? NEVER : timer(backMs).pipe(mergeMap(() => answer)),
            ),
          );
          return race(back$, late$);
        }),
      stream: () => NEVER,
      close: () => Promise.resolve(),
    };
  }

  get spec(): Spec {
    return this.object?.['spec'] as Spec;
  }

  get epoch(): string | undefined {
    return this.object?.metadata.annotations?.['haproxy-haptic.org/epoch'];
  }

  /** A write by somebody else. */
  edit(change: {
    readonly epoch?: string;
    readonly spec?: Readonly<Record<string, unknown>>;
  }): void {
    const { object } = this;
    this.#store({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      ...object,
      metadata: {
        name: 'haptic',
        namespace: 'ns',
        ...object?.metadata,
        annotations: {
          ...object?.metadata.annotations,
          ...(change.epoch !== undefined && { 'haproxy-haptic.org/epoch': change.epoch }),
        },
      },
      spec: { ...(object?.['spec'] as object | undefined), ...change.spec },
    });
  }

  #answer({ method, body }: KubeRequest, error: KubeError | undefined): Observable<unknown> {
    if (error !== undefined) return throwError(() => error);
    if (method === 'GET') return this.object === undefined ? refuse('not-found') : of(this.object);
    const object = body as KubeObject;
    const { resourceVersion } = object.metadata;
    const held = this.object;
    if (method === 'POST') return held === undefined ? of(this.#store(object)) : refuse('conflict');
    if (held === undefined) return refuse('not-found');
    return held.metadata.resourceVersion === resourceVersion
      ? of(this.#store(object))
      : refuse('conflict');
  }

  #store(object: KubeObject): KubeObject {
    this.#version += 1;
    const metadata = { uid: `uid-${String(this.#version)}`, ...object.metadata };
    this.object = {
      ...object,
      metadata: { ...metadata, resourceVersion: String(this.#version) },
    };
    this.writes.push(`${this.spec.holderIdentity} ${this.epoch ?? ''}`);
    return this.object;
  }
}

const refuse = (code: 'conflict' | 'not-found'): Observable<never> =>
  throwError(() => new KubeError(code, code));
