import { chunkTexts } from '../cells/chunk.ts';
import type { Provenance } from '../render/render.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Alert } from './alerts.ts';
import type { Checkable } from './verdict.ts';

/** How a refusal is told. */
export interface Explanation {
  /** HAProxy's alerts with the place each comes from, one a line. */
  readonly message: string;
  readonly problems: readonly Problem[];
}

/** Options of {@link explain}. */
export interface ExplainOptions {
  /** Directory the checker saw the files in; it is taken out of the messages. Without a slash at the end. */
  readonly directory: string;
}

const MOST_ALERTS = 20;
/** Characters of one alert. */
const MOST_WORDS = 2000;

/**
 * Leads HAProxy's alerts back to the template line and the object that printed the line they are about. An alert
 * without a line is led back by the names in it. Reads the text of the configuration only for those.
 */
export const explain = (
  alerts: readonly Alert[],
  render: Checkable,
  { directory }: ExplainOptions,
): Explanation => {
  const told = distinct(alerts).slice(0, MOST_ALERTS);
  const problems = told.map((alert): Problem => {
    const line = configLine(alert, render, directory);
    const from = line === undefined ? undefined : render.provenance(line);
    const words = shortened(alert.text.replaceAll(`${directory}/`, '').trim());
    return {
      severity: 'error',
      reason: 'RefusedByHAProxy',
      message: `HAProxy refuses ${placeOf(alert, line, { render, directory })}: ${words}`,
      nextStep: nextStep(from, line !== undefined),
      ...(from?.object !== undefined && { object: from.object }),
      ...placeIn(from, line, render),
    };
  });
  return { message: problems.map(({ message }) => message).join('\n'), problems };
};

/** HAProxy may list every keyword it knows. */
const shortened = (words: string): string =>
  words.length <= MOST_WORDS ? words : `${words.slice(0, MOST_WORDS)}…`;

/** 3.4 says some things twice, the second time with more words. */
const distinct = (alerts: readonly Alert[]): readonly Alert[] =>
  alerts.filter(
    (alert, index) =>
      !alerts.some(
        (other, at) =>
          at !== index &&
          other.place?.line === alert.place?.line &&
          other.text.startsWith(alert.text) &&
          (other.text.length > alert.text.length || at < index),
      ),
  );

const placeIn = (
  from: Provenance | undefined,
  line: number | undefined,
  render: Checkable,
): Pick<Problem, 'place'> => {
  if (from !== undefined) return { place: { source: from.template, line: from.line } };
  return line === undefined ? {} : { place: { source: render.plan.config.path, line } };
};

const nextStep = (from: Provenance | undefined, known: boolean): string => {
  if (from?.object !== undefined) {
    const { kind, namespace, name } = from.object;
    return `Change ${kind} ${namespace}/${name}, or line ${from.line} of template ${from.template}.`;
  }
  if (from !== undefined) return `Change line ${from.line} of template ${from.template}.`;
  return known
    ? 'Look at that line of the rendered configuration and change what prints it.'
    : 'Look for these names in the rendered configuration; what changed last is the likely cause.';
};

interface Context {
  readonly render: Checkable;
  readonly directory: string;
}

const placeOf = (
  alert: Alert,
  line: number | undefined,
  { render, directory }: Context,
): string => {
  if (alert.place !== undefined) {
    return `${alert.place.file.replace(`${directory}/`, '')} line ${alert.place.line}`;
  }
  return line === undefined ? 'the configuration' : `${render.plan.config.path} line ${line}`;
};

const configLine = (alert: Alert, render: Checkable, directory: string): number | undefined => {
  const config = render.plan.config.path;
  if (alert.place === undefined) return lineOfNames(alert, render);
  const { file, line } = alert.place;
  return file === `${directory}/${config}` || file === config ? line : undefined;
};

/**
 * Where the things that an alert names stand. The last name is tried first: of a proxy and the backend it looks for in
 * vain, the line that asks for the backend is the one to mend.
 */
const lineOfNames = ({ names }: Alert, render: Checkable): number | undefined => {
  const text = render.files.get(render.plan.config.path)?.text;
  if (text === undefined || names.length === 0) return undefined;
  const lines = linesOf(chunkTexts(text));
  const wanted = names.flatMap((name) => name.split('/')).filter((name) => name !== '');
  const section = wanted[0] ?? '';
  const start = lines.findIndex((line) => isSection(line, section));
  if (start === -1) return lineWith(lines, wanted.at(-1) ?? '', 0);
  const named = wanted.length > 1 ? lineWith(lines, wanted.at(-1) ?? '', start + 1) : undefined;
  return named ?? start + 1;
};

const isSection = (line: string, name: string): boolean => {
  const [keyword = '', second] = line.split(/[\s#]+/);
  return (
    /^(?:frontend|backend|listen|defaults|userlist|peers|resolvers|cache|ring)$/.test(keyword) &&
    second === name
  );
};

const lineWith = (lines: readonly string[], word: string, from: number): number | undefined => {
  const found = lines.findIndex((line, index) => index >= from && wordsOf(line).includes(word));
  return found === -1 ? undefined : found + 1;
};

const wordsOf = (line: string): string[] => line.trim().split(/[\s"']+/);

const linesOf = (texts: Iterable<string>): string[] => [...texts].join('').split('\n');
