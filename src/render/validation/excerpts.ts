/** Short quotations of rendered texts, for whoever reads why a test failed. */

/** Characters of one quoted line. */
const LONGEST = 160;
/** Lines of one quotation. */
const MOST_LINES = 3;

/** Line of a position in a text, counted from 1. */
export const lineAt = (text: string, index: number): number => {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) {
    line += 1;
  }
  return line;
};

/** The lines of these positions, which ascend; each once and no more than three. */
export const linesAt = (text: string, positions: readonly number[]): string => {
  const firsts = firstOfEachLine(text, positions);
  const quoted = firsts.slice(0, MOST_LINES).map((at) => {
    const start = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1;
    return `line ${lineAt(text, start)}: ${cut(lineFrom(text, start), at - start)}`;
  });
  const surplus = firsts.length - quoted.length;
  return [...quoted, ...(surplus === 0 ? [] : [`and ${surplus} more`])].join('\n');
};

/** Looks at each line once, however many positions it has. */
const firstOfEachLine = (text: string, positions: readonly number[]): readonly number[] => {
  let end = -1;
  return positions.filter((at) => {
    if (at <= end) return false;
    const lineFeed = text.indexOf('\n', at);
    end = lineFeed === -1 ? text.length : lineFeed;
    return true;
  });
};

/** The line that has most of the words of a pattern, or how much there is without any. */
export const likeliestLine = (text: string, pattern: string): string => {
  if (text === '') return 'nothing, it is empty';
  const words = wordsOf(pattern);
  const lines = text.replace(/\n$/, '').split('\n');
  let best = { score: 0, line: 0 };
  for (const [line, content] of lines.entries()) {
    const score = words.reduce((sum, word) => sum + (content.includes(word) ? word.length : 0), 0);
    if (score > best.score) best = { score, line };
  }
  const { score, line } = best;
  const content = lines[line] ?? '';
  if (score === 0) return `nothing like it in ${counted(lines.length, 'line')}`;
  const first = words.map((word) => content.indexOf(word)).filter((at) => at !== -1);
  return `most like it line ${line + 1}: ${cut(content, Math.min(...first))}`;
};

/** Where two texts differ first: the line of each. Undefined when only a line feed at the end differs, or nothing. */
export const firstDifference = (
  expected: string,
  found: string,
): { readonly line: number; readonly expected: string; readonly found: string } | undefined => {
  const [wanted, given] = [linesOf(expected), linesOf(found)];
  const length = Math.max(wanted.length, given.length);
  for (let line = 0; line < length; line += 1) {
    const [one, other] = [wanted[line], given[line]];
    if (one === other) continue;
    const from = one === undefined || other === undefined ? 0 : commonLength(one, other);
    return { line: line + 1, expected: shownLine(one, from), found: shownLine(other, from) };
  }
  return undefined;
};

/** A value that came out of JSON, in one line. */
export const shownValue = (value: unknown): string => cut(JSON.stringify(value), 0);

/** What one could have looked up in a value instead of what is not there. */
export const shownShape = (value: unknown): string => {
  if (Array.isArray(value)) return `a list of ${counted(value.length, 'item')}`;
  if (typeof value !== 'object' || value === null) return shownValue(value);
  const names = Object.keys(value);
  return names.length === 0 ? 'an empty mapping' : cut(`the members ${names.join(', ')}`, 0);
};

const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`;

const linesOf = (text: string): readonly string[] => text.replace(/\n$/, '').split('\n');

const shownLine = (line: string | undefined, from: number): string =>
  line === undefined ? 'the end of the text' : line === '' ? 'an empty line' : cut(line, from);

const lineFrom = (text: string, start: number): string => {
  const end = text.indexOf('\n', start);
  return text.slice(start, end === -1 ? undefined : end);
};

/** At most 160 characters of a line, around what matters in it. */
const cut = (line: string, at: number): string => {
  if (line.length <= LONGEST) return line;
  const from = Math.max(0, Math.min(at - LONGEST / 4, line.length - LONGEST));
  const to = from + LONGEST;
  return `${from > 0 ? '…' : ''}${line.slice(from, to)}${to < line.length ? '…' : ''}`;
};

/** What a regular expression says literally, as far as it is worth a look. */
const wordsOf = (pattern: string): readonly string[] => [
  ...new Set(
    pattern
      .replace(/\(\?\w+\)|\\[A-Za-z]/g, ' ')
      .replace(/\\/g, '')
      .match(/\w{2,}/g) ?? [],
  ),
];

const commonLength = (one: string, other: string): number => {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
};
