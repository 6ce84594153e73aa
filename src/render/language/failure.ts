import { nearestName } from '../nearest-name.ts';
import type { ObjectRef } from '../../snapshot/objects.ts';
import type { Problem } from '../../snapshot/problem.ts';

/** A position in a template; line and column count from 1. */
export interface Place {
  readonly source: string;
  readonly line: number;
  readonly column: number;
}

export interface FailureDetails {
  readonly place?: Place;
  /** What to do about it, in one sentence. */
  readonly nextStep: string;
  /** The expression, as it reads in the template. */
  readonly field?: string;
  /** Stable word; default `TemplateError`. */
  readonly reason?: string;
  /** The object that was looked at, where it is not the one the cell is made for. */
  readonly object?: ObjectRef;
}

/** A template cannot go on. The message never holds a value of an object, and leaves place and object to the details. */
export class TemplateFailure extends Error {
  readonly details: FailureDetails;

  constructor(message: string, details: FailureDetails) {
    super(message);
    this.name = 'TemplateFailure';
    this.details = details;
  }

  /** The same failure with a place and an expression, where it had none yet. */
  at(place: Place, field?: string): TemplateFailure {
    if (this.details.place !== undefined) return this;
    const named = field === undefined ? {} : { field };
    return new TemplateFailure(this.message, { ...named, ...this.details, place });
  }

  /** The same failure with the object that was looked at, where it named none yet. */
  about(object: ObjectRef | undefined): TemplateFailure {
    if (object === undefined || this.details.object !== undefined) return this;
    return new TemplateFailure(this.message, { ...this.details, object });
  }

  /** @param cellObject the object that the cell is made for */
  toProblem(cellObject?: ObjectRef): Problem {
    const { place, nextStep, field, reason = 'TemplateError', object = cellObject } = this.details;
    return {
      severity: 'error',
      reason,
      message: sentence(this.message),
      nextStep,
      ...(object === undefined ? {} : { object }),
      ...(field === undefined ? {} : { field }),
      ...(place === undefined ? {} : { place }),
    };
  }
}

const sentence = (message: string): string => (/[.!?…]$/.test(message) ? message : `${message}.`);

/** `Ingress shop/web`. */
export const nameOf = ({ kind, namespace, name }: ObjectRef): string =>
  `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;

/** Anything thrown, as a failure. Messages of foreign errors are not repeated: they may quote values. */
export const asFailure = (error: unknown, place: Place): TemplateFailure => {
  if (error instanceof TemplateFailure) return error.at(place);
  if (error instanceof RangeError) {
    return new TemplateFailure(
      'the template recurses too deeply or makes a value that is too large',
      {
        place,
        nextStep: 'End the recursion, or make the value smaller.',
      },
    );
  }
  throw error;
};

/** A hint at the most similar known name, or nothing. */
export const nearest = (name: string, known: Iterable<string>): string => {
  const best = nearestName(name, [...known].sort());
  return best === undefined ? '' : `; did you mean "${best}"?`;
};
