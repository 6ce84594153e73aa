import type { Problem } from '../snapshot/problem.ts';
import type { LogLine } from './log-line.ts';

/** Lists of problems that are told anew as a whole each time. */
export type ProblemList = 'source' | 'config' | 'render' | 'failure' | 'gate';

interface Told {
  /** What each problem of the newest list reads like: of thousands most are those of the list before. */
  readonly texts: ReadonlyMap<Problem, string>;
  readonly open: ReadonlySet<string>;
}

const NOTHING: Told = { texts: new Map(), open: new Set() };

/** Remembers which problems are open, so that one that lasts is told once, and one that is over is told too. */
export class OpenProblems {
  readonly #lists = new Map<ProblemList, Told>();

  /** Takes the newest state of a list; returns lines for what is new in it and for what left it. */
  update(list: ProblemList, problems: readonly Problem[]): readonly LogLine[] {
    const before = this.#lists.get(list) ?? NOTHING;
    const texts = new Map(
      problems.map((problem) => [problem, before.texts.get(problem) ?? describeProblem(problem)]),
    );
    this.#lists.set(list, { texts, open: new Set(texts.values()) });
    return [...overLines(before.texts, texts), ...newLines(before.open, texts)];
  }
}

const newLines = (
  open: ReadonlySet<string>,
  texts: ReadonlyMap<Problem, string>,
): readonly LogLine[] => {
  const told = new Set(open);
  return [...texts].flatMap(([problem, text]) => {
    if (told.has(text)) return [];
    told.add(text);
    return [problemLine(problem)];
  });
};

/** A problem that now reads another way, on another line for example, is not over. */
const overLines = (
  before: ReadonlyMap<Problem, string>,
  after: ReadonlyMap<Problem, string>,
): readonly LogLine[] => {
  const open = new Set(after.values());
  const gone = [...before].filter(([, text]) => !open.has(text));
  if (gone.length === 0) return [];
  const subjects = new Set([...after.keys()].map((problem) => subjectOf(problem)));
  return gone.flatMap(([problem]) => {
    const subject = subjectOf(problem);
    if (subjects.has(subject)) return [];
    subjects.add(subject);
    return [{ level: 'info', message: `fixed: ${subject}`, fields: fieldsOf(problem) }];
  });
};

/** One problem as a line: object, field, reason, what is wrong, what to do. */
const problemLine = (problem: Problem): LogLine => ({
  level: problem.severity === 'error' ? 'error' : 'warn',
  message: describeProblem(problem),
  fields: fieldsOf(problem),
});

const fieldsOf = ({ reason, object, field, place }: Problem): LogLine['fields'] => ({
  reason,
  ...(object === undefined ? {} : { object }),
  ...(field === undefined ? {} : { field }),
  ...(place === undefined ? {} : { place }),
});

/** The same as text, for command output. */
export const describeProblem = (problem: Problem): string => {
  const { place, message, nextStep } = problem;
  const position = [place?.line, place?.column].filter((number) => number !== undefined);
  return `${subjectOf(problem, position)}: ${message} ${nextStep}`.trim();
};

/** What a problem is about: place (with a position, if given), object, field and reason. */
const subjectOf = (
  { object, field, place, reason }: Problem,
  position: readonly number[] = [],
): string =>
  [
    place === undefined ? '' : [place.source, ...position].join(':'),
    object === undefined
      ? ''
      : `${object.kind} ${object.namespace === '' ? '' : `${object.namespace}/`}${object.name}`,
    field ?? '',
    reason,
  ]
    .filter((part) => part !== '')
    .join(': ');
