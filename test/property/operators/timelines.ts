import fc from 'fast-check';
import { asyncScheduler } from 'rxjs';

/** How often a property runs: 200 times, with `HAPTIC_LONG=1` 3000 times. fast-check prints the seed when it fails. */
export const runs: fc.Parameters<unknown> = {
  numRuns: process.env['HAPTIC_LONG'] === '1' ? 3000 : 200,
};

/** A letter of a timeline with its place in the order of arrival and its frame. */
export interface Arrival {
  readonly id: number;
  readonly letter: string;
  readonly at: number;
}

/** A random source: a marble diagram, what arrives in it, and when it completes. */
export interface Timeline {
  readonly diagram: string;
  readonly arrivals: readonly Arrival[];
  readonly end: number;
}

/** Random marble diagrams over `letters`, with quiet stretches, single values and synchronous bursts, that complete. */
export function timelines(letters: string): fc.Arbitrary<Timeline> {
  const letter = fc.constantFrom(...Array.from(letters));
  const token = fc.oneof(
    { weight: 4, arbitrary: letter },
    { weight: 3, arbitrary: fc.constant('-') },
    { weight: 1, arbitrary: fc.nat({ max: 12 }).map((length) => '-'.repeat(length)) },
    {
      weight: 1,
      arbitrary: fc
        .array(letter, { minLength: 2, maxLength: 4 })
        .map((burst) => `(${burst.join('')})`),
    },
  );
  return fc.array(token, { maxLength: 30 }).map((tokens) => read(`${tokens.join('')}|`));
}

/** Reads a diagram as `TestScheduler` does: every character takes a frame, a group happens at its first. */
function read(diagram: string): Timeline {
  const arrivals: Arrival[] = [];
  let group: number | undefined;
  Array.from(diagram).forEach((character, frame) => {
    if (character === '(') group = frame;
    else if (character === ')') group = undefined;
    else if (/\w/.test(character)) {
      arrivals.push({ id: arrivals.length, letter: character, at: group ?? frame });
    }
  });
  return { diagram, arrivals, end: diagram.length - 1 };
}

/** The virtual time, in frames. */
export const frame = (): number => asyncScheduler.now();

/** One run of an inner observable. */
export interface Run {
  readonly id: number;
  readonly from: number;
  to: number | undefined;
  completed: boolean;
}
