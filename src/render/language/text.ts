import type { ObjectRef } from '../../snapshot/objects.ts';

/** An include, or the call of a macro, that led to what was printed: where it stands, and what led there. */
export interface Inclusion {
  readonly source: string;
  /** Counted from 1. */
  readonly line: number;
  readonly around: Inclusion | undefined;
}

/** From this line of a text on (counted from 0), the template lines that printed it. */
export interface Mark {
  readonly line: number;
  readonly source: string;
  /** Counted from 1. */
  readonly templateLine: number;
  /** True: the following lines come from the following template lines; false: all from this one. */
  readonly advances: boolean;
  /** The innermost include or call around it; undefined in a template that makes a file. */
  readonly via: Inclusion | undefined;
}

/**
 * A string that may be printed as it is: the administrator's own literal, or what an emitter made. All other strings are
 * data. The brand survives `~`, `join` and captures only when every part has it.
 */
export class Text {
  readonly value: string;
  readonly marks: readonly Mark[];

  constructor(value: string, marks: readonly Mark[] = NO_MARKS) {
    this.value = value;
    this.marks = marks;
  }

  /** For a stray conversion to a primitive; templates themselves never convert. */
  toString(): string {
    return this.value;
  }
}

const NO_MARKS: readonly Mark[] = [];

/** Text without characters. */
export const EMPTY_TEXT = new Text('');

/** The value without its brand. */
export const plain = (value: unknown): unknown => (value instanceof Text ? value.value : value);

/** The string behind a branded or a plain one, undefined for anything else. */
export const stringOf = (value: unknown): string | undefined => {
  const bare = plain(value);
  return typeof bare === 'string' ? bare : undefined;
};

/** A brand for the result exactly if all its parts have one; numbers and booleans count as branded. */
export const joinBrands = (parts: readonly unknown[], separator: string): string | Text => {
  const joined = parts.map((part) => String(plain(part))).join(separator);
  return parts.every((part) => typeof part !== 'string') ? new Text(joined) : joined;
};

/** Marks of one leaf, and the object its cell was made for: what provenance is read from. */
export class Origin {
  readonly marks: readonly Mark[];
  readonly object: ObjectRef | undefined;

  constructor(marks: readonly Mark[], object: ObjectRef | undefined) {
    this.marks = marks;
    this.object = object;
  }
}
