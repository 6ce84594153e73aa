import { findLine, type Chunk } from '../cells/chunk.ts';
import type { TemplateLine } from './made-line.ts';
import type { Provenance } from './render.ts';
import { Origin, type Inclusion, type Mark } from './language/text.ts';

/** Which template line printed a line (counted from 1) of this text, found by walking down the tree of chunks. */
export const provenanceOf = (text: Chunk, line: number): Provenance | undefined => {
  const start = findLine(text, line);
  if (start === undefined || !(start.leaf.origin instanceof Origin)) return undefined;
  const { marks, object } = start.leaf.origin;
  const mark = lastMark(marks, start.offset);
  return mark === undefined ? undefined : { ...printedAt(mark, start.offset), object };
};

/**
 * The template line that printed the line of a leaf, and the includes and calls that led there, from inside out; empty
 * where nothing is known.
 *
 * @param offset lines of the leaf before it
 */
export const templateLines = ({ origin }: Chunk, offset: number): readonly TemplateLine[] => {
  const mark = origin instanceof Origin ? lastMark(origin.marks, offset) : undefined;
  return mark === undefined ? [] : [printedAt(mark, offset), ...includesAround(mark.via)];
};

const printedAt = (
  { source, line, templateLine, advances }: Mark,
  offset: number,
): TemplateLine => ({
  template: source,
  line: templateLine + (advances ? offset - line : 0),
});

function* includesAround(via: Inclusion | undefined): Generator<TemplateLine> {
  for (let at = via; at !== undefined; at = at.around) yield { template: at.source, line: at.line };
}

const lastMark = (marks: readonly Mark[], line: number): Mark | undefined =>
  marks.findLast((mark) => mark.line <= line);
