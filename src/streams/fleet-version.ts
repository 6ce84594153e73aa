import {
  connect,
  defer,
  distinctUntilChanged,
  map,
  merge,
  type Observable,
  startWith,
  switchMap,
  tap,
} from 'rxjs';
import { forEachKey } from '../operators/for-each-key.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import type { AgentClient, Pod } from '../ports.ts';
import { isAtLeast, minorOf } from '../render/version.ts';
import type { Fleet } from './haproxy-pods.ts';

/** Where {@link fleetVersion} asks. */
export interface FleetVersionOptions {
  readonly client: Pick<AgentClient, 'state'>;
  /** Never completes before who listens has had enough. */
  readonly fleet$: Observable<Pick<Fleet, 'pods' | 'leaving'>>;
  /** Of the controller's own HAProxy: in force until a pod has answered, and while there is no pod. */
  readonly localVersion: string;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/**
 * The lowest HAProxy version of the fleet, pods that are leaving ignored: what templates may use (D13). The local version
 * at once, then each one of another minor. Every pod is asked until it answers, once for each start of its HAProxy. Errors
 * only when the fleet does.
 */
export const fleetVersion = ({
  client,
  fleet$,
  localVersion,
  random,
}: FleetVersionOptions): Observable<string> => {
  const ask = (pod: Pod): Observable<string> =>
    client.state(pod, { verify: false }).pipe(
      map(({ haproxy: { version } }) => {
        if (!/^\d{1,4}\.\d{1,4}/.test(version)) throw new Error('HAProxy does not answer yet');
        return version;
      }),
      retryBackoff({ initialMs: 1_000, jitter: 0.5, random }),
    );
  return defer(() => {
    const versions = new Map<string, string>();
    const forget = (staying: ReadonlyMap<string, Pod>): void => {
      for (const key of versions.keys()) if (!staying.has(key)) versions.delete(key);
    };
    const learn = (key: string, pod$: Observable<Pod>): Observable<unknown> =>
      pod$.pipe(
        switchMap(ask),
        tap((version) => versions.set(key, version)),
      );
    return fleet$.pipe(
      map(({ pods, leaving }) => new Map([...pods].filter(([key]) => !leaving.has(key)))),
      connect((staying$) => merge(staying$.pipe(tap(forget)), staying$.pipe(forEachKey(learn)))),
      map(() => lowest([...versions.values()]) ?? localVersion),
      startWith(localVersion),
      distinctUntilChanged((before, after) => minorOf(before) === minorOf(after)),
    );
  });
};

const lowest = (versions: readonly string[]): string | undefined =>
  versions.reduce<string | undefined>(
    (low, version) => (low === undefined || !isAtLeast(version, low) ? version : low),
    undefined,
  );
