/** What one object made of a render. */
import { objectRef, type KubeObject, type ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import {
  isSameObject,
  objectsOfLine,
  shownText,
  type ExplainSources,
  type Explained,
  type Role,
} from './explain-line.ts';
import { whyNothing } from './explain-silence.ts';
import { nameOf } from './language/failure.ts';
import type { MadeLine } from './made-line.ts';
import { nearestName } from './nearest-name.ts';
import type { RenderedFile } from './render.ts';

/** Lines that follow each other and that an object has to do with in one way. */
export interface LineRange {
  readonly file: string;
  /** Counted from 1; both are part of it. */
  readonly from: number;
  readonly to: number;
  readonly role: Role;
  /** One for each line; undefined for a file that holds secrets. */
  readonly text: readonly string[] | undefined;
  /** Template lines that printed or declared them, each once, as `template:line`. */
  readonly printedBy: readonly string[];
}

/** What is known of one object. */
export interface ObjectExplanation {
  readonly object: ObjectRef;
  /** By path of the file, then by line. */
  readonly lines: readonly LineRange[];
  /** What is wrong with it: why it is ignored in whole or in part. */
  readonly problems: readonly Problem[];
  /** Why it made nothing, where it made nothing and that is no problem. */
  readonly silence: string | undefined;
}

/**
 * What an object made, and what is wrong with it.
 *
 * @param words `KIND/NAMESPACE/NAME`, or `KIND/NAME` of a cluster-scoped object; the case of the kind does not matter
 */
export const explainObject = (
  sources: ExplainSources,
  words: string,
  problems: readonly Problem[],
): Explained<ObjectExplanation> => {
  const object = findObject(sources, words) ?? namedIn(problems, words);
  if (object === undefined) return { ok: false, message: noSuchObject(sources, words) };
  const ref = 'metadata' in object ? objectRef(object) : object;
  const own = problems.filter((one) => one.object !== undefined && isSameObject(one.object, ref));
  const lines = linesOfObject(sources, ref);
  const silence =
    lines.length > 0 || own.length > 0 || !('metadata' in object)
      ? undefined
      : whyNothing(object, sources.contributors);
  return { ok: true, explanation: { object: ref, lines, problems: own, silence } };
};

interface Named {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

const parseWords = (words: string): Named | undefined => {
  const [kind = '', ...rest] = words.split('/');
  const name = rest.pop();
  if (kind === '' || name === undefined || rest.length > 1) return undefined;
  return { kind: kind.toLowerCase(), namespace: rest[0] ?? '', name };
};

const findObject = ({ render }: ExplainSources, words: string): KubeObject | undefined => {
  const named = parseWords(words);
  if (named === undefined) return undefined;
  const { snapshot } = render;
  return snapshot.resources
    .map((resource) => snapshot.store(resource).get(named.namespace, named.name))
    .find((object) => object?.kind.toLowerCase() === named.kind);
};

/** An object that nobody watches may still be told of. */
const namedIn = (problems: readonly Problem[], words: string): ObjectRef | undefined => {
  const named = parseWords(words);
  if (named === undefined) return undefined;
  const isNamed = ({ kind, namespace, name }: ObjectRef): boolean =>
    kind.toLowerCase() === named.kind && namespace === named.namespace && name === named.name;
  return problems.flatMap(({ object }) => object ?? []).find(isNamed);
};

const noSuchObject = ({ render: { snapshot } }: ExplainSources, words: string): string => {
  const objects = snapshot.resources.flatMap((resource) => snapshot.store(resource).list());
  const names = objects.map((object) => nameOf(objectRef(object)).replace(' ', '/'));
  const nearest =
    nearestName(words, names) ??
    names.find((name) => name.toLowerCase().endsWith(`/${words.split('/').at(-1) ?? ''}`));
  if (nearest !== undefined) return `there is no object ${words}; did you mean ${nearest}?`;
  const kinds = [...new Set(objects.map(({ kind }) => kind))].sort();
  const there = kinds.length === 0 ? 'There is no object at all' : `There are ${kinds.join(', ')}`;
  return `there is no object ${words}; name it KIND/NAMESPACE/NAME. ${there}`;
};

const linesOfObject = (
  { render, contributors }: ExplainSources,
  ref: ObjectRef,
): readonly LineRange[] => {
  const ranges: OpenRange[] = [];
  for (const path of [...render.files.keys()].sort()) {
    const file = render.files.get(path);
    if (file === undefined) continue;
    let number = 0;
    for (const line of render.lines(path)) {
      number += 1;
      const objects = objectsOfLine(line, contributors);
      const role = objects.find(({ object }) => isSameObject(object, ref))?.role;
      if (role !== undefined) extend(ranges, { file, number, role, line });
    }
  }
  return ranges.map(({ printedBy, ...range }) => ({ ...range, printedBy: [...printedBy] }));
};

interface OpenRange extends Omit<LineRange, 'printedBy' | 'text'> {
  to: number;
  readonly text: string[] | undefined;
  readonly printedBy: Set<string>;
}

interface FoundLine {
  readonly file: RenderedFile;
  readonly number: number;
  readonly role: Role;
  readonly line: MadeLine;
}

/** Adds a line to the last range, or begins another one. */
const extend = (ranges: OpenRange[], { file, number, role, line }: FoundLine): void => {
  const text = shownText(file, line);
  const [place] = line.printedBy;
  let last = ranges.at(-1);
  if (last?.file !== file.path || last.to !== number - 1 || last.role !== role) {
    last = {
      ...{ file: file.path, from: number, to: number, role },
      ...{ text: text === undefined ? undefined : [], printedBy: new Set() },
    };
    ranges.push(last);
  }
  last.to = number;
  if (text !== undefined) last.text?.push(text);
  if (place !== undefined) last.printedBy.add(`${place.template}:${place.line}`);
};
