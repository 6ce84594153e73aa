import { LIMITS, type CrtListEntry, type Operation } from '../../src/protocol/protocol.ts';
import type { Command } from './worker.ts';

/** Operations on certificates, certificate authorities and revocation lists. */
export type TlsOperation = Extract<Operation, { readonly kind: `${TlsKind}_${string}` }>;
export type TlsKind = 'cert' | 'ca' | 'crl';

/** What HAProxy calls them in commands. */
const NOUN: Readonly<Record<TlsKind, string>> = { cert: 'cert', ca: 'ca-file', crl: 'crl-file' };

export const tlsKindOf = ({ kind }: TlsOperation): TlsKind =>
  kind.slice(0, kind.indexOf('_')) as TlsKind;

/** Makes an empty place for a file that the worker has not loaded. */
export const newTls = (kind: TlsKind, name: string): Command => ({
  line: `new ssl ${NOUN[kind]} ${name}`,
  accept: /^New /,
});

/**
 * Opens a transaction with a content.
 *
 * @param lines of the file; none of them empty
 */
export const setTls = (kind: TlsKind, name: string, lines: readonly string[]): Command => ({
  line: `set ssl ${NOUN[kind]} ${name}`,
  payload: lines,
  accept: /transaction (?:created|updated) for /i,
});

export const commitTls = (kind: TlsKind, name: string): Command => ({
  line: `commit ssl ${NOUN[kind]} ${name}`,
  accept: /Success!$/,
});

/** A transaction that is left open would refuse every later one. */
export const abortTls = (kind: TlsKind, name: string): Command => ({
  line: `abort ssl ${NOUN[kind]} ${name}`,
  accept: /./,
  tolerate: /./,
});

/** What is in use stays: then the configuration itself names it. */
export const deleteTls = (kind: TlsKind, name: string): Command => ({
  line: `del ssl ${NOUN[kind]} ${name}`,
  accept: /deleted!$/,
  tolerate: /in use, can't be deleted|doesn't exist/,
});

/** True for a content that one command carries. */
export const fitsPayload = (lines: readonly string[]): boolean =>
  lines.reduce((sum, line) => sum + line.length + 1, 0) <= LIMITS.commandLineBytes - 1_024;

/** A line of a certificate list: as it stands in the file. */
export const crtListLine = ({ certificate, options, filters }: CrtListEntry): string =>
  [certificate, ...(options.length === 0 ? [] : [`[${options.join(' ')}]`]), ...filters].join(' ');

export const addLine = (list: string, line: string): Command => ({
  line: `add ssl crt-list ${list}`,
  payload: [line],
  accept: /Success!$/,
});

/** @param number of the line, as {@link lineNumber} finds it */
export const deleteLine = (list: string, certificate: string, number: string): Command => ({
  line: `del ssl crt-list ${list} ${certificate}:${number}`,
  accept: /deleted in crtlist/,
});

export const showLines = (list: string): Command => ({
  line: `show ssl crt-list -n ${list}`,
  accept: /^# /,
});

/** Where a line stands among those that {@link showLines} told, or undefined; a blank more or less does not count. */
export function lineNumber(shown: string, line: string): string | undefined {
  for (const one of shown.split('\n')) {
    const [, certificate, number, rest = ''] = /^(.+?):(\d+)((?: .*)?)$/.exec(one) ?? [];
    if (certificate === undefined) continue;
    const told = `${certificate}${rest}`.replace(' ]', ']').replace(' []', '').trim();
    if (told === line) return number;
  }
  return undefined;
}
