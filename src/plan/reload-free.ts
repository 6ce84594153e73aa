/**
 * What changes without a reload, and from which HAProxy version on. `diff` asks this table for versions, docs/reload-free.md is
 * written from it, and test/integration/plan/reload-free.test.ts has a scenario for each row and version.
 */

/** One kind of change. */
export interface ReloadFreeRow {
  /** For people: what changes. */
  readonly change: string;
  /** Oldest HAProxy version that takes it at run time; `undefined`: none does. */
  readonly since?: '3.0' | '3.4';
  /** When it is taken at run time; absent: always. */
  readonly condition?: string;
  /** Why a reload otherwise. */
  readonly otherwise: string;
}

const HASHING =
  'the balance is roundrobin, leastconn, random or first, or hashes with hash-type consistent and hash-key addr or addr-port';
const ORDER_FREE =
  'the first line stays, and of all other lines no two share a server name and each says its names';

/** Rows by a stable id. */
export const RELOAD_FREE = {
  'server-address': {
    change: 'address or port of a server',
    since: '3.0',
    condition: 'the new address is an IP literal',
    otherwise: 'names are resolved when HAProxy starts',
  },
  'server-weight': {
    change: 'weight of a server',
    since: '3.0',
    condition: `${HASHING}; to and from weight 0 always to 0`,
    otherwise: 'other balances keep the weights they started with',
  },
  'server-state': {
    change: 'a server drains, goes into maintenance or comes back',
    since: '3.0',
    otherwise: '',
  },
  'server-maxconn': {
    change: 'maxconn of a server',
    since: '3.0',
    condition: 'it had a limit and keeps one',
    otherwise: 'a queue is set up when the server is made',
  },
  'server-keywords': {
    change: 'other keywords of a server line that stays',
    otherwise: 'no command changes them, and a server cannot be replaced while it serves',
  },
  'server-add': {
    change: 'a server comes to a backend',
    since: '3.0',
    condition: `the backend is dynamic, ${HASHING}, and add server knows the keywords`,
    otherwise: 'add server refuses it, or requests would be spread differently than after a start',
  },
  'server-remove': {
    change: 'a server leaves a backend; its connections end by themselves',
    since: '3.0',
    condition: `the backend is dynamic and ${HASHING}`,
    otherwise: 'requests would be spread differently than after a start',
  },
  'backend-add': {
    change: 'a new backend',
    since: '3.4',
    condition:
      'it is dynamic, says nothing but mode, balance, hash-type and servers, and its profile is loaded and says the same',
    otherwise: 'add backend exists from 3.4 on and takes everything from a defaults section',
  },
  'backend-remove': {
    change: 'a backend that is gone',
    since: '3.4',
    condition: 'it is dynamic and says nothing but mode, balance, hash-type and servers',
    otherwise:
      'del backend exists from 3.4 on and refuses backends with a stick table, for example',
  },
  'backend-structure': {
    change: 'profile, mode, balance, hash-type or the other lines of a backend',
    otherwise: 'no command changes them',
  },
  'map-entries': {
    change: 'entries of a map',
    since: '3.0',
    condition:
      'keys and values can be sent on the command line; an ordered map is replaced as a whole',
    otherwise: 'the command line cannot carry them',
  },
  'map-file': {
    change: 'a map that is new or gone while the rest of the configuration stays',
    since: '3.0',
    otherwise: '',
  },
  certificate: {
    change: 'content of a certificate file',
    since: '3.0',
    condition: 'the file has at most 11 KiB',
    otherwise: 'it does not fit into a command',
  },
  'ca-file': {
    change: 'content of a file of certificate authorities',
    since: '3.0',
    condition: 'the file has at most 1 MiB',
    otherwise: 'it is not sent in pieces any more',
  },
  'crl-file': {
    change: 'content of a revocation list',
    since: '3.0',
    condition: 'the file has at most 11 KiB',
    otherwise: 'it does not fit into a command',
  },
  'crt-list-lines': {
    change: 'lines of a certificate list, with the certificates they bring or leave',
    since: '3.0',
    condition: ORDER_FREE,
    otherwise: 'lines that come at run time stand at the end, and elsewhere the order would matter',
  },
  'crt-list-file': {
    change: 'a certificate list that is new or gone',
    otherwise: 'a bind line reads its lists when it is made',
  },
  'plain-file': {
    change: 'a file that HAProxy does not read, or reads only at a start that need not be now',
    since: '3.0',
    condition: 'reloadOnPush is false',
    otherwise: 'HAProxy reads the file only when it starts',
  },
  profile: {
    change: 'a profile (named defaults section) that is new, gone or changed',
    otherwise: 'no command changes defaults sections',
  },
  core: {
    change:
      'global, frontends, listeners, rules, resolvers and everything else in the configuration',
    otherwise: 'no command changes them',
  },
} as const satisfies Readonly<Record<string, ReloadFreeRow>>;

export type ReloadFreeId = keyof typeof RELOAD_FREE;

/**
 * Whether a change can be taken at run time by a HAProxy of this version, its condition apart.
 *
 * @param haproxy for example `3.0` or `3.4.7`; anything else counts as older than all
 */
export const isReloadFree = (id: ReloadFreeId, haproxy: string): boolean => {
  const row: ReloadFreeRow = RELOAD_FREE[id];
  return row.since !== undefined && isAtLeast(haproxy, row.since);
};

const isAtLeast = (version: string, least: string): boolean => {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = least.split('.').map(Number);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
};
