/**
 * Typed emitters: each takes any string and gives either the text that stands for exactly this string in its place of a
 * HAProxy configuration, map or comment, or the reason why it cannot stand there. All are injective but `comment`, and `pem`
 * in its line ends. Messages never repeat the value.
 */
import { RE2JS } from 're2js';

/** Longest value that is emitted, in bytes of UTF-8: half of HAProxy's smallest buffer. */
export const MAX_VALUE = 8192;
/** Likewise of map keys and values: a line of a map file has to fit the buffer, or it would become two entries. */
export const MAX_MAP_KEY = 2048;
export const MAX_MAP_VALUE = 4096;
const MAX_COMMENT = 400;
/** Longest free text, in bytes. */
const MAX_TEXT = 1024 * 1024;

export type Emission =
  { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

export type Emitter = (value: string) => Emission;

const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const WHITESPACE = /\s/u;
const TOKEN = /^[A-Za-z0-9_.:/@+=*~][A-Za-z0-9_.:/@+=*~-]*$/;
const PATH = /^[A-Za-z0-9_+=@~-][A-Za-z0-9_.+=@~-]*(?:\/[A-Za-z0-9_+=@~-][A-Za-z0-9_.+=@~-]*)*$/;

const ok = (text: string): Emission => ({ ok: true, text });
const refuse = (reason: string): Emission => ({ ok: false, reason });

/** Why no emitter would take it: a control character, a broken character, nothing at all, or too much. */
const unprintable = (value: string, limit = MAX_VALUE): string | undefined => {
  if (value === '') return 'it is empty';
  if (bytesIn(value, limit) > limit) return `it is longer than ${limit} bytes`;
  if (!value.isWellFormed()) return 'it holds half of a surrogate pair';
  const at = value.search(CONTROL);
  return at === -1 ? undefined : `it holds a control character at position ${at + 1}`;
};

/** Of UTF-8; not counted where the length tells enough. */
const bytesIn = (value: string, limit: number): number =>
  value.length > limit || value.length * 3 <= limit
    ? value.length
    : new TextEncoder().encode(value).length;

/** In single quotes HAProxy takes everything literally; the quote itself stands outside of them. */
const quote = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;

/** A word without quotes: a name, an address, a number, a duration. */
export const token: Emitter = (value) => {
  const reason = unprintable(value);
  if (reason !== undefined) return refuse(reason);
  if (TOKEN.test(value)) return ok(value);
  return refuse(
    value.startsWith('-')
      ? 'it starts with a dash and would be an option'
      : 'it holds a character other than letters, digits and _ . : / @ + = * ~ -',
  );
};

/** One quoted word. */
export const quoted: Emitter = (value) => {
  const reason = unprintable(value);
  return reason === undefined ? ok(quote(value)) : refuse(reason);
};

const formatted = (value: string): string => value.replaceAll('%', '%%');

/**
 * One quoted word that HAProxy reads as a log format and that prints the value: `%` is doubled. Blanks that it would merge
 * with others in a log line are what a sample expression gives.
 */
export const logFormat: Emitter = (value) => {
  const reason = unprintable(value);
  if (reason !== undefined) return refuse(reason);
  return ok(quote(formatted(value).replace(/^ +| {2,}| +$/g, (blanks) => `%[str("${blanks}")]`)));
};

/** The value of a header in a directive that takes a log format. */
export const header: Emitter = (value) => {
  if (value.trim() !== value) return refuse('it starts or ends with white space');
  const reason = unprintable(value);
  return reason === undefined ? ok(quote(formatted(value))) : refuse(reason);
};

/** What HAProxy would not read as a pattern of an ACL. */
const noPattern = (value: string, instead = ''): string | undefined => {
  if (value.startsWith('-')) return `it starts with a dash and would be a flag${instead}`;
  return value === '}' || value === '{' ? 'it would be a brace of the condition' : undefined;
};

/** One quoted regular expression, also as pattern of an ACL; it has to be one that runs in linear time (RE2). */
export const regex: Emitter = (value) => {
  const reason = unprintable(value) ?? noPattern(value, '; [-] stands for one');
  if (reason !== undefined) return refuse(reason);
  try {
    RE2JS.compile(value);
  } catch {
    return refuse(
      'it is not a regular expression in RE2 syntax (no look-around, no back-references)',
    );
  }
  return ok(quote(value));
};

/** One quoted pattern of an ACL, which HAProxy must not take for a flag or for the end of an anonymous ACL. */
export const aclPattern: Emitter = (value) => {
  const reason = noPattern(value);
  return reason === undefined ? quoted(value) : refuse(reason);
};

/** The key of a map entry. */
export const mapKey: Emitter = (value) => {
  const reason = unprintable(value, MAX_MAP_KEY);
  if (reason !== undefined) return refuse(reason);
  if (WHITESPACE.test(value)) return refuse('it holds white space');
  return value.startsWith('#') ? refuse('it starts with # and would be a comment') : ok(value);
};

/** The value of a map entry: the rest of its line. */
export const mapValue: Emitter = (value) => {
  const reason = unprintable(value, MAX_MAP_VALUE);
  if (reason !== undefined) return refuse(reason);
  return value.trim() === value ? ok(value) : refuse('it starts or ends with white space');
};

/** A relative path below the base directory: no `..`, no component that starts with a dot. */
export const path: Emitter = (value) => {
  const reason = unprintable(value, 255);
  if (reason !== undefined) return refuse(reason);
  // `opt@a` is a file that may be missing, `@a/b` a certificate of a store.
  if (/^[^/]*@/.test(value)) return refuse('what stands before an @ would be a prefix of HAProxy');
  return PATH.test(value) && !/(?:^|\/)-/.test(value)
    ? ok(value)
    : refuse(
        'it is not a relative path of letters, digits and _ . + = @ ~ - without ".." and dot files',
      );
};

/** Text of a comment; what could not stand there is replaced. The only emitter that loses something. */
export const comment: Emitter = (value) => {
  const printable = value
    .slice(0, MAX_COMMENT)
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029\\]/gu, '?');
  return ok(printable);
};

/** PEM blocks and nothing else, for the content of certificate files. Keeps line feeds. */
export const pem: Emitter = (value) => {
  const text = `${value.replaceAll('\r\n', '\n').trimEnd()}\n`;
  const block =
    /-----BEGIN ([A-Z0-9 ]+)-----\n(?:[A-Za-z0-9+/=]+\n)+-----END \1-----\n(?:[ \t]*\n)*/y;
  let end = 0;
  while (end < text.length) {
    block.lastIndex = end;
    if (!block.test(text)) return refuse('it is not a sequence of PEM blocks');
    end = block.lastIndex;
  }
  return ok(text);
};

/** Free text of a file that no line structure limits: the value itself. Keeps line feeds and tabs. */
export const text: Emitter = (value) => {
  const reason = unprintable(value.replace(/[\n\t]/g, ' '), MAX_TEXT);
  return reason === undefined || value === '' ? ok(value) : refuse(reason);
};

/** By the name of their filter. */
export const EMITTERS: Readonly<Record<string, Emitter>> = {
  token,
  quoted,
  logFormat,
  header,
  regex,
  aclPattern,
  mapKey,
  mapValue,
  path,
  comment,
  pem,
  text,
};
