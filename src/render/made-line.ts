import type { ObjectRef } from '../snapshot/objects.ts';

/** A line of a template, counted from 1. */
export interface TemplateLine {
  readonly template: string;
  readonly line: number;
}

/** An element of `routes`, for which a cell is made. */
export interface RouteElement {
  readonly collection: 'hosts' | 'backends' | 'certificates';
  readonly key: string;
}

/** What the cell that made a line is made for. */
export interface LineMaker {
  readonly object: ObjectRef | undefined;
  readonly element: RouteElement | undefined;
}

/** One line of a file of a render, and what made it. */
export interface MadeLine {
  /** Without its line feed. */
  readonly text: string;
  /** The template line that printed or declared it, then the includes and calls that led there, from inside out. */
  readonly printedBy: readonly TemplateLine[];
  /** Cells that made it: none for a line that is the same for all objects, several where cells agree. */
  readonly makers: readonly LineMaker[];
}
