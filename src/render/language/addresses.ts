/** IP addresses as numbers: pure, for templates and for the servers they declare. */

export interface Address {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/** An IPv4 or IPv6 literal without brackets and without zone; undefined for anything else. */
export const parseAddress = (text: string): Address | undefined => {
  const four = parseFour(text);
  if (four !== undefined) return { bits: 32, value: four };
  const six = text.length > 45 ? undefined : parseSix(text);
  return six === undefined ? undefined : { bits: 128, value: six };
};

const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const FOUR = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`);

/** Whether {@link parseAddress} takes the text; cheap for IPv4. */
export const isAddress = (text: string): boolean =>
  FOUR.test(text) || parseAddress(text) !== undefined;

/** Whether a network such as `10.0.0.0/8` holds an address; undefined when one of the two is malformed. */
export const networkContains = (network: string, address: string): boolean | undefined => {
  const [base = '', length, ...rest] = network.split('/');
  const [first, second] = [parseAddress(base), parseAddress(address)];
  if (first === undefined || second === undefined || rest.length > 0) return undefined;
  const prefix = length === undefined ? first.bits : /^\d{1,3}$/.test(length) ? Number(length) : -1;
  if (prefix < 0 || prefix > first.bits) return undefined;
  if (first.bits !== second.bits) return false;
  const shift = BigInt(first.bits - prefix);
  return first.value >> shift === second.value >> shift;
};

const parseFour = (text: string): bigint | undefined => {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every(isByte)) return undefined;
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n);
};

const isByte = (part: string): boolean => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255;

const parseSix = (text: string): bigint | undefined => {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [head, tail] = [groupsOf(halves[0] ?? ''), groupsOf(halves[1] ?? '')];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...new Array<number>(missing).fill(0), ...tail];
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
};

/** Groups of one side of `::`; the last one may be an IPv4 address. */
const groupsOf = (text: string): number[] | undefined => {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    const four = index === parts.length - 1 ? parseFour(part) : undefined;
    if (four !== undefined) groups.push(Number(four >> 16n), Number(four & 0xffffn));
    else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
};
