import { map, NEVER, type Observable } from 'rxjs';
import { beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { WatchedResource, WatchEvent } from '../../src/snapshot/watch.ts';
import {
  type DefaultCertificate,
  defaultCertificates,
} from '../../src/streams/default-certificate.ts';
import { Authority } from '../support/authority.ts';
import type { TestKeyPair } from '../support/key-pairs.ts';
import { marbles } from '../support/marbles.ts';
import { kubeObject } from '../support/watched.ts';

const SECRET = { namespace: 'haptic', name: 'default' };
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const secret = (data: unknown): KubeObject =>
  kubeObject('haptic/default', { kind: 'Secret', data });
const listed = (...objects: KubeObject[]): WatchEvent => ({ type: 'Replaced', objects });

let one: TestKeyPair;
let two: TestKeyPair;
beforeAll(async () => {
  const authority = await Authority.root('test');
  one = await authority.issue({ names: ['one.example'] });
  two = await authority.issue({ names: ['two.example'] });
});

const dataOf = ({ certificate, key }: TestKeyPair) => ({
  'tls.crt': base64(certificate),
  'tls.key': base64(key),
});

/** What is in use, `1`, `2` or `-`, and the reason of a problem. */
const words = (certificate$: Observable<DefaultCertificate>): Observable<string> =>
  certificate$.pipe(
    map(({ pem = '', problems }) => {
      const which = pem === '' ? '-' : pem.includes(one.certificate.trim()) ? '1' : '2';
      return [which, ...problems.map(({ reason }) => reason)].join(' ');
    }),
  );

const certificates = (
  watch: (resource: WatchedResource) => Observable<WatchEvent>,
  late$: Observable<unknown> = NEVER,
): Observable<DefaultCertificate> =>
  defaultCertificates({ resources: { watch }, secret: SECRET, late$ });

describe('the default certificate of a cluster', () => {
  it(
    'is none at once when none is wanted, whatever can be read',
    marbles(({ expectObservable }) => {
      const none$ = defaultCertificates({
        resources: { watch: () => NEVER },
        secret: undefined,
        late$: NEVER,
      });
      expectObservable(words(none$)).toBe('(n|)', { n: '-' });
    }),
  );

  it(
    'is chain and key of one Secret, of which nothing else is asked for, and each other pair',
    marbles(({ cold, expectObservable, flush }) => {
      const asked: WatchedResource[] = [];
      const events$ = cold('a-a-b', {
        a: listed(secret(dataOf(one))),
        b: { type: 'Upserted', object: secret(dataOf(two)) } as const,
      });
      const certificate$ = certificates((resource) => {
        asked.push(resource);
        return events$;
      });
      expectObservable(words(certificate$), '9ms !').toBe('1---2', { 1: '1', 2: '2' });
      flush();
      expect(asked).toMatchObject([
        {
          resources: 'secrets',
          namespaces: ['haptic'],
          fieldSelector: { 'metadata.name': 'default' },
        },
      ]);
    }),
  );

  it(
    'is none, and a problem, while there is no Secret, so that nothing waits for it',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold('n-a', {
        n: listed(),
        a: { type: 'Upserted', object: secret(dataOf(one)) } as const,
      });
      expectObservable(words(certificates(() => events$)), '9ms !').toBe('n-1', {
        n: '- DefaultCertificateMissing',
        1: '1',
      });
    }),
  );

  it(
    'stays the one before when the Secret is deleted',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold('a-d', {
        a: listed(secret(dataOf(one))),
        d: { type: 'Deleted', key: 'haptic/default' } as const,
      });
      expectObservable(words(certificates(() => events$)), '9ms !').toBe('1-d', {
        1: '1',
        d: '1 DefaultCertificateMissing',
      });
    }),
  );

  it.each([
    ['without data', () => undefined],
    ['with null as data', () => null],
    ['without a key', () => ({ 'tls.crt': base64(one.certificate) })],
    ['with the key of another', () => ({ ...dataOf(one), 'tls.key': base64(two.key) })],
    ['with something else', () => ({ 'tls.crt': base64('x'), 'tls.key': base64('y') })],
    ['with numbers', () => ({ 'tls.crt': 1, 'tls.key': 2 })],
  ])('stays the one before, and is a problem, for a Secret %s (D7)', (_, data) =>
    marbles(({ cold, expectObservable }) => {
      const events$ = cold('a-x-b', {
        a: listed(secret(dataOf(one))),
        x: { type: 'Upserted', object: secret(data()) } as const,
        b: { type: 'Upserted', object: secret(dataOf(two)) } as const,
      });
      expectObservable(words(certificates(() => events$)), '9ms !').toBe('1-x-2', {
        1: '1',
        x: '1 DefaultCertificateUnusable',
        2: '2',
      });
    })(),
  );

  it(
    'tells of a pair that cannot be used without a word of it',
    marbles(({ cold, expectObservable }) => {
      const data = { ...dataOf(one), 'tls.key': base64(two.key) };
      const told$ = certificates(() => cold('a', { a: listed(secret(data)) })).pipe(
        map(({ problems }) => /BEGIN|PRIVATE/.test(JSON.stringify(problems))),
      );
      expectObservable(told$, '9ms !').toBe('f', { f: false });
    }),
  );

  it(
    'is none when the Secret could not be read in time, and what the Secret says as soon as it is',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold('100ms a', { a: listed(secret(dataOf(one))) });
      const certificate$ = certificates(() => events$, cold('50ms l'));
      expectObservable(words(certificate$), '1s !').toBe('50ms u 49ms 1', {
        u: '- DefaultCertificateUnread',
        1: '1',
      });
    }),
  );

  it(
    'does not become none when it was read in time',
    marbles(({ cold, expectObservable }) => {
      const events$ = cold('20ms a', { a: listed(secret(dataOf(one))) });
      expectObservable(words(certificates(() => events$, cold('50ms l'))), '1s !').toBe('20ms 1', {
        1: '1',
      });
    }),
  );
});
