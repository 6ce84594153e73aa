import {
  connect,
  distinctUntilChanged,
  map,
  merge,
  type Observable,
  of,
  scan,
  take,
  takeUntil,
} from 'rxjs';
import type { ResourceSource } from '../ports.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';
import { inspectKeyPair } from './key-pair.ts';

/** The Secret of type `kubernetes.io/tls` that is served where no other certificate fits. */
export interface CertificateName {
  readonly namespace: string;
  readonly name: string;
}

/** The certificate that is served where no other fits. */
export interface DefaultCertificate {
  /** PEM of chain and key; undefined: there is none. Secret: never logged. */
  readonly pem: string | undefined;
  readonly problems: readonly Problem[];
}

/** What {@link defaultCertificates} needs. */
export interface DefaultCertificateOptions {
  readonly resources: Pick<ResourceSource, 'watch'>;
  /** Undefined: no default certificate is wanted. */
  readonly secret: CertificateName | undefined;
  /** Its first value: nobody waits for the Secret any longer, so one that may not be read holds nothing up. */
  readonly late$: Observable<unknown>;
}

const NONE: DefaultCertificate = { pem: undefined, problems: [] };

/**
 * The key pair of one Secret: its first known state, then each change. One that cannot be used changes nothing and is a
 * problem, since a configuration with it would be refused as a whole; so does one that was deleted. Errors as the watch does.
 */
export const defaultCertificates = ({
  resources,
  secret,
  late$,
}: DefaultCertificateOptions): Observable<DefaultCertificate> =>
  secret === undefined
    ? of(NONE)
    : resources.watch(theSecret(secret)).pipe(
        map(secretAfter),
        scan((before: DefaultCertificate, object) => next(before, object, secret), NONE),
        connect((known$) =>
          merge(
            known$,
            late$.pipe(
              take(1),
              map(() => ({ pem: undefined, problems: [unread(secret)] })),
              takeUntil(known$),
            ),
          ),
        ),
        distinctUntilChanged(isSame),
      );

const isSame = (left: DefaultCertificate, right: DefaultCertificate): boolean =>
  left.pem === right.pem && left.problems[0]?.message === right.problems[0]?.message;

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

const secretAfter = (event: WatchEvent): KubeObject | undefined => {
  if (event.type === 'Replaced') return event.objects[0];
  return event.type === 'Upserted' ? event.object : undefined;
};

const next = (
  { pem }: DefaultCertificate,
  object: KubeObject | undefined,
  secret: CertificateName,
): DefaultCertificate => {
  if (object === undefined) return { pem, problems: [missing(secret, pem)] };
  const members = object['data'] as Readonly<Record<string, unknown>> | null | undefined;
  const certificate = decoded(members?.['tls.crt']);
  const key = decoded(members?.['tls.key']);
  const report = inspectKeyPair(certificate, key);
  return report.ok
    ? { pem: `${certificate}${key}`, problems: [] }
    : { pem, problems: [unusable(secret, report.message, pem)] };
};

/** Empty for what is not there. */
const decoded = (value: unknown): string => {
  if (typeof value !== 'string' || value === '') return '';
  const text = Buffer.from(value, 'base64').toString('utf8');
  return text.endsWith('\n') ? text : `${text}\n`;
};

const problem = (
  { namespace, name }: CertificateName,
  words: Pick<Problem, 'reason' | 'message' | 'nextStep'>,
): Problem => ({
  severity: 'warning',
  ...words,
  object: { apiVersion: 'v1', kind: 'Secret', namespace, name, uid: '' },
});

const instead = (pem: string | undefined): string =>
  pem === undefined ? 'there is no default certificate' : 'the one before stays in use';

const missing = (secret: CertificateName, pem: string | undefined): Problem =>
  problem(secret, {
    reason: 'DefaultCertificateMissing',
    message: `the Secret of the default certificate does not exist; ${instead(pem)}.`,
    nextStep: 'Create it, or name another one with --default-certificate.',
  });

const unusable = (secret: CertificateName, why: string, pem: string | undefined): Problem =>
  problem(secret, {
    reason: 'DefaultCertificateUnusable',
    message: `the default certificate cannot be used: ${why}; ${instead(pem)}.`,
    nextStep: 'Put a certificate and the key that belongs to it into tls.crt and tls.key.',
  });

const unread = (secret: CertificateName): Problem =>
  problem(secret, {
    reason: 'DefaultCertificateUnread',
    message: 'the Secret of the default certificate could not be read yet; nobody waits for it.',
    nextStep:
      'Allow the controller to get, list and watch secrets there; it is taken over when it is read.',
  });
