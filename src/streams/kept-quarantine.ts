import { catchError, EMPTY, mergeMap, type Observable, timeout } from 'rxjs';
import type { KubeClient } from '../kube/client.ts';
import { readStored, type StoredQuarantine } from '../quarantine/stored.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { ConfigName } from './accepted-config.ts';
import { type PackedSecret, packedSecret, readPacked, unpacked } from './packed-secret.ts';

/**
 * What is in quarantine, kept in a Secret beside the configuration object, because it holds objects of the cluster. A
 * replica that starts or begins to lead goes on from it.
 */
const QUARANTINE = {
  suffix: '-quarantine',
  key: 'quarantine.json.gz',
  type: 'haproxy-haptic.org/quarantine',
};

/** Longest wait for it, in milliseconds: without it the objects at fault are found again. */
const LOAD_MS = 2_000;

/** Reads it; empty when there is none, or none that can be read in time. Never errors. */
export const loadKeptQuarantine = (
  client: KubeClient,
  config: ConfigName,
): Observable<StoredQuarantine> =>
  readPacked(client, QUARANTINE, config).pipe(
    timeout(LOAD_MS),
    mergeMap((secret) => {
      const stored = secret && readStored(unpacked(QUARANTINE, secret));
      return stored === undefined ? [] : [stored];
    }),
    catchError(() => EMPTY),
  );

/** The Secret for it; undefined: it does not fit. */
export const quarantineSecret = (
  object: ObjectRef,
  stored: StoredQuarantine,
): PackedSecret | undefined => packedSecret(QUARANTINE, object, { value: stored });
