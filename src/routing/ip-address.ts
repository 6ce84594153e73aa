/** IP addresses as plain text, in one canonical form each, so that equal addresses are equal strings. */

export type IpFamily = 'IPv4' | 'IPv6';

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
const GROUP = /^[0-9a-f]{1,4}$/i;

const readGroups = (text: string): readonly number[] | undefined => {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => GROUP.test(group))
    ? groups.map((group) => Number.parseInt(group, 16))
    : undefined;
};

const expand = (text: string): readonly number[] | undefined => {
  const halves = text.split('::');
  const [head, tail] = [readGroups(halves[0] ?? ''), readGroups(halves[1] ?? '')];
  if (head === undefined || tail === undefined || halves.length > 2) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1) return missing === 0 ? head : undefined;
  return missing >= 1 ? [...head, ...new Array<number>(missing).fill(0), ...tail] : undefined;
};

/** Shortest form: lower case, the first of the longest runs of zeros as `::` (RFC 5952). */
const compress = (groups: readonly number[]): string => {
  const text = groups.map((group) => group.toString(16)).join(':');
  const runs = [...`:${text}:`.matchAll(/(?<=:)0(?::0)+(?=:)/g)].map((match) => match[0]);
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '');
  if (longest === '') return text;
  const padded = `:${text}:`;
  const start = padded.indexOf(`:${longest}:`);
  const [head, tail] = [padded.slice(1, start), padded.slice(start + longest.length + 2, -1)];
  return `${head}::${tail}`;
};

/**
 * The canonical form of an address, or undefined when `text` is none of that family. IPv6 with an embedded IPv4 address
 * or a zone is refused.
 */
export const readAddress = (text: string, family: IpFamily): string | undefined => {
  if (family === 'IPv4') return IPV4.test(text) ? text : undefined;
  const groups = expand(text);
  return groups === undefined ? undefined : compress(groups);
};

const REFUSED_IPV4 = /^(?:0|127|169\.254|22[4-9]|23\d|255\.255\.255\.255)(?:\.|$)/;
const REFUSED_IPV6 = /^(?:::1?$|fe[89ab][0-9a-f]:|ff[0-9a-f]{2}:|0?::ffff:)/;

/**
 * Whether an address reaches the proxy's own machine or segment (unspecified, loopback, link-local, multicast, IPv4 in
 * IPv6), where no pod is: an EndpointSlice must not open a way to the agent or a metadata service.
 */
export const isLocal = (address: string): boolean =>
  REFUSED_IPV4.test(address) || REFUSED_IPV6.test(address);
