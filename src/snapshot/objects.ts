/** Kubernetes objects as the pipeline carries them: plain, frozen by convention, untrusted in every field. */

export interface ObjectMeta {
  readonly name: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** `namespace/name`, with an empty namespace for cluster-scoped objects. */
export type ObjectKey = string;

export const objectKey = (object: KubeObject): ObjectKey =>
  `${object.metadata.namespace ?? ''}/${object.metadata.name}`;

/** Names an object in messages, statuses and events. */
export interface ObjectRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export const objectRef = (object: KubeObject): ObjectRef => ({
  apiVersion: object.apiVersion,
  kind: object.kind,
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name,
  uid: object.metadata.uid ?? '',
});
