import { map, type Observable } from 'rxjs';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import { type PackedSecret, packedSecret, readPacked, unpacked } from './packed-secret.ts';

/**
 * The configuration that was accepted last, kept in a Secret beside the configuration object, because it holds what the
 * object holds. A replica that starts while the object is refused serves this one.
 */
const ACCEPTED = {
  suffix: '-accepted',
  key: 'spec.json.gz',
  type: 'haproxy-haptic.org/accepted-config',
};
const GENERATION = 'haproxy-haptic.org/generation';

/** Which configuration object. */
export interface ConfigName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Reads the configuration that was accepted last, as an object with its name and generation; undefined when there is
 * none, or none that can be read. Errors with KubeError when the API server cannot be asked.
 */
export const loadAcceptedConfig = (
  client: KubeClient,
  config: ConfigName,
): Observable<KubeObject | undefined> =>
  readPacked(client, ACCEPTED, config).pipe(
    map((secret) => (secret === undefined ? undefined : configIn(secret, config))),
  );

/** The Secret for an accepted configuration; undefined: it does not fit. */
export const acceptedSecret = (
  object: ObjectRef,
  { generation, spec }: { readonly generation: number; readonly spec: unknown },
): PackedSecret | undefined =>
  packedSecret(ACCEPTED, object, {
    value: spec,
    annotations: { [GENERATION]: String(generation) },
  });

const configIn = (secret: KubeObject, { namespace, name }: ConfigName): KubeObject | undefined => {
  const spec = unpacked(ACCEPTED, secret);
  if (spec === undefined) return undefined;
  const generation = Number(secret.metadata.annotations?.[GENERATION]);
  return {
    apiVersion: 'haproxy-haptic.org/v1alpha1',
    kind: 'HAProxyTemplateConfig',
    metadata: { namespace, name, ...(Number.isInteger(generation) && { generation }) },
    spec,
  };
};
