/** Every line of a file of a render with what made it. */
import { chunkText, type Chunk } from '../cells/chunk.ts';
import type { RouteModel } from '../routing/model.ts';
import { CellsOfRender, type CellSources } from './explain-cells.ts';
import type { LineMaker, MadeLine } from './made-line.ts';
import { templateLines } from './provenance.ts';
import type { RenderedFile } from './render.ts';

/** What the lines of a render are looked up in. */
export interface LineSources {
  readonly cells: CellSources;
  /** All of them, the configuration included. */
  readonly files: ReadonlyMap<string, RenderedFile>;
  readonly model: RouteModel;
}

/** The lines of a file, one after another. What it takes to find their makers is prepared once, at the first file. */
export const linesOf = (sources: LineSources): ((path: string) => Iterable<MadeLine>) => {
  let cells: CellsOfRender | undefined;
  return (path) => {
    const text = sources.files.get(path)?.text;
    if (text === undefined) return [];
    cells ??= new CellsOfRender(sources.cells, sources.model);
    return linesOfFile(path, text, cells);
  };
};

function* linesOfFile(path: string, chunk: Chunk, cells: CellsOfRender): Generator<MadeLine> {
  const whole = cells.ofFile(path);
  if (whole === undefined && cells.ofLine(path, '') === undefined) {
    yield* printedLines(chunk, cells);
    return;
  }
  const texts = chunkText(chunk).split('\n');
  if (texts.at(-1) === '') texts.pop();
  for (const text of texts) {
    yield { text, printedBy: [], makers: [], ...(whole ?? cells.ofLine(path, text)) };
  }
}

interface OpenLine extends MadeLine {
  text: string;
  readonly makers: LineMaker[];
}

/** Lines that templates print, each with the cells that print any part of it. */
function* printedLines(chunk: Chunk, cells: CellsOfRender): Generator<MadeLine> {
  let open: OpenLine | undefined;
  for (const leaf of leavesOf(chunk)) {
    const maker = cells.ofLeaf(leaf);
    for (const { piece, offset, ends } of piecesOf(leaf)) {
      open ??= { text: '', printedBy: templateLines(leaf, offset), makers: [] };
      open.text += piece;
      if (maker !== undefined && !open.makers.includes(maker)) open.makers.push(maker);
      if (!ends) continue;
      yield open;
      open = undefined;
    }
  }
  if (open !== undefined) yield open;
}

interface Piece {
  readonly piece: string;
  /** Line feeds of the leaf before it. */
  readonly offset: number;
  /** A line feed follows. */
  readonly ends: boolean;
}

function* piecesOf({ text = '' }: Chunk): Generator<Piece> {
  const pieces = text.split('\n');
  for (const [offset, piece] of pieces.entries()) {
    const ends = offset < pieces.length - 1;
    if (ends || piece !== '') yield { piece, offset, ends };
  }
}

function* leavesOf(chunk: Chunk): Generator<Chunk> {
  if (chunk.text !== undefined) yield chunk;
  else for (const child of chunk.children) yield* leavesOf(child);
}
