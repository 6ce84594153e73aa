/**
 * What HAProxy's command line and its map files can carry. Tried on 3.0, 3.2 and 3.4: an entry reads the same from a file
 * and from the socket unless one of these rules is broken, so everything else is left to a reload.
 */
import { LIMITS } from '../protocol/protocol.ts';

const CONTROL = /\p{Cc}/u;
const BLANK_AT_EDGE = /^\s|\s$/u;

const bytes = (text: string): number => {
  let count = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    count += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return count;
};

/**
 * Why a map entry cannot go over the socket, or undefined when it can. A key ends at the first blank and a leading `#`
 * makes a comment in a file; blanks around a value are lost there; an empty value has no form on the socket.
 */
export function entryObstacle(key: string, value: string): string | undefined {
  const both = key + value;
  if (CONTROL.test(both)) return 'contains control characters';
  if (!key.isWellFormed() || !value.isWellFormed()) return 'is not valid Unicode';
  if (!/^\S+$/u.test(key)) return 'has a key that is not one word';
  if (key.startsWith('#')) return 'has a key that a map file takes for a comment';
  if (value === '') return 'has an empty value';
  if (BLANK_AT_EDGE.test(value)) return 'has blanks at an end of its value';
  return bytes(both) > LIMITS.mapEntryBytes ? 'is too long for one command' : undefined;
}

/** True for one word that needs no escaping, as server keywords must be. */
export const isPlainWord = (word: string): boolean =>
  word !== '' && !/[\s;\\'"#]|\p{Cc}|<</u.test(word) && word.isWellFormed();

/** True for a name of a backend or server that a command can carry. */
export const isName = (name: string): boolean => /^[\w.:-]+$/.test(name);

/** True when the words together fit on one command line. */
export const fitsOneLine = (words: readonly string[]): boolean =>
  words.reduce((sum, word) => sum + bytes(word) + 1, 0) <= LIMITS.commandLineBytes - 512;

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** True for an IPv4 or IPv6 literal without brackets, prefix, zone or port: what `set server … addr` takes. */
export function isAddressLiteral(address: string): boolean {
  if (IPV4.test(address)) return true;
  if (!/^[0-9a-fA-F:.]+$/.test(address) || address.split('::').length > 2) return false;
  const tail = address.slice(address.lastIndexOf(':') + 1);
  const ending = tail.includes('.');
  if (ending && !IPV4.test(tail)) return false;
  const head = ending ? address.slice(0, -tail.length) + '0:0' : address;
  const groups = head.split('::').flatMap((half) => (half === '' ? [] : half.split(':')));
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return false;
  return head.includes('::') ? groups.length < 8 : groups.length === 8;
}
