import { isIP } from 'node:net';
import { LIMITS, type CrtListEntry, type Operation } from '../../src/protocol/protocol.ts';
import { isCanonicalPath } from '../files/paths.ts';

/**
 * One word of HAProxy's command line. Anything that would end the word, the command or the line, or begin a payload, is
 * refused and never rewritten.
 */
export const isToken = (text: string): boolean =>
  text !== '' &&
  Buffer.byteLength(text) <= 1024 &&
  !/[\s;\\\u0000-\u001f\u007f-\u009f]/.test(text) &&
  !text.includes('<<');

/** Name of a backend or server: a token without the slash that separates the two. */
const isName = (text: string): boolean => isToken(text) && !text.includes('/');

/** A key as a map file can hold it: one word that is not a comment. */
const isMapKey = (text: string): boolean =>
  text !== '' && !text.startsWith('#') && !/[\s\u0000-\u001f\u007f]/.test(text);

/** A value as a map file can hold it: one line without space at either end. */
const isMapValue = (text: string): boolean =>
  text !== '' && text.trim() === text && !/[\u0000-\u0008\u000a-\u001f\u007f]/.test(text);

/**
 * A map key or value as one argument of a command. HAProxy's own escapes are used, so the worker sees the same bytes as
 * in the file.
 */
export const escapeArgument = (text: string): string => text.replace(/[\s;\\<"'#]/g, '\\$&');

const isWeight = (weight: number): boolean =>
  Number.isInteger(weight) && weight >= 0 && weight <= 256;
/** What HAProxy's integer takes. */
const MOST_CONNECTIONS = 1_000_000_000;
const isPort = (port: number): boolean => Number.isInteger(port) && port >= 0 && port <= 65_535;

/**
 * Why an operation of a known shape must not reach the worker.
 *
 * @returns a reason for people; `undefined` when it may
 */
export function refusalOf(operation: Operation): string | undefined {
  if ('map' in operation) return refusedMap(operation.map) ?? refusedContent(operation);
  if ('list' in operation) return refusedPath(operation.list) ?? refusedLine(operation.entry);
  return 'file' in operation ? refusedPath(operation.file) : refusedProxy(operation);
}

function refusedContent(
  operation: Extract<Operation, { readonly map: string }>,
): string | undefined {
  if ('entries' in operation) return firstRefusal(operation.entries);
  if ('value' in operation) return refusedEntry([operation.key, operation.value]);
  return isMapKey(operation.key) ? undefined : 'bad map key';
}

const refusedPath = (path: string): string | undefined =>
  isCanonicalPath(path) && isToken(path) ? undefined : 'bad file path';

/** A word of a certificate list: neither ends the word, nor the options, nor makes a comment. */
const isLineWord = (word: string): boolean => isToken(word) && !/[[\]#"']/.test(word);

function refusedLine({ certificate, options, filters }: CrtListEntry): string | undefined {
  if (refusedPath(certificate) !== undefined) return 'bad certificate path';
  return [certificate, ...options, ...filters].every(isLineWord)
    ? undefined
    : 'bad word in a line of a certificate list';
}

function refusedProxy(
  operation: Extract<Operation, { readonly backend: string }>,
): string | undefined {
  if ('server' in operation) return refusedServer(operation);
  if (!isName(operation.backend)) return 'bad backend name';
  return operation.kind === 'backend_add' && !isName(operation.profile)
    ? 'bad profile name'
    : undefined;
}

function refusedServer(
  operation: Extract<Operation, { readonly server: string }>,
): string | undefined {
  if (!isName(operation.backend)) return 'bad backend name';
  if (!isName(operation.server)) return 'bad server name';
  return refusedSettings(operation);
}

function refusedSettings(
  operation: Extract<Operation, { readonly server: string }>,
): string | undefined {
  if ('address' in operation) {
    if (isIP(operation.address) === 0) return 'the address is not an IP address';
    if (!isPort(operation.port)) return 'bad port';
  }
  if ('maxconn' in operation && operation.maxconn > MOST_CONNECTIONS) return 'bad maxconn';
  if ('weight' in operation && !isWeight(operation.weight)) return 'bad weight';
  return 'keywords' in operation && !operation.keywords.every(isToken) ? 'bad keyword' : undefined;
}

const refusedMap = (map: string): string | undefined =>
  isCanonicalPath(map) && isToken(map) ? undefined : 'bad map path';

function refusedEntry([key, value]: readonly [string, string]): string | undefined {
  if (!isMapKey(key)) return 'bad map key';
  if (!isMapValue(value)) return 'bad map value';
  const bytes = Buffer.byteLength(key) + Buffer.byteLength(value);
  return bytes > LIMITS.mapEntryBytes ? 'the map entry is too long' : undefined;
}

function firstRefusal(entries: readonly (readonly [string, string])[]): string | undefined {
  for (const entry of entries) {
    const refusal = refusedEntry(entry);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}
