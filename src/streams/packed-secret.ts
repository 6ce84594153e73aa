import { gunzipSync, gzipSync } from 'node:zlib';
import { catchError, type Observable, of } from 'rxjs';
import { objectPath } from '../kube/api-resource.ts';
import { type KubeClient, KubeError } from '../kube/client.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';

/** Values that a controller keeps for the next one, each in a Secret beside the configuration object. */

/** Bytes of a value after unpacking. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Bytes of a packed value; a Secret holds 1 MiB. */
const MOST_PACKED = 900 * 1024;

/** A Secret to apply. */
export interface PackedSecret {
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Where a value is kept. */
export interface PackedKind {
  /** What the name of the Secret ends with, after that of the configuration. */
  readonly suffix: string;
  /** Key of the Secret's data. */
  readonly key: string;
  /** Type of the Secret. */
  readonly type: string;
}

/** The Secret for a value, which goes when the configuration object goes; undefined: it does not fit. */
export const packedSecret = (
  { suffix, key, type }: PackedKind,
  { apiVersion, kind, name, uid }: ObjectRef,
  { value, annotations }: { value: unknown; annotations?: Readonly<Record<string, string>> },
): PackedSecret | undefined => {
  const packed = gzipSync(JSON.stringify(value));
  if (packed.length > MOST_PACKED) return undefined;
  return {
    name: `${name}${suffix}`,
    body: {
      metadata: {
        ...(annotations !== undefined && { annotations }),
        ownerReferences: [{ apiVersion, kind, name, uid }],
      },
      type,
      data: { [key]: packed.toString('base64') },
    },
  };
};

/** Reads such a Secret; undefined when there is none. Errors with KubeError when the API server cannot be asked. */
export const readPacked = (
  client: KubeClient,
  { suffix }: PackedKind,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Observable<KubeObject | undefined> =>
  (
    client.request({
      method: 'GET',
      path: objectPath({
        ...{ apiVersion: 'v1', plural: 'secrets', namespace },
        name: `${name}${suffix}`,
      }),
    }) as Observable<KubeObject>
  ).pipe(
    catchError((error: unknown) => {
      if (error instanceof KubeError && error.code === 'not-found') return of(undefined);
      throw error;
    }),
  );

/** The value in it; undefined when it has none, or somebody else wrote it. */
export const unpacked = ({ key }: PackedKind, secret: KubeObject): unknown => {
  const data = secret['data'] as Readonly<Record<string, unknown>> | undefined;
  const packed = data?.[key];
  if (typeof packed !== 'string') return undefined;
  try {
    const text = gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: MOST_BYTES });
    return JSON.parse(text.toString()) as unknown;
  } catch {
    return undefined;
  }
};
