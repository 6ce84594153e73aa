import { distinctUntilChanged, map, type Observable, of, scan } from 'rxjs';
import type { ResourceSource } from '../ports.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';

/** The Secret of type `kubernetes.io/tls` that is served where no other certificate fits. */
export interface CertificateName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * PEM of chain and key of one Secret, newest first known state at once, then each change; undefined while there is none
 * with both. Errors as the watch does. Secret: never logged.
 *
 * @param secret undefined: there is no default certificate
 */
export const defaultCertificates = (
  resources: Pick<ResourceSource, 'watch'>,
  secret: CertificateName | undefined,
): Observable<string | undefined> =>
  secret === undefined
    ? of(undefined)
    : resources.watch(theSecret(secret)).pipe(
        scan(newest, undefined as KubeObject | undefined),
        map((object) => (object === undefined ? undefined : pemOf(object))),
        distinctUntilChanged(),
      );

const theSecret = ({ namespace, name }: CertificateName): WatchedResource => ({
  name: 'default-certificate',
  apiVersions: ['v1'],
  resources: 'secrets',
  optional: false,
  namespaces: [namespace],
  labelSelector: {},
  fieldSelector: { 'metadata.name': name },
  indexBy: [],
  ignoreFields: [],
  store: 'full',
  debounceMs: 0,
  maxWaitMs: 1_000,
});

const newest = (_: KubeObject | undefined, event: WatchEvent): KubeObject | undefined => {
  if (event.type === 'Replaced') return event.objects[0];
  return event.type === 'Upserted' ? event.object : undefined;
};

const pemOf = ({ data }: KubeObject): string | undefined => {
  const members = data as Readonly<Record<string, unknown>> | null | undefined;
  const [certificate, key] = [members?.['tls.crt'], members?.['tls.key']].map(decoded);
  return certificate === undefined || key === undefined ? undefined : `${certificate}${key}`;
};

const decoded = (value: unknown): string | undefined => {
  if (typeof value !== 'string' || value === '') return undefined;
  const text = Buffer.from(value, 'base64').toString('utf8');
  return text.endsWith('\n') ? text : `${text}\n`;
};
