import { loadAll, YAMLException } from 'js-yaml';

/** Where a text stops being YAML; line and column count from 1. The reason quotes nothing of the text. */
export interface YamlError {
  readonly reason: string;
  readonly line: number;
  readonly column: number;
}

export type YamlDocuments =
  | { readonly ok: true; readonly documents: readonly unknown[] }
  | { readonly ok: false; readonly error: YamlError };

/** Values in all documents of one text after aliases are followed; more is an attack or a mistake. */
const MAX_VALUES = 5_000_000;

/**
 * Reads YAML 1.2 (and so JSON) in the core schema: no dates, no merge keys, no code; a duplicate key is an error; keys
 * such as `__proto__` become plain own members. Empty documents are left out.
 */
export const yamlDocuments = (text: string): YamlDocuments => {
  const json = canonicalJson(text);
  if (json !== undefined) return { ok: true, documents: [json] };
  try {
    const documents = loadAll(text).filter((document) => document !== null);
    const tooMany = text.includes('*') && countValues(documents) > MAX_VALUES;
    return tooMany
      ? failure('too many values after aliases are followed')
      : { ok: true, documents };
  } catch (error: unknown) {
    return error instanceof YAMLException
      ? failure(withoutQuotes(error.reason), placeOf(text, error.mark))
      : failure(error instanceof RangeError ? 'nested too deeply' : 'cannot be read');
  }
};

/**
 * The object of a text that is JSON exactly as programs write it, for which YAML gives the same and takes several times
 * as long. Written again it must give the text: then no key came twice, and nothing was written in a way that only YAML or
 * only JSON knows. Undefined: read it as YAML.
 */
const canonicalJson = (text: string): object | undefined => {
  const trimmed = text.trimEnd();
  if (!trimmed.startsWith('{') || !trimmed.endsWith('}') || UNUSUAL.test(trimmed)) return undefined;
  try {
    const value = JSON.parse(trimmed) as object;
    const indent = /^\{\n( +)/.exec(trimmed)?.[1]?.length ?? 0;
    return JSON.stringify(value, undefined, indent) === trimmed ? value : undefined;
  } catch {
    return undefined;
  }
};

/** Anything but ASCII that prints: JSON and YAML do not take the same of it. */
const UNUSUAL = /[^\n\x20-\x7e]/;

const failure = (
  reason: string,
  mark?: { readonly line: number; readonly column: number },
): YamlDocuments => ({
  ok: false,
  error: { reason, line: (mark?.line ?? 0) + 1, column: (mark?.column ?? 0) + 1 },
});

/** What misses its end is found after the last line, where a person finds nothing: then the last line is meant. */
const placeOf = (
  text: string,
  mark: { readonly line: number; readonly column: number } | undefined,
): { readonly line: number; readonly column: number } | undefined => {
  const lines = text.trimEnd().split('\n');
  const last = lines.length - 1;
  if (mark === undefined || mark.line <= last) return mark;
  return { line: last, column: lines[last]?.length ?? 0 };
};

/** The parser quotes tags, aliases and anchors, which in a broken file may be anything, a password too. */
const withoutQuotes = (reason: string): string => reason.replace(/\s*["'!<`].*$/s, '');

/** Counts what a walk would visit, without walking: each shared value is counted once and multiplied. */
const countValues = (documents: readonly unknown[]): number => {
  const counts = new Map<object, number>();
  const count = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 1;
    const known = counts.get(value);
    if (known !== undefined) return known;
    counts.set(value, Infinity); // a value that holds itself never ends
    const total = Object.values(value).reduce<number>((sum, inner) => sum + count(inner), 1);
    counts.set(value, total);
    return total;
  };
  return documents.reduce<number>((sum, document) => sum + count(document), 0);
};
