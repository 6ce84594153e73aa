import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { KubeObject } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { listItems, storedObject } from './directory-objects.ts';
import { yamlDocuments, type YamlError } from './yaml-documents.ts';

/** One object of a file. */
export interface ManifestEntry {
  /** Group, kind, namespace and name. */
  readonly identity: string;
  readonly object: KubeObject;
  /** Line its document begins at, from 1. */
  readonly line: number;
}

/** What a file of manifests holds. */
export interface ManifestFile {
  readonly entries: readonly ManifestEntry[];
  /** Documents that are no valid objects. */
  readonly problems: readonly Problem[];
  /** Parsed documents by digest, so that an edited file costs what was edited. */
  readonly parsed: ReadonlyMap<string, ParsedPart>;
}

export type ManifestRead =
  | { readonly ok: true; readonly file: ManifestFile }
  | { readonly ok: false; readonly problem: Problem };

/** A part of a file between two document marks. Lines count from the part's first line, which is 0. */
interface ParsedPart {
  readonly entries: readonly ManifestEntry[];
  readonly refused: readonly {
    readonly identity: string | undefined;
    readonly field: string;
    readonly message: string;
    readonly line: number;
  }[];
}

interface Part {
  readonly bytes: Buffer;
  /** Lines of the file before it. */
  readonly line: number;
}

/** Longest time in milliseconds for which parsing may keep the event loop. */
const SLICE_MS = 8;

/**
 * Reads the manifests of one file. YAML that cannot be parsed anywhere makes the whole file unusable; a document that is
 * no valid object is reported, and the object it stands for stays as `previous` had it.
 *
 * Yields to the event loop while it parses a large file.
 *
 * @param path name of the file in messages
 * @param previous what the file held before: documents that did not change are not parsed again
 */
export const readManifests = async (
  path: string,
  bytes: Buffer,
  previous?: ManifestFile,
): Promise<ManifestRead> => {
  const parsed = new Map<string, ParsedPart>();
  const contents: { readonly line: number; readonly content: ParsedPart }[] = [];
  let sliceEnd = performance.now() + SLICE_MS;
  for (const { bytes: part, line } of partsOf(bytes)) {
    const digest = hash('sha256', part, 'base64');
    const known = previous?.parsed.get(digest) ?? parsed.get(digest);
    const content = known ?? parsePart(part.toString('utf8'));
    if ('reason' in content)
      return {
        ok: false,
        problem: unreadable(path, line + content.line, {
          ...content,
          isTemplate: part.includes('{{'),
        }),
      };
    parsed.set(digest, content);
    contents.push({ line, content });
    if (known === undefined && performance.now() > sliceEnd) {
      await setImmediate();
      sliceEnd = performance.now() + SLICE_MS;
    }
  }
  return { ok: true, file: { ...assemble(path, contents, previous), parsed } };
};

const assemble = (
  path: string,
  contents: readonly { readonly line: number; readonly content: ParsedPart }[],
  previous: ManifestFile | undefined,
): Pick<ManifestFile, 'entries' | 'problems'> => {
  const entries: ManifestEntry[] = [];
  const problems: Problem[] = [];
  let earlier: ReadonlyMap<string | undefined, ManifestEntry> | undefined;
  for (const { line: before, content } of contents) {
    for (const entry of content.entries) {
      entries.push({ ...entry, line: before + entry.line + 1 });
    }
    for (const refusal of content.refused) {
      const line = before + refusal.line + 1;
      problems.push(invalid({ ...refusal, path, line }));
      earlier ??= new Map(previous?.entries.map((entry) => [entry.identity, entry]));
      const kept = earlier.get(refusal.identity);
      if (kept !== undefined) entries.push({ ...kept, line });
    }
  }
  return { entries, problems };
};

/**
 * Cuts a file at its document marks. YAML allows `---` at the begin of a line nowhere else; with directives, which stand
 * before a mark, the file stays whole.
 *
 * Each part is turned into a string of its own later: a string cut out of a larger one would keep that one in memory.
 */
const partsOf = (file: Buffer): readonly Part[] => {
  const bytes = file.subarray(hasByteOrderMark(file) ? 3 : 0);
  if (bytes[0] === PERCENT || bytes.includes('\n%')) return [{ bytes, line: 0 }];
  const parts: Part[] = [];
  let [start, startLine, line] = [0, 0, 0];
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
    line += 1;
    if (!isDocumentMark(bytes, at + 1)) continue;
    parts.push({ bytes: bytes.subarray(start, at + 1), line: startLine });
    [start, startLine] = [at + 1, line];
  }
  parts.push({ bytes: bytes.subarray(start), line: startLine });
  return parts;
};

const [NEWLINE, DASH, PERCENT] = [0x0a, 0x2d, 0x25];
/** End of file, tab, line feed, carriage return, space. */
const AFTER_MARK: readonly (number | undefined)[] = [undefined, 0x09, 0x0a, 0x0d, 0x20];

const isDocumentMark = (bytes: Buffer, at: number): boolean =>
  bytes[at] === DASH &&
  bytes[at + 1] === DASH &&
  bytes[at + 2] === DASH &&
  AFTER_MARK.includes(bytes[at + 3]);

const hasByteOrderMark = (bytes: Buffer): boolean =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;

const parsePart = (text: string): ParsedPart | YamlError => {
  const read = yamlDocuments(text);
  if (!read.ok) return read.error;
  const line = linesBeforeContent(text);
  const entries: ManifestEntry[] = [];
  const refused: ParsedPart['refused'][number][] = [];
  for (const { value, path } of read.documents.flatMap(listItems)) {
    const stored = storedObject(value);
    if (stored.ok) entries.push({ ...stored, line });
    else refused.push({ ...stored, line, field: joined(path, stored.field) });
  }
  return { entries, refused };
};

const joined = (path: string, field: string): string => [path, field].filter(Boolean).join('.');

const linesBeforeContent = (text: string): number =>
  (/^(?:---[ \t]*(?:#.*)?\r?\n|[ \t]*(?:#.*)?\r?\n)*/.exec(text)?.[0].match(/\n/g) ?? []).length;

const unreadable = (
  path: string,
  line: number,
  { reason, column, isTemplate }: YamlError & { readonly isTemplate: boolean },
): Problem => ({
  severity: 'error',
  reason: 'InvalidYAML',
  message: `The file is not valid YAML: ${reason}.`,
  nextStep: isTemplate
    ? 'It looks like a Helm template: put what helm template makes of it here instead.'
    : 'Correct the file; until then its last good content stays in use.',
  place: { source: path, line, column },
});

/** What a document without a usable kind or name most likely is, by the name that tools give its file. */
const remedyFor = (path: string): string => {
  const name = path.split('/').at(-1) ?? '';
  if (/^kustomization\.ya?ml$/i.test(name)) {
    return 'It is for kustomize: put what kubectl kustomize makes of it here instead.';
  }
  return /^(?:Chart|values.*)\.ya?ml$/.test(name)
    ? 'It belongs to a Helm chart: put what helm template makes of the chart here instead.'
    : 'Correct the manifest; an earlier valid state of the object stays in use until then.';
};

const invalid = (refusal: {
  readonly path: string;
  readonly line: number;
  readonly identity: string | undefined;
  readonly field: string;
  readonly message: string;
}): Problem => {
  const [, kind, namespace, name] = (refusal.identity ?? '').split(' ');
  const wrong = [refusal.field, refusal.message].filter((part) => part !== '').join(' ');
  const subject = name === undefined ? 'A document' : `${kind ?? ''} ${namespace ?? ''}/${name}`;
  return {
    severity: 'error',
    reason: 'InvalidObject',
    message: `${subject} is not a valid object: ${wrong}.`,
    nextStep: remedyFor(refusal.path),
    field: refusal.field,
    place: { source: refusal.path, line: refusal.line },
  };
};
