import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';

/** A problem before it is known whose it is. */
export interface Complaint {
  readonly reason: string;
  readonly field: string;
  readonly message: string;
  readonly nextStep: string;
  /** Default: `error`. */
  readonly severity?: Problem['severity'];
}

/** Where a reader of an object puts what it finds wrong. */
export type Report = (complaint: Complaint) => void;

/** The complaint as a problem of `object`. */
export const problemOf = (object: ObjectRef, complaint: Complaint): Problem => ({
  severity: 'error',
  ...complaint,
  object,
});

const SHOWN = 60;

/** An untrusted value as it may stand in a message: on one line, escaped, at most 60 characters of it. */
export const shown = (value: unknown): string => {
  if (typeof value !== 'string') return `a value of type ${value === null ? 'null' : typeof value}`;
  const text = JSON.stringify(value.slice(0, SHOWN));
  return value.length > SHOWN ? `${text}… (${value.length} characters)` : text;
};
