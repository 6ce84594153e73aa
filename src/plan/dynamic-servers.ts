/**
 * Which backends and server lines `add server` and `del server` can deal with; tried on 3.0, the oldest version that is
 * supported. A word that is not listed here is never sent: its server comes with a reload.
 */
import { fitsOneLine, isPlainWord } from './command-line.ts';
import type { Backend, Plan, Profile, Server } from './plan.ts';
import { isTlsFile } from './runtime-state.ts';

const FLAGS: ReadonlySet<string> = new Set([
  'allow-0rtt',
  'backup',
  'check',
  'check-send-proxy',
  'check-ssl',
  'no-send-proxy',
  'no-send-proxy-v2',
  'no-ssl-reuse',
  'no-tls-tickets',
  'send-proxy',
  'send-proxy-v2',
  'send-proxy-v2-ssl',
  'send-proxy-v2-ssl-cn',
  'ssl',
  'tfo',
]);

const WITH_ARGUMENT: ReadonlySet<string> = new Set([
  'addr',
  'alpn',
  'check-alpn',
  'check-proto',
  'check-sni',
  'ciphers',
  'ciphersuites',
  'cookie',
  'downinter',
  'error-limit',
  'fall',
  'fastinter',
  'guid',
  'hash-key',
  'inter',
  'maxconn',
  'maxqueue',
  'minconn',
  'observe',
  'on-error',
  'on-marked-down',
  'on-marked-up',
  'pool-low-conn',
  'pool-max-conn',
  'pool-purge-delay',
  'port',
  'proto',
  'proxy-v2-options',
  'rise',
  'shard',
  'slowstart',
  'sni',
  'ssl-max-ver',
  'ssl-min-ver',
  'verify',
  'verifyhost',
  'ws',
]);

/** Name files, which `add server` takes only when the worker has loaded them: some server of the backend has them. */
const WITH_LOADED_FILE: ReadonlySet<string> = new Set(['ca-file', 'crl-file', 'crt']);

/**
 * Why a server cannot be added to a backend of the running worker because of its own words, or undefined.
 *
 * @param server to be added
 * @param backend as the worker holds it
 * @param files TLS files that are put into the worker before
 */
export function keywordObstacle(
  server: Server,
  backend: Backend,
  files?: Plan['files'],
): string | undefined {
  if (
    !server.keywords.every(isPlainWord) ||
    !fitsOneLine([backend.name, server.name, ...server.keywords])
  ) {
    return 'has words that no command can carry';
  }
  const words = server.keywords;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as string;
    if (FLAGS.has(word)) continue;
    at += 1;
    const argument = words[at];
    if (argument === undefined) return `has "${word}", which cannot be added at run time`;
    if (WITH_ARGUMENT.has(word)) continue;
    if (!WITH_LOADED_FILE.has(word)) return `has "${word}", which cannot be added at run time`;
    const isKnown = isTlsFileOf(files, argument) || usesFile(backend, word, argument);
    if (!isKnown) return `has "${word}" with a file not loaded yet`;
  }
  return undefined;
}

const isTlsFileOf = (files: Plan['files'] | undefined, path: string): boolean => {
  const file = files?.get(path);
  return file !== undefined && isTlsFile(file);
};

const usesFile = (backend: Backend, word: string, file: string): boolean =>
  backend.servers.some(({ keywords }) =>
    keywords.some((keyword, at) => keyword === word && keywords[at + 1] === file),
  );

const DYNAMIC: ReadonlySet<string> = new Set(['roundrobin', 'leastconn', 'random', 'first']);
const HASHING: ReadonlySet<string> = new Set([
  'hash',
  'source',
  'uri',
  'url_param',
  'hdr',
  'rdp-cookie',
]);

/** First word of `balance` without what stands in parentheses. */
const algorithm = (backend: Backend): string => /^[a-z_-]*/.exec(backend.balance)?.[0] ?? '';

const isHashed = (backend: Backend): boolean =>
  HASHING.has(algorithm(backend)) && backend.hashType === 'consistent';

/** True when any weight can be set at run time; else only 0, since nobody knows what the worker calls 100 %. */
export const takesAnyWeight = (backend: Backend): boolean =>
  DYNAMIC.has(algorithm(backend)) || isHashed(backend);

/** True for a server whose place on the hash ring does not depend on when it came. */
const hasStablePlace = ({ keywords }: Server): boolean => {
  const key = keywords[keywords.indexOf('hash-key') + 1];
  return keywords.includes('hash-key') && (key === 'addr-port' || key === 'addr');
};

/**
 * Why servers cannot come to or leave a backend at run time, or undefined.
 *
 * @param before as the worker holds it
 * @param after as it shall be; of equal structure
 * @param profile that both build on, as the worker loaded it
 */
export function membershipObstacle(
  before: Backend,
  after: Backend,
  profile: Profile | undefined,
): string | undefined {
  const fixed = [after, before].find((backend) => !backend.dynamic);
  if (fixed !== undefined) return fixed.structuralReason ?? 'the backend is not dynamic';
  if (profile?.defaultServer === true) {
    return `the default-server line of its profile ${profile.name} does not count for servers added at run time`;
  }
  if (!takesAnyWeight(after)) return `balance ${after.balance} takes no servers at run time`;
  const servers = [...before.servers, ...after.servers];
  if (isHashed(after) && !servers.every(hasStablePlace)) {
    return 'consistent hashing needs hash-key addr or addr-port on every server';
  }
  return undefined;
}
