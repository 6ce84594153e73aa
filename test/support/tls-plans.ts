/**
 * Arbitrary worlds whose differences HAProxy 3.4 takes at run time: backends that come and go with the routes to them,
 * certificates that serve one set of names and then another, contents that change.
 */
import fc from 'fast-check';
import type { Capabilities } from '../../src/plan/change-set.ts';
import type { OperationKind } from '../../src/protocol/protocol.ts';
import { LIMITS } from '../../src/protocol/protocol.ts';
import { HASH_KEY, server } from './plans.ts';
import type { World, WorldBackend, WorldFile, WorldList } from './plan-world.ts';

const KINDS: readonly OperationKind[] = [
  ...(['server_add', 'server_remove', 'server_address', 'server_weight'] as const),
  ...(['server_state', 'server_maxconn'] as const),
  ...(['map_add', 'map_set', 'map_delete', 'map_replace'] as const),
  ...(['backend_add', 'backend_publish', 'backend_unpublish', 'backend_remove'] as const),
  ...(['cert_add', 'cert_set', 'cert_remove', 'ca_add', 'ca_set', 'ca_remove'] as const),
  ...(['crl_add', 'crl_set', 'crl_remove', 'crtlist_add', 'crtlist_delete'] as const),
];

/** Of an agent that knows every operation, on a HAProxy of this version. */
export const capabilitiesOn = (haproxy: string): Capabilities => ({
  haproxy,
  operationKinds: new Set<string>(KINDS),
  maxOperations: LIMITS.operations,
});

const LIST = 'certs/https.crt-list';
const FIRST = { certificate: 'certs/default.pem', options: [], filters: [] };
const CA = 'certs/ca.pem';

const NAMES = ['be_0', 'be_1', '__proto__', 'constructor'] as const;
const HOSTS = ['a.example', 'b.example', '*.example', 'c.example'] as const;

interface Choice {
  readonly backends: readonly WorldBackend[];
  readonly targets: readonly number[];
  readonly certificates: readonly (number | undefined)[];
  readonly contents: readonly number[];
  readonly alpn: readonly boolean[];
}

const backendNamed = (name: string): fc.Arbitrary<WorldBackend> =>
  fc
    .uniqueArray(server, { selector: (one) => one.name, minLength: 1, maxLength: 3 })
    .map((servers) => ({
      ...{ name, profile: 'web', balance: 'roundrobin', dynamic: true, body: [], comment: '' },
      servers: servers.map((one) => ({
        ...one,
        keywords: name === 'be_1' ? [...HASH_KEY, 'ssl', 'ca-file', CA] : HASH_KEY,
      })),
    }));

const choice: fc.Arbitrary<Choice> = fc.record({
  backends: fc
    .subarray([...NAMES], { minLength: 1 })
    .chain((names) => fc.tuple(...names.map(backendNamed))),
  targets: fc.array(fc.nat(7), { minLength: HOSTS.length, maxLength: HOSTS.length }),
  certificates: fc.array(fc.option(fc.nat(2), { nil: undefined }), {
    minLength: HOSTS.length,
    maxLength: HOSTS.length,
  }),
  contents: fc.array(fc.nat(2), { minLength: 5, maxLength: 5 }),
  alpn: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
});

const certificateOf = (number: number): string => `certs/shop_${number}.pem`;

function listOf({ certificates, alpn }: Choice): WorldList {
  const lines = [0, 1, 2].flatMap((number) => {
    const filters = HOSTS.filter((_, at) => certificates[at] === number);
    const options = alpn[number] === true ? ['alpn', 'h2,http/1.1'] : [];
    return filters.length === 0 ? [] : [{ certificate: certificateOf(number), options, filters }];
  });
  return { path: LIST, lines: [FIRST, ...lines] };
}

function filesOf({ contents, backends }: Choice, list: WorldList): readonly WorldFile[] {
  const certificates = list.lines.map(({ certificate }, at): WorldFile => ({
    ...{ path: certificate, text: `${certificate} ${contents[at]}` },
    ...{ kind: 'cert', reloadOnChange: true },
  }));
  const authority: WorldFile = {
    ...{ path: CA, text: `authority ${contents[4]}`, kind: 'ca', reloadOnChange: true },
  };
  return backends.some(({ name }) => name === 'be_1') ? [...certificates, authority] : certificates;
}

function worldOf(some: Choice): World {
  const { backends, targets } = some;
  const entries = HOSTS.map((host, at): readonly [string, string] => [
    host,
    backends[(targets[at] ?? 0) % backends.length]?.name ?? '',
  ]);
  const list = listOf(some);
  return {
    core: ['frontend web', `    bind :443 ssl crt-list ${LIST}`],
    profiles: { web: ['mode http', 'balance roundrobin'] },
    backends,
    maps: [{ path: 'maps/hosts.map', ordered: false, entries }],
    files: filesOf(some, list),
    lists: [list],
  };
}

/** A world and another one of the same core and profiles. */
export const reloadFreePair: fc.Arbitrary<readonly [World, World]> = fc
  .tuple(choice, choice)
  .map(([before, after]) => [worldOf(before), worldOf(after)]);
