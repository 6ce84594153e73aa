import { PersistentMap } from '../cells/persistent-map.ts';
import { changesTo } from '../snapshot/changes-to.ts';
import { objectKey, type KubeObject } from '../snapshot/objects.ts';
import type { ObjectChange, Snapshot, Store } from '../snapshot/snapshot.ts';
import { DEFAULT_CERTIFICATE } from './contribution.ts';
import { textAt } from './fields.ts';
import { isServed, readClasses, type ServedClasses } from './ingress-class.ts';
import type { CertificateModel, InspectKeyPair, RouteModel } from './model.ts';
import { readIngress } from './read-ingress.ts';
import { RouteState, type RouteSources } from './route-state.ts';

/** What routing needs to know besides the objects. */
export interface RoutingSettings {
  readonly ingressClass: {
    /** For example `haptic`. */
    readonly name: string;
    /** `spec.controller` of the IngressClasses that are ours. */
    readonly controller: string;
  };
  /**
   * A directory is the API server: the class needs no IngressClass object, and endpoints on this machine are allowed.
   */
  readonly standalone: boolean;
  /** PEM of chain and key served where no other certificate fits; becomes the certificate `default`. */
  readonly defaultCertificate?: { readonly pem: string };
  readonly inspectKeyPair: InspectKeyPair;
}

/** Keeps the result of the snapshot before, and follows the changes from there. */
export interface Routing {
  /** The routes of a snapshot. Equal to what a new `Routing` makes of it, whatever was routed before. */
  route(snapshot: Snapshot): RouteModel;
  /**
   * The same in steps of a few milliseconds at most. Abandoned steps are no loss: whoever routes next goes on with them
   * first. Only the newest steps may be taken.
   */
  steps(snapshot: Snapshot): Generator<void, RouteModel>;
}

/** Objects looked at between two steps. */
const SLICE = 128;

const SERVICE_LABEL = 'kubernetes.io/service-name';

const EMPTY: Store = {
  size: 0,
  objects: PersistentMap.EMPTY,
  get: () => undefined,
  fetch: () => [],
  list: () => [],
};

const storeOf = (snapshot: Snapshot, resource: string): Store =>
  snapshot.resources.includes(resource) ? snapshot.store(resource) : EMPTY;

const defaultRecord = (pem: string): CertificateModel => ({
  name: DEFAULT_CERTIFICATE,
  hosts: [],
  pem,
  object: undefined,
});

class IncrementalRouting implements Routing {
  readonly #settings: RoutingSettings;
  #state: RouteState;
  #routed: { readonly snapshot: Snapshot; readonly model: RouteModel } | undefined;
  #classes: ServedClasses | undefined;
  /** Work that is not finished: its state is between two snapshots. */
  #begun: Generator<void, RouteModel> | undefined;

  constructor(settings: RoutingSettings) {
    this.#settings = settings;
    this.#state = this.#newState();
  }

  route(snapshot: Snapshot): RouteModel {
    const steps = this.steps(snapshot);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  *steps(snapshot: Snapshot): Generator<void, RouteModel> {
    if (this.#begun !== undefined) yield* this.#finish(this.#begun);
    const routed = this.#routed;
    if (routed?.snapshot === snapshot) return routed.model;
    this.#begun = this.#work(snapshot);
    return yield* this.#finish(this.#begun);
  }

  /** Not `yield*`: that would end the work together with steps that are abandoned. */
  *#finish(work: Generator<void, RouteModel>): Generator<void, RouteModel> {
    for (;;) {
      const step = this.#next(work);
      if (step.done === true) return step.value;
      yield;
    }
  }

  #next(work: Generator<void, RouteModel>): IteratorResult<void, RouteModel> {
    this.#begun = undefined; // should it throw, the next snapshot is routed from scratch
    const step = work.next();
    if (step.done !== true) this.#begun = work;
    return step;
  }

  *#work(snapshot: Snapshot): Generator<void, RouteModel> {
    const routed = this.#routed;
    if (routed === undefined) this.#state = this.#newState();
    this.#routed = undefined;
    const classes = this.#readClasses(snapshot);
    const reclassified = classes !== this.#classes;
    this.#classes = classes;
    if (routed !== undefined) {
      const changes = changesTo(routed.snapshot, snapshot);
      yield* inSteps(changes, (change) => this.#follow(change, classes));
    }
    // From scratch the Ingresses are enough: what they refer to is looked up.
    if (routed === undefined || reclassified) yield* this.#contributeAll(snapshot, classes);
    const model = yield* this.#state.update(this.#sources(snapshot));
    this.#routed = { snapshot, model };
    return model;
  }

  #newState(): RouteState {
    const { inspectKeyPair, defaultCertificate } = this.#settings;
    const record =
      defaultCertificate === undefined ? undefined : defaultRecord(defaultCertificate.pem);
    return new RouteState(inspectKeyPair, record);
  }

  #readClasses(snapshot: Snapshot): ServedClasses {
    const { ingressClass, standalone } = this.#settings;
    const settings = { ...ingressClass, withoutObject: standalone };
    return readClasses(storeOf(snapshot, 'ingressclasses'), settings, this.#classes);
  }

  #sources(snapshot: Snapshot): RouteSources {
    return {
      services: storeOf(snapshot, 'services'),
      endpointSlices: storeOf(snapshot, 'endpointslices'),
      secrets: storeOf(snapshot, 'secrets'),
      allowLocal: this.#settings.standalone,
    };
  }

  #follow({ resource, key, before, after }: ObjectChange, classes: ServedClasses): void {
    if (resource === 'ingresses') this.#contribute(key, after, classes);
    for (const object of [before, after]) {
      if (object !== undefined) this.#touch(resource, object);
    }
  }

  #touch(resource: string, object: KubeObject): void {
    const { namespace = '', name } = object.metadata;
    if (resource === 'services') this.#state.touchService(namespace, name);
    else if (resource === 'secrets') this.#state.touchSecret(namespace, name);
    else if (resource === 'endpointslices') {
      const service = textAt(object, 'metadata', 'labels', SERVICE_LABEL);
      if (service !== undefined) this.#state.touchService(namespace, service);
    }
  }

  #contribute(key: string, ingress: KubeObject | undefined, classes: ServedClasses): void {
    const ours = ingress !== undefined && isServed(ingress, classes);
    this.#state.contribute(key, ours ? readIngress(ingress) : undefined);
  }

  #contributeAll(snapshot: Snapshot, classes: ServedClasses): Generator<void> {
    return inSteps(storeOf(snapshot, 'ingresses').list(), (ingress) =>
      this.#contribute(objectKey(ingress), ingress, classes),
    );
  }
}

/** Calls something for each element, some at a time. */
function* inSteps<T>(elements: Iterable<T>, visit: (element: T) => void): Generator<void> {
  let count = 0;
  for (const element of elements) {
    visit(element);
    count += 1;
    if (count % SLICE === 0) yield;
  }
}

/** Routing that works incrementally; see {@link Routing}. */
export const createRouting = (settings: RoutingSettings): Routing =>
  new IncrementalRouting(settings);
