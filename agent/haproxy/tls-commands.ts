import { LIMITS, type Operation } from '../../src/protocol/protocol.ts';
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
 * Opens a transaction with a content; what a command cannot carry is added by further ones, of authorities only.
 *
 * @param lines of the file; none of them empty
 * @returns nothing when the content is too large for commands
 */
export function setTls(kind: TlsKind, name: string, lines: readonly string[]): Command[] {
  const pieces = kind === 'ca' ? piecesOf(lines) : [lines];
  if (!pieces.every((piece) => sizeOf(piece) <= ROOM)) return [];
  return pieces.map((payload, index) => ({
    line: `${index === 0 ? 'set' : 'add'} ssl ${NOUN[kind]} ${name}`,
    payload,
    accept: /transaction (?:created|updated) for /i,
  }));
}

/** Bytes of a payload, beside the command and its file name. */
const ROOM = LIMITS.commandLineBytes - 1_024;

const sizeOf = (lines: readonly string[]): number =>
  lines.reduce((sum, line) => sum + line.length + 1, 0);

/** As many whole certificates as one command carries. */
function piecesOf(lines: readonly string[]): string[][] {
  const pieces: string[][] = [];
  let piece: string[] = [];
  let certificate: string[] = [];
  let bytes = 0;
  const close = (): void => {
    if (piece.length > 0) pieces.push(piece);
    piece = [];
    bytes = 0;
  };
  for (const [index, line] of lines.entries()) {
    certificate.push(line);
    if (!line.startsWith('-----END ') && index < lines.length - 1) continue;
    if (bytes + sizeOf(certificate) > ROOM) close();
    bytes += sizeOf(certificate);
    piece.push(...certificate);
    certificate = [];
  }
  close();
  return pieces;
}

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

/**
 * Where a line stands among those that {@link showLines} told, or undefined. HAProxy shows options in an order of its own,
 * and a null byte behind the protocols of `alpn`.
 */
export function lineNumber(shown: string, line: string): string | undefined {
  const wanted = comparable(line);
  for (const one of shown.split('\n')) {
    const [, certificate, number, rest = ''] = /^(.+?):(\d+)((?: .*)?)$/.exec(one) ?? [];
    if (certificate !== undefined && comparable(certificate + rest) === wanted) return number;
  }
  return undefined;
}

const comparable = (line: string): string => {
  const [, before = '', options = '', after = ''] =
    /^([^[]*)(?:\[([^\]]*)\])?(.*)$/.exec(line) ?? [];
  const words = (text: string): string[] => text.replaceAll('\0', '').split(' ').filter(Boolean);
  return JSON.stringify([words(before + after), words(options).sort()]);
};
