import type { KubeObject } from '../snapshot/objects.ts';
import type { Store } from '../snapshot/snapshot.ts';
import { deepEqual, textAt } from './fields.ts';

/** Which IngressClasses are ours. */
export interface IngressClassSettings {
  /** Name that needs no IngressClass object where no API server keeps one (standalone). */
  readonly name: string;
  /** `spec.controller` of the IngressClasses that are ours. */
  readonly controller: string;
  /** True: {@link name} is served without an IngressClass object. */
  readonly withoutObject: boolean;
}

/** What is served, as of one snapshot. */
export interface ServedClasses {
  readonly names: ReadonlySet<string>;
  /** Ingresses that name no class are served, because one of our classes is the default. */
  readonly default: boolean;
}

/** Names the class where `spec.ingressClassName` does not. */
export const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';
const DEFAULT_ANNOTATION = 'ingressclass.kubernetes.io/is-default-class';

/** Reads all IngressClasses; an equal result keeps the identity of `previous`. */
export const readClasses = (
  store: Store,
  settings: IngressClassSettings,
  previous?: ServedClasses,
): ServedClasses => {
  const ours = store
    .list()
    .filter((object) => textAt(object, 'spec', 'controller') === settings.controller);
  const names = ours.map((object) => object.metadata.name);
  if (settings.withoutObject && store.get('', settings.name) === undefined)
    names.push(settings.name);
  const isDefault = ours.some(
    (object) => textAt(object, 'metadata', 'annotations', DEFAULT_ANNOTATION) === 'true',
  );
  const same =
    previous?.default === isDefault && deepEqual([...previous.names].sort(), [...names].sort());
  return same ? previous : { names: new Set(names), default: isDefault };
};

/** Whether an Ingress is ours: one look at its class, before anything else of it is read. */
export const isServed = (ingress: KubeObject, classes: ServedClasses): boolean => {
  const name =
    textAt(ingress, 'spec', 'ingressClassName') ??
    textAt(ingress, 'metadata', 'annotations', CLASS_ANNOTATION);
  return name === undefined ? classes.default : classes.names.has(name);
};
