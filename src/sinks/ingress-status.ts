import {
  combineLatest,
  concat,
  defer,
  EMPTY,
  filter,
  from,
  ignoreElements,
  merge,
  mergeMap,
  type Observable,
  of,
  scan,
  tap,
  timer,
} from 'rxjs';
import type { KubeClient } from '../kube/client.ts';
import { latestWins } from '../operators/latest-wins.ts';
import { schedule } from '../operators/schedule.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { Desired, Notification, Observer, ResourceSource } from '../ports.ts';
import { isServed, readClasses, type IngressClassSettings } from '../routing/ingress-class.ts';
import { type KubeObject, objectKey, type ObjectKey } from '../snapshot/objects.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';
import { type Addresses, KnownAddresses, NO_ADDRESSES } from './known-addresses.ts';
import { listObjects } from './list-objects.ts';
import { serviceAddresses } from './service-addresses.ts';
import { whileLeading } from './while-leading.ts';
import {
  createWriter,
  type Writer,
  type WriterOptions,
  type WriteTask,
  type WrittenResource,
} from './write-objects.ts';

/** Options of {@link ingressStatus}. */
export interface IngressStatusOptions extends WriterOptions {
  readonly resources: ResourceSource;
  /** The Service whose addresses lead to the fleet. */
  readonly service: { readonly namespace: string; readonly name: string };
  readonly classes: IngressClassSettings;
  /** Namespaces that are watched. Empty: all. */
  readonly namespaces: readonly string[];
  /** Least time, in milliseconds, between two looks at all Ingresses. Default 1000. */
  readonly intervalMs?: number;
  /** How often, in milliseconds, statuses are listed anew, so that what others wrote is mended. Default an hour. */
  readonly relistMs?: number;
}

const INGRESS: WrittenResource = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  plural: 'ingresses',
};
const HOUR_MS = 3_600_000;
/** Writes in flight. */
const CONCURRENCY = 8;
const PAGE = 500;

interface Level {
  readonly snapshot: Snapshot;
  /** Undefined: the Service is not there, so nobody knows. */
  readonly service: KubeObject | undefined;
  readonly list: number;
}

/**
 * Writes the addresses of the HAProxy Service to `status.loadBalancer` of every Ingress of our classes in what the fleet
 * runs, and takes ours away from one that left them. Level-triggered: what an Ingress has already is not written; each
 * write takes what is newest when its turn comes. Only the leader writes.
 */
export const ingressStatus =
  (options: IngressStatusOptions): Observer =>
  (streams) =>
    defer(() => {
      const desired$ = streams.desired$.pipe(shareLatest());
      return merge(
        desired$.pipe(ignoreElements()),
        whileLeading(streams, (epoch) =>
          combineLatest({
            snapshot: desired$.pipe(
              filter((desired) => desired.epoch === epoch),
              mergeMap(runningSnapshot),
            ),
            service: publishedService(options),
            list: timer(0, options.relistMs ?? HOUR_MS),
          }).pipe(writeStatuses(options)),
        ),
      );
    });

const runningSnapshot = ({ target }: Desired): readonly Snapshot[] =>
  target?.snapshot.resources.includes('ingresses') === true ? [target.snapshot] : [];

/** The Service by a watch of its own, since a configuration may watch other Services or none. */
const publishedService = ({
  resources,
  service: { namespace, name },
}: IngressStatusOptions): Observable<KubeObject | undefined> => {
  const resource: WatchedResource = {
    name: 'publish-service',
    apiVersions: ['v1'],
    resources: 'services',
    optional: false,
    namespaces: [namespace],
    labelSelector: {},
    fieldSelector: { 'metadata.name': name },
    indexBy: ['metadata.namespace', 'metadata.name'],
    ignoreFields: ['metadata.managedFields'],
    store: 'full',
    debounceMs: 0,
    maxWaitMs: 1_000,
  };
  const isIt = ({ metadata }: KubeObject): boolean =>
    metadata.namespace === namespace && metadata.name === name;
  const after = (before: KubeObject | undefined, event: WatchEvent): KubeObject | undefined => {
    switch (event.type) {
      case 'Replaced':
        return event.objects.find(isIt);
      case 'Upserted':
        return isIt(event.object) ? event.object : before;
      case 'Deleted':
        return event.key === `${namespace}/${name}` ? undefined : before;
    }
  };
  return resources.watch(resource).pipe(scan(after, undefined as KubeObject | undefined));
};

/** One term. */
const writeStatuses =
  (options: IngressStatusOptions) =>
  (level$: Observable<Level>): Observable<Notification> =>
    defer(() => {
      const writer = createWriter(options);
      const term = new Term(options);
      return level$.pipe(
        tap((level) => term.take(level)),
        schedule({
          intervalMs: options.intervalMs ?? 1_000,
          classify: (last, next) => (isSame(last, next) ? 'none' : 'later'),
        }),
        latestWins(() => writer.untilDone(defer(() => term.write(writer)))),
      );
    });

/** A change of endpoints leaves the stores of Ingresses and classes the objects they were. */
const isSame = (last: Level | undefined, next: Level): boolean =>
  last?.list === next.list &&
  last.service === next.service &&
  storesOf(last.snapshot).every((store, index) => store === storesOf(next.snapshot)[index]);

const storesOf = (snapshot: Snapshot) =>
  ['ingresses', 'ingressclasses']
    .filter((name) => snapshot.resources.includes(name))
    .map((name) => snapshot.store(name));

/** What one term knows and wants. */
class Term {
  readonly #client: KubeClient;
  readonly #options: IngressStatusOptions;
  readonly #known = new KnownAddresses();
  #newest: Level | undefined;
  #wanted: Addresses | undefined;
  #listed: number | undefined;

  constructor(options: IngressStatusOptions) {
    this.#client = options.client;
    this.#options = options;
  }

  take(level: Level): void {
    this.#newest = level;
    const { service } = level;
    this.#wanted =
      service === undefined ? undefined : this.#known.valueOf(serviceAddresses(service));
  }

  /** Lists where that is due, then writes what differs. */
  write(writer: Writer): Observable<Notification> {
    return concat(
      defer(() => (this.#listed === this.#newest?.list ? EMPTY : this.#list())),
      writer.run((write) =>
        defer(() => from(this.#tasks()).pipe(mergeMap((task) => write(task), CONCURRENCY))),
      ),
      defer(() => this.#missing(writer)),
    );
  }

  /** Without the Service statuses are left as they are: it may be on its way from one name to another. */
  #missing(writer: Writer): Observable<Notification> {
    if (this.#newest?.service !== undefined) return EMPTY;
    const { namespace, name } = this.#options.service;
    return of(
      writer.withheld(
        { resource: INGRESS, namespace },
        {
          severity: 'warning',
          reason: 'PublishServiceNotFound',
          message: `Service ${namespace}/${name} does not exist, so statuses of Ingresses stay as they are.`,
          nextStep: 'Create it, or name another one with --publish-service.',
        },
      ),
    );
  }

  #list(): Observable<never> {
    const { namespaces } = this.#options;
    const list = this.#newest?.list;
    return defer(() => {
      this.#known.clear();
      return from(namespaces.length === 0 ? [''] : namespaces);
    }).pipe(
      mergeMap(
        (namespace) => listObjects(this.#client, { resource: INGRESS, namespace, limit: PAGE }),
        1,
      ),
      tap({
        next: (ingress) => this.#known.observe(ingress),
        complete: () => {
          this.#listed = list;
        },
      }),
      ignoreElements(),
    );
  }

  /** One task for each Ingress whose addresses differ. */
  *#tasks(): Generator<WriteTask> {
    const level = this.#newest;
    if (level === undefined) return;
    const served = new Set<ObjectKey>();
    for (const ingress of this.#served(level)) {
      served.add(objectKey(ingress));
      if (this.#needed(ingress, 'served') !== undefined) yield this.#task(ingress, 'served');
    }
    const store = level.snapshot.store('ingresses');
    for (const key of this.#known.ours()) {
      if (served.has(key)) continue;
      const [namespace = '', name = ''] = key.split('/');
      const left = store.get(namespace, name);
      if (left === undefined) this.#known.forget(key);
      else yield this.#task(left, 'left');
    }
  }

  *#served({ snapshot }: Level): Generator<KubeObject> {
    const { classes } = this.#options;
    const known = snapshot.resources.includes('ingressclasses')
      ? readClasses(snapshot.store('ingressclasses'), classes)
      : { names: new Set(classes.withoutObject ? [classes.name] : []), default: false };
    for (const ingress of snapshot.store('ingresses').list()) {
      if (isServed(ingress, known)) yield ingress;
    }
  }

  /** The addresses that an Ingress should be given; undefined when it has them, or nobody knows them. */
  #needed(ingress: KubeObject, place: 'served' | 'left'): Addresses | undefined {
    const wanted = place === 'left' ? NO_ADDRESSES : this.#wanted;
    return wanted === undefined || this.#known.has(ingress, wanted) ? undefined : wanted;
  }

  #task(ingress: KubeObject, place: 'served' | 'left'): WriteTask {
    const { name, namespace = '' } = ingress.metadata;
    let addresses: Addresses | undefined;
    const settled = (): void => {
      if (addresses !== undefined) this.#known.written(ingress, addresses);
    };
    return {
      write: () => {
        addresses = this.#needed(ingress, place);
        if (addresses === undefined) return undefined;
        // Without the field that we applied before, the server takes it away, if nobody else has taken it over.
        const loadBalancer = addresses.entries.length === 0 ? {} : { ingress: addresses.entries };
        return {
          verb: 'apply',
          resource: INGRESS,
          namespace,
          name,
          subresource: 'status',
          body: { status: { loadBalancer } },
        };
      },
      done: settled,
      refused: settled,
    };
  }
}
