import {
  combineLatest,
  defer,
  distinctUntilChanged,
  map,
  type Observable,
  of,
  scan,
  switchMap,
} from 'rxjs';
import { shareLatest } from '../operators/share-latest.ts';
import type { Pod, ResourceSource } from '../ports.ts';
import { objectKey, type KubeObject, type ObjectKey } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';
import { readPod } from './haproxy-pod.ts';

/** Which pods are the fleet, and where their agents listen. */
export interface FleetSettings {
  /** Labels that all must hold; empty selects nothing, for it would mean every pod. */
  readonly podSelector: Readonly<Record<string, string>>;
  /** Port of the agents. */
  readonly port: number;
}

/** What {@link haproxyPods} needs. */
export interface HAProxyPodsOptions {
  readonly resources: Pick<ResourceSource, 'watch'>;
  /** The only namespace in which pods are looked for. */
  readonly namespace: string;
  /** Of the newest configuration. */
  readonly settings$: Observable<FleetSettings>;
}

/** The fleet as it is now. */
export interface Fleet {
  /** By {@link Pod.key}; a pod that did not change is the same object as before, and so is the map when none did. */
  readonly pods: ReadonlyMap<string, Pod>;
  /** Keys of the pods that are being deleted and still drain. */
  readonly leaving: ReadonlySet<string>;
  /** Pods that the selector names and that are left out, by name, with the reason for people. */
  readonly rejected: ReadonlyMap<string, string>;
  readonly problems: readonly Problem[];
}

/**
 * The fleet of HAProxy pods: emits it as a whole, when the pods have been listed and then whenever it is another one.
 *
 * A pod joins when its haproxy container has started and it has an address, and leaves when it is deleted or that container
 * has ended for good; each start of the container, and each uid, is another pod. A new selector takes over when its pods
 * have been listed; an empty one changes nothing and is a problem. Errors as the watch does.
 */
export const haproxyPods = ({
  resources,
  namespace,
  settings$,
}: HAProxyPodsOptions): Observable<Fleet> =>
  defer(() => {
    const shared$ = settings$.pipe(shareLatest());
    const listed$ = shared$.pipe(
      map(({ podSelector }) => podSelector),
      distinctUntilChanged(sameTerms),
      switchMap((selector) =>
        Object.keys(selector).length === 0
          ? of({ selector, objects: undefined })
          : resources.watch(podsOf(namespace, selector)).pipe(
              scan(withEvent, NOTHING),
              map((objects) => ({ selector, objects })),
            ),
      ),
    );
    const port$ = shared$.pipe(
      map(({ port }) => port),
      distinctUntilChanged(),
    );
    return combineLatest([listed$, port$]).pipe(
      scan(nextFleet, NO_FLEET),
      map(({ fleet }) => fleet),
      distinctUntilChanged(sameFleet),
    );
  });

type Objects = ReadonlyMap<ObjectKey, KubeObject>;

interface Listed {
  readonly selector: FleetSettings['podSelector'];
  /** Undefined: nothing can be listed with this selector. */
  readonly objects: Objects | undefined;
}

const NOTHING: Objects = new Map();

const NO_FLEET: { readonly objects: Objects; readonly fleet: Fleet } = {
  objects: NOTHING,
  fleet: { pods: new Map(), leaving: new Set(), rejected: new Map(), problems: [] },
};

const podsOf = (
  namespace: string,
  labelSelector: FleetSettings['podSelector'],
): WatchedResource => ({
  name: 'haproxy-pods',
  apiVersions: ['v1'],
  resources: 'pods',
  optional: false,
  namespaces: [namespace],
  labelSelector,
  fieldSelector: {},
  indexBy: [],
  ignoreFields: [],
  store: 'full',
  debounceMs: 0,
  maxWaitMs: 1_000,
});

const withEvent = (objects: Objects, event: WatchEvent): Objects => {
  if (event.type === 'Replaced') {
    return new Map(event.objects.map((object) => [objectKey(object), object]));
  }
  const next = new Map(objects);
  if (event.type === 'Deleted') next.delete(event.key);
  else next.set(objectKey(event.object), event.object);
  return next;
};

const nextFleet = (
  before: typeof NO_FLEET,
  [{ selector, objects = before.objects }, port]: readonly [Listed, number],
): typeof NO_FLEET => {
  const { members, rejected } = sort(objects, port);
  const known = before.fleet.pods;
  const found = new Map(members.map(({ pod }) => [pod.key, sameOrNew(known.get(pod.key), pod)]));
  const pods = sameMaps(known, found) ? known : found;
  const leaving = new Set(members.filter(({ isLeaving }) => isLeaving).map(({ pod }) => pod.key));
  const problems = problemsOf(selector, pods.size, rejected);
  return { objects, fleet: { pods, leaving, rejected, problems } };
};

type Member = Extract<ReturnType<typeof readPod>, { readonly pod: Pod }>;

const sort = (objects: Objects, port: number) => {
  const byUrl = new Map<string, Member>();
  const rejected = new Map<string, string>();
  for (const key of [...objects.keys()].sort()) {
    const object = objects.get(key) as KubeObject;
    const reading = readPod(object, port);
    if ('reason' in reading) {
      rejected.set(object.metadata.name, reading.reason);
      continue;
    }
    // The object of a pod on a lost node outlives its address, which the next pod may have by now.
    const { url } = reading.pod;
    const [owner, other] = inOrder(reading, byUrl.get(url));
    byUrl.set(url, owner);
    if (other !== undefined) rejected.set(other.pod.name, `${owner.pod.name} has its address`);
  }
  return { members: [...byUrl.values()], rejected };
};

/** Of two pods with one address, the one that stays and is younger comes first. */
const inOrder = (one: Member, two: Member | undefined): readonly [Member, Member | undefined] => {
  if (two === undefined) return [one, undefined];
  const wins = one.isLeaving === two.isLeaving ? one.createdAt > two.createdAt : two.isLeaving;
  return wins ? [one, two] : [two, one];
};

const sameOrNew = (before: Pod | undefined, pod: Pod): Pod =>
  before?.url === pod.url ? before : pod;

const problemsOf = (
  selector: FleetSettings['podSelector'],
  count: number,
  rejected: Fleet['rejected'],
): readonly Problem[] => {
  const terms = Object.entries(selector).map(([name, value]) => `${name}=${value}`);
  if (terms.length === 0) return [EMPTY_SELECTOR];
  if (count > 0) return [];
  const message =
    rejected.size === 0
      ? `no pod has the labels ${terms.join(',')}`
      : `no pod with the labels ${terms.join(',')} can be configured yet`;
  return [
    {
      severity: 'warning',
      reason: 'NoHAProxyPods',
      message,
      nextStep:
        'Compare spec.podSelector with the labels of the HAProxy pods in the namespace of the controller; /debug/vars says why a pod is left out.',
      field: 'spec.podSelector',
    },
  ];
};

const EMPTY_SELECTOR: Problem = {
  severity: 'error',
  reason: 'PodSelectorEmpty',
  message: 'spec.podSelector is empty and would select every pod; the fleet stays as it is',
  nextStep: 'Name the labels of the HAProxy pods in spec.podSelector.',
  field: 'spec.podSelector',
};

type Terms = FleetSettings['podSelector'];

const sameTerms = (before: Terms, after: Terms): boolean =>
  sameMaps(new Map(Object.entries(before)), new Map(Object.entries(after)));

const sameFleet = (before: Fleet, after: Fleet): boolean =>
  sameMaps(before.pods, after.pods) &&
  before.leaving.size === after.leaving.size &&
  [...after.leaving].every((key) => before.leaving.has(key)) &&
  sameMaps(before.rejected, after.rejected) &&
  before.problems.map(({ message }) => message).join() ===
    after.problems.map(({ message }) => message).join();

const sameMaps = <V>(before: ReadonlyMap<string, V>, after: ReadonlyMap<string, V>): boolean =>
  before.size === after.size && [...after].every(([key, value]) => before.get(key) === value);
