import { gunzipSync, gzipSync } from 'node:zlib';
import { catchError, map, type Observable, of } from 'rxjs';
import { objectPath } from '../kube/api-resource.ts';
import { type KubeClient, KubeError } from '../kube/client.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';

/**
 * The configuration that was accepted last, kept in a Secret beside the configuration object, because it holds what the
 * object holds. A replica that starts while the object is refused serves this one.
 */

/** Key of the Secret's data. */
const KEY = 'spec.json.gz';
const GENERATION = 'haproxy-haptic.org/generation';
const TYPE = 'haproxy-haptic.org/accepted-config';
/** Bytes of a spec after unpacking; an object of the API server cannot hold more than some of it. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Bytes of the packed spec; a Secret holds 1 MiB. */
const MOST_PACKED = 900 * 1024;

/** Which configuration object. */
export interface ConfigName {
  readonly namespace: string;
  readonly name: string;
}

const secretName = ({ name }: ConfigName): string => `${name}-accepted`;

const secretPath = (config: ConfigName): string =>
  objectPath({
    apiVersion: 'v1',
    plural: 'secrets',
    namespace: config.namespace,
    name: secretName(config),
  });

/**
 * Reads the configuration that was accepted last, as an object with its name and generation; undefined when there is
 * none, or none that can be read. Errors with KubeError when the API server cannot be asked.
 */
export const loadAcceptedConfig = (
  client: KubeClient,
  config: ConfigName,
): Observable<KubeObject | undefined> =>
  client.request({ method: 'GET', path: secretPath(config) }).pipe(
    map((secret) => unpack(secret as KubeObject, config)),
    catchError((error: unknown) => {
      if (error instanceof KubeError && error.code === 'not-found') return of(undefined);
      throw error;
    }),
  );

/** The Secret for an accepted configuration, which goes when the configuration object goes; undefined: it does not fit. */
export const acceptedSecret = (
  object: ObjectRef,
  { generation, spec }: { readonly generation: number; readonly spec: unknown },
): AcceptedSecret | undefined => {
  const packed = gzipSync(JSON.stringify(spec));
  if (packed.length > MOST_PACKED) return undefined;
  const { apiVersion, kind, namespace, name, uid } = object;
  return {
    name: secretName({ namespace, name }),
    body: {
      metadata: {
        annotations: { [GENERATION]: String(generation) },
        ownerReferences: [{ apiVersion, kind, name, uid }],
      },
      type: TYPE,
      data: { [KEY]: packed.toString('base64') },
    },
  };
};

/** A Secret to apply. */
export interface AcceptedSecret {
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const unpack = (secret: KubeObject, { namespace, name }: ConfigName): KubeObject | undefined => {
  const data = secret['data'] as Readonly<Record<string, unknown>> | undefined;
  const packed = data?.[KEY];
  if (typeof packed !== 'string') return undefined;
  const generation = Number(secret.metadata.annotations?.[GENERATION]);
  try {
    const text = gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: MOST_BYTES });
    return {
      apiVersion: 'haproxy-haptic.org/v1alpha1',
      kind: 'HAProxyTemplateConfig',
      metadata: { namespace, name, ...(Number.isInteger(generation) && { generation }) },
      spec: JSON.parse(text.toString()) as unknown,
    };
  } catch {
    return undefined; // somebody else wrote it
  }
};
