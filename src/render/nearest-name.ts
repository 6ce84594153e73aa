/** Names longer than this are compared by their begin: a person mistypes no more, and an attacker pays for it. */
const MAX_COMPARED = 64;

/**
 * The candidate that a mistyped name most likely means: the one with the fewest edits (insert, delete, replace, swap of
 * neighbours; case does not count), the first of equals; undefined when even that one differs in more than a third.
 */
export const nearestName = (name: string, candidates: Iterable<string>): string | undefined => {
  const given = name.slice(0, MAX_COMPARED).toLowerCase();
  let best: { readonly candidate: string; readonly edits: number } | undefined;
  for (const candidate of candidates) {
    const edits = distance(given, candidate.slice(0, MAX_COMPARED).toLowerCase());
    const limit = Math.max(1, Math.floor(Math.max(given.length, candidate.length) / 3));
    if (edits <= limit && (best === undefined || edits < best.edits)) best = { candidate, edits };
  }
  return best?.candidate;
};

/** Optimal string alignment, row by row. */
const distance = (left: string, right: string): number => {
  let older: readonly number[] = [];
  let above = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const same = left[row - 1] === right[column - 1];
      const swapped = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      current[column] = Math.min(
        cell(above, column) + 1,
        cell(current, column - 1) + 1,
        cell(above, column - 1) + (same ? 0 : 1),
        swapped ? cell(older, column - 2) + 1 : Infinity,
      );
    }
    [older, above] = [above, current];
  }
  return cell(above, right.length);
};

const cell = (row: readonly number[], column: number): number => row[column] ?? Infinity;
