import type { Observable, Subscription } from 'rxjs';
import { createKubeClient, type KubeClientOptions } from '../../src/kube/undici-client.ts';
import type { KubeAccess } from '../../src/kube/kube-access.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type KubeObject, type ObjectKey, objectKey } from '../../src/snapshot/objects.ts';
import type { WatchEvent } from '../../src/snapshot/watch.ts';

/** Access to a server without credentials, with these headers. */
export const plainAccess = (
  server: string,
  headers: Readonly<Record<string, string>> = {},
): KubeAccess => ({
  server,
  namespace: undefined,
  credentials: async () => ({ headers, tls: {} }),
});

/** A client of a server on loopback. */
export const plainClient = (
  server: string,
  headers: Readonly<Record<string, string>> = {},
  options: KubeClientOptions = {},
): KubeClient => createKubeClient(plainAccess(server, headers), options);

/** What a consumer holds after an event. */
export const foldEvent = (
  state: ReadonlyMap<ObjectKey, KubeObject>,
  event: WatchEvent,
): ReadonlyMap<ObjectKey, KubeObject> => {
  if (event.type === 'Replaced') {
    return new Map(event.objects.map((object) => [objectKey(object), object]));
  }
  const next = new Map(state);
  if (event.type === 'Upserted') next.set(objectKey(event.object), event.object);
  else next.delete(event.key);
  return next;
};

/** Object key → uid and version of all objects, in words that compare. */
export const contentOf = (objects: Iterable<KubeObject>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...objects]
      .map((object): [string, string] => [
        objectKey(object),
        `${object.metadata.uid ?? ''}@${object.metadata.resourceVersion ?? ''}`,
      ])
      .sort(([left], [right]) => (left < right ? -1 : 1)),
  );

/** A subscription to a watch, with all it has said and what it leads to. */
export class Watching {
  readonly events: WatchEvent[] = [];
  /** How often everything was replaced. */
  replaced = 0;
  ended: unknown;
  #state: ReadonlyMap<ObjectKey, KubeObject> = new Map();
  readonly #subscription: Subscription;

  constructor(event$: Observable<WatchEvent>) {
    this.#subscription = event$.subscribe({
      next: (event) => {
        this.events.push(event);
        if (event.type === 'Replaced') this.replaced += 1;
        this.#state = foldEvent(this.#state, event);
      },
      error: (error: unknown) => (this.ended = error),
      complete: () => (this.ended = 'completed'),
    });
  }

  get content(): Readonly<Record<string, string>> {
    return contentOf(this.#state.values());
  }

  get(key: ObjectKey): KubeObject | undefined {
    return this.#state.get(key);
  }

  stop(): void {
    this.#subscription.unsubscribe();
  }
}
