/** Explanations as text for a terminal. */
import type { LineExplanation } from '../render/explain-line.ts';
import type { LineRange, ObjectExplanation } from '../render/explain-object.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import { describeProblem } from '../sinks/log-problems.ts';
import { printable } from './printable.ts';

const SECRET = '(not shown: the file holds secrets)';

/** What made a line. */
export const lineAsText = (explanation: LineExplanation): string => {
  const { file, line, text = SECRET, printedBy, objects } = explanation;
  const places = printedBy.map((place, index) => {
    const how = index === 0 ? 'printed by' : 'reached from';
    return `${how.padEnd(12)} ${place.template}:${place.line}`;
  });
  const behind = objects.map(({ object, role }) =>
    role === 'made' ? `made for     ${nameOf(object)}` : `depends on   ${nameOf(object)}`,
  );
  return joined([
    `${file}:${line}`,
    `  ${text}`,
    ...(places.length === 0 ? ['no template line is known'] : places),
    ...(behind.length === 0 ? ['the same for all objects'] : behind),
  ]);
};

/** What an object made, and what is wrong with it. */
export const objectAsText = (explanation: ObjectExplanation): string => {
  const { object, lines, problems, silence } = explanation;
  const wrong = problems.map((problem) => `${problem.severity}: ${describeProblem(problem)}`);
  const nothing = lines.length === 0 ? [`It made nothing. ${silence ?? ''}`.trim()] : [];
  return joined([
    nameOf(object),
    ...wrong,
    ...nothing,
    ...lines.flatMap((range) => ['', ...rangeLines(range)]),
  ]);
};

const rangeLines = (range: LineRange): readonly string[] => {
  const { file, from, to, role, text, printedBy } = range;
  const lines = from === to ? `${file}:${from}` : `${file}:${from}-${to}`;
  return [
    role === 'made' ? lines : `${lines} (depends on it)`,
    ...printedBy.map((place) => `printed by ${place}`),
    ...(text ?? [SECRET]).map((line) => (line === '' ? '' : `  ${line}`)),
  ];
};

/** Names too come from objects, and from manifests that no API server has seen. */
const joined = (lines: readonly string[]): string =>
  [...lines.map((line) => printable(line).replaceAll('\n', ' ')), ''].join('\n');

const nameOf = ({ kind, namespace, name }: ObjectRef): string =>
  [kind, ...(namespace === '' ? [] : [namespace]), name].join('/');
