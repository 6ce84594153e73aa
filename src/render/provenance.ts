import { findLine, type Chunk } from '../cells/chunk.ts';
import type { Provenance } from './render.ts';
import { Origin, type Mark } from './language/text.ts';

/** Which template line printed a line (counted from 1) of this text, found by walking down the tree of chunks. */
export const provenanceOf = (text: Chunk, line: number): Provenance | undefined => {
  const start = findLine(text, line);
  if (start === undefined || !(start.leaf.origin instanceof Origin)) return undefined;
  const { marks, object } = start.leaf.origin;
  const mark = lastMark(marks, start.offset);
  if (mark === undefined) return undefined;
  const further = mark.advances ? start.offset - mark.line : 0;
  return { template: mark.source, line: mark.templateLine + further, object };
};

const lastMark = (marks: readonly Mark[], line: number): Mark | undefined =>
  marks.findLast((mark) => mark.line <= line);
