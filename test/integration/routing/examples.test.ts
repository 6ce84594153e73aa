import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import {
  arbitraryIngresses,
  REQUESTED_HOSTS,
  REQUESTED_PATHS,
} from '../../support/arbitrary-routes.ts';
import { startEcho, type EchoBackend } from '../../support/echo.ts';
import { exampleNames, exampleObjects } from '../../support/examples.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { makeKeyPair, type TestKeyPair } from '../../support/key-pairs.ts';
import { service, slice, tlsSecret } from '../../support/objects.ts';
import { oracle, type OracleRequest } from '../../support/oracle.ts';
import { startProxied, type Proxied, type ProxiedAnswer } from '../../support/proxied.ts';

const echoes = new Map<string, EchoBackend>();
let defaultPair: TestKeyPair;
let ownPair: TestKeyPair;

beforeAll(async () => {
  [defaultPair, ownPair] = await Promise.all([
    makeKeyPair(['default.invalid']),
    makeKeyPair(['a.example.com', '*.example.com', 'shop.org']),
  ]);
});

afterAll(async () => {
  await Promise.all([...echoes.values()].map((echo) => echo.stop()));
});

/** The echo backend of a Service; `namespace/name`. */
const echoOf = async (name: string): Promise<EchoBackend> => {
  const echo = echoes.get(name) ?? (await startEcho(name));
  echoes.set(name, echo);
  return echo;
};

/** The same objects, with every EndpointSlice leading to the echo backend of its Service. */
const withEchoes = (objects: readonly KubeObject[]): Promise<KubeObject[]> =>
  Promise.all(
    objects.map(async (object) => {
      const name = object.metadata.labels?.['kubernetes.io/service-name'];
      if (object.kind !== 'EndpointSlice' || name === undefined) return object;
      const { port } = await echoOf(`${object.metadata.namespace ?? ''}/${name}`);
      const ports = object['ports'] as readonly object[];
      return { ...object, ports: ports.map((entry) => ({ ...entry, port })) };
    }),
  );

interface Seen {
  readonly status: number;
  readonly by?: string | undefined;
  readonly location?: string | undefined;
}

const seen = ({ status, echo, location }: ProxiedAnswer): Seen => {
  if (status === 308) return { status, location };
  return status === 200 ? { status, by: echo?.name } : { status };
};

/** What the oracle's answer looks like from outside. */
const expected = (
  objects: readonly KubeObject[],
  request: OracleRequest,
  httpsPort: number,
): Seen => {
  const ingresses = objects.filter(({ kind }) => kind === 'Ingress');
  const answer = oracle(ingresses, request);
  if (answer.kind === 'notFound') return { status: 404 };
  if (answer.kind === 'redirect') {
    const host = request.host.replace(/:\d+$/, '').toLowerCase();
    return { status: 308, location: `https://${host}:${httpsPort}${request.path}` };
  }
  const by = answer.service.replace(/:.*$/, '');
  const served = objects.some(
    ({ kind, metadata }) =>
      kind === 'EndpointSlice' &&
      `${metadata.namespace ?? ''}/${metadata.labels?.['kubernetes.io/service-name'] ?? ''}` === by,
  );
  return served ? { status: 200, by } : { status: 503 };
};

interface Rules {
  readonly rules?: readonly {
    readonly host?: string;
    readonly http?: { readonly paths?: readonly { readonly path?: string }[] };
  }[];
}

/** Every host and path that the Ingresses name, and what lies beside them. */
const requestsFor = (objects: readonly KubeObject[]): OracleRequest[] => {
  const rules = objects
    .filter(({ kind }) => kind === 'Ingress')
    .flatMap((object) => (object['spec'] as Rules).rules ?? []);
  const hosts = rules.flatMap(({ host = '' }) => {
    if (host === '') return [];
    const name = host.replace('*', 'any');
    return [name, name.toUpperCase(), `${name}:8080`, `x.${name}`, name.replace(/^[^.]*\./, '')];
  });
  const paths = rules
    .flatMap(({ http }) => http?.paths ?? [])
    .flatMap(({ path = '/' }) => {
      const bare = path.replace(/\/$/, '');
      return [path, bare, `${bare}/`, `${bare}/deeper/x`, `${bare}x`, bare.toUpperCase()];
    });
  const all = new Set([
    ...paths.filter((path) => path.startsWith('/')),
    '/',
    '/unknown',
    '/a%20b',
    '//x',
  ]);
  return [...new Set([...hosts, 'unknown.invalid', 'localhost'])].flatMap((host) =>
    [...all].flatMap((path) =>
      (['http', 'https'] as const).map((scheme) => ({ scheme, host, path })),
    ),
  );
};

const AT_ONCE = 24;

const expectAll = async (
  proxied: Proxied,
  objects: readonly KubeObject[],
  requests: readonly OracleRequest[],
): Promise<void> => {
  for (let start = 0; start < requests.length; start += AT_ONCE) {
    await Promise.all(
      requests.slice(start, start + AT_ONCE).map(async (request) => {
        const answer = seen(await proxied.get(request));
        const wanted = expected(objects, request, proxied.httpsPort);
        expect({ request, answer }).toStrictEqual({ request, answer: wanted });
      }),
    );
  }
};

const worldOfServices = (): KubeObject[] => [
  tlsSecret('cert', { 'tls.crt': ownPair.certificate, 'tls.key': ownPair.key }),
  ...['default', 'team-a'].flatMap((namespace) => [
    ...['web', 'shop'].flatMap((name) => [
      service(name, { namespace }),
      slice(name, { namespace, endpoints: ['127.0.0.1'] }),
    ]),
    service('empty', { namespace }),
  ]),
];

describe.each(haproxyVersions())(
  'P10: HAProxy $version answers as the oracle says (R20)',
  ({ binary }) => {
    let proxied: Proxied;

    beforeAll(async () => {
      proxied = await startProxied(binary, defaultPair);
    });

    afterAll(async () => {
      await proxied.stop();
    });

    test.each(exampleNames())('for every host and path of examples/%s', async (name) => {
      const objects = await withEchoes(exampleObjects(name));
      const render = await proxied.serve(objects);
      expect(render.problems).toStrictEqual([]);
      await expectAll(proxied, objects, requestsFor(objects));
    });

    test('for random Ingresses', async () => {
      const services = await withEchoes(worldOfServices());
      const requests = REQUESTED_HOSTS.flatMap((host) =>
        REQUESTED_PATHS.flatMap((path) =>
          (['http', 'https'] as const).map((scheme) => ({ scheme, host, path })),
        ),
      );
      await fc.assert(
        fc.asyncProperty(arbitraryIngresses, async (ingresses) => {
          const objects = [...ingresses, ...services];
          await proxied.serve(objects);
          await expectAll(proxied, objects, requests);
        }),
        { numRuns: Number(process.env['FUZZ_RUNS'] ?? 6), endOnFailure: true },
      );
    });
  },
);
