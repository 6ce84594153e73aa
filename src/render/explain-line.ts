/** What made one line of a rendered file. */
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Contributors } from './explain-contributors.ts';
import type { MadeLine, TemplateLine } from './made-line.ts';
import { nearestName } from './nearest-name.ts';
import type { Render, RenderedFile } from './render.ts';

/** How an object has to do with a line: its own cell made it, or it is one of those that decided what it says. */
export type Role = 'made' | 'took part';

/** An object behind a line. */
export interface LineObject {
  readonly object: ObjectRef;
  readonly role: Role;
}

/** What is known of one line. */
export interface LineExplanation {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** Undefined for a file that holds secrets. */
  readonly text: string | undefined;
  /** The template line that printed or declared it, then the includes and calls that led there, from inside out. */
  readonly printedBy: readonly TemplateLine[];
  /** Empty for a line that is there whatever objects there are. */
  readonly objects: readonly LineObject[];
}

/** An explanation, or why there is none: what was asked for does not exist. */
export type Explained<T> =
  { readonly ok: true; readonly explanation: T } | { readonly ok: false; readonly message: string };

/** What an explanation is made from. */
export interface ExplainSources {
  readonly render: Pick<Render, 'files' | 'lines' | 'snapshot'>;
  readonly contributors: Contributors;
}

const MOST_FILES = 40;

/** What made a line of a file; both are as a person names them. */
export const explainLine = (
  { render, contributors }: ExplainSources,
  { file, line }: { readonly file: string; readonly line: number },
): Explained<LineExplanation> => {
  const rendered = render.files.get(file);
  if (rendered === undefined) return refused(noSuchFile(file, [...render.files.keys()]));
  const lines = [...render.lines(file)];
  const found = lines[line - 1];
  if (found === undefined) {
    const there = lines.length === 0 ? 'is empty' : `has lines 1 to ${lines.length}`;
    return refused(`${file} ${there}, so there is no line ${line}`);
  }
  const { printedBy } = found;
  const objects = objectsOfLine(found, contributors);
  return {
    ok: true,
    explanation: { file, line, text: shownText(rendered, found), printedBy, objects },
  };
};

const refused = (message: string): { readonly ok: false; readonly message: string } => ({
  ok: false,
  message,
});

const noSuchFile = (file: string, paths: readonly string[]): string => {
  const nearest = nearestName(file, paths);
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
  const listed = paths.toSorted().slice(0, MOST_FILES);
  const more = paths.length > listed.length ? `, and ${paths.length - listed.length} more` : '';
  return `there is no file ${file}${hint} There are ${listed.join(', ')}${more}`;
};

/** Kinds of files whose text is for nobody's eyes. */
const SECRET: ReadonlySet<string> = new Set(['cert', 'ca', 'crl']);

/** The text of a line, unless its file holds secrets. */
export const shownText = ({ kind }: RenderedFile, { text }: MadeLine): string | undefined =>
  SECRET.has(kind) ? undefined : text;

/** The objects behind a line, each once; those whose cells made it come first. */
export const objectsOfLine = (
  { makers, text }: MadeLine,
  contributors: Contributors,
): readonly LineObject[] => {
  const objects: LineObject[] = [];
  const add = (object: ObjectRef, role: Role): void => {
    if (!objects.some((one) => isSameObject(one.object, object))) objects.push({ object, role });
  };
  for (const { object, element } of makers) {
    // The cell of a host is made for all objects that claim the host.
    if (object !== undefined && element?.collection !== 'hosts') add(object, 'made');
  }
  for (const { element } of makers) {
    if (element === undefined) continue;
    const role = element.collection === 'hosts' ? 'made' : 'took part';
    for (const object of contributors.of(element, text)) add(object, role);
  }
  return objects;
};

/** Whether two references name one object. */
export const isSameObject = (left: ObjectRef, right: ObjectRef): boolean =>
  left.kind === right.kind && left.namespace === right.namespace && left.name === right.name;
