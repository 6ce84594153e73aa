import type { Verdict } from './verdict.ts';

/** One thing that HAProxy said while it checked. */
export interface Alert {
  readonly severity: 'alert' | 'warning';
  /** File and line it points at, as HAProxy was given the path. */
  readonly place: { readonly file: string; readonly line: number } | undefined;
  /** What it names, in order, for example `fe` and `missing` of "Proxy 'fe': unable to find … 'missing'". */
  readonly names: readonly string[];
  /** HAProxy's own words without severity, process id and place; several lines where it wrote several. */
  readonly text: string;
}

/** How a run of the checker ended. */
export interface CheckerRun {
  /** Exit status; `null` when a signal ended it. */
  readonly status: number | null;
  readonly signal: string | null;
  /** Standard error, possibly cut. */
  readonly stderr: string;
}

/** What a run of the checker means, before anybody explains it. */
export type RunVerdict =
  | { readonly result: 'passed' }
  | { readonly result: 'refused'; readonly alerts: readonly Alert[] }
  | Extract<Verdict, { result: 'inconclusive' }>;

const HEAD = /^\[(ALERT|WARNING|NOTICE|DIAG)\]\s*\(\d+\)\s*:\s*(.*)$/;
/** Versions differ in the prefix: `config : `, `(null)` or nothing. */
const SECTION = /^(?:\(null\))?\s*(?:config\s*:\s*)?/;
const PLACE = /^(?:parsing\s*)?\[([^\]\n]+):(\d+)\]\s*:?\s*/i;
const SUMMARY = /^(?:Error\(s\) found in configuration file|Fatal errors found in configuration)/;

/** Reads the alerts and warnings out of what `haproxy -c` printed, in order, without its closing summaries. */
export const parseAlerts = (stderr: string): readonly Alert[] => {
  const messages: { kind: string; lines: string[] }[] = [];
  for (const line of stderr.split('\n')) {
    const head = HEAD.exec(line);
    if (head !== null) messages.push({ kind: head[1] ?? '', lines: [head[2] ?? ''] });
    else if (line.trim() !== '') messages.at(-1)?.lines.push(line.trimEnd());
  }
  return messages
    .filter(({ kind }) => kind === 'ALERT' || kind === 'WARNING')
    .map(({ kind, lines }) => toAlert(kind, lines.join('\n')))
    .filter(({ text }) => !SUMMARY.test(text));
};

const toAlert = (kind: string, message: string): Alert => {
  const body = message.replace(SECTION, '');
  const [whole = '', file, line] = PLACE.exec(body) ?? [];
  const text = body.slice(whole.length);
  return {
    severity: kind === 'ALERT' ? 'alert' : 'warning',
    place: file === undefined ? undefined : { file, line: Number(line) },
    names: namesIn(text),
    text,
  };
};

/** Kinds of objects that HAProxy names in its messages, with the name in quotes behind it. */
const NAMED =
  /\b(?:proxy|frontend|backend|listen|defaults|default_backend|use_backend|server|userlist|peers|resolvers|mailers|ring|log-forward|crt-store|cache|acl|rule|bind|certificate|file)s?:?\s+'([^'\n]+)'/gi;
/** Or it quotes kind and name together: `'server be/a'`, `'bind :443'`. */
const QUOTED_TOGETHER = /'(?:server|bind|listen|frontend|backend)\s+([^'\n]+)'/gi;

const namesIn = (text: string): readonly string[] => [
  ...new Set(
    [...text.matchAll(NAMED), ...text.matchAll(QUOTED_TOGETHER)]
      .sort((a, b) => a.index - b.index)
      .map((match) => match[1] ?? ''),
  ),
];

/** Options of {@link judgeRun}. */
export interface JudgeOptions {
  /** Names of hosts could be looked up. Where they could not, an address that HAProxy calls invalid may be a good name. Default: true. */
  readonly lookUps?: boolean;
}

/**
 * What a run says about the configuration. Only exit status 1, with an alert that points into the configuration or names
 * something in it, and without one that the machine may be to blame for, is a refusal: a valid configuration under a
 * memory limit also exits with 1, and even names a backend.
 */
export const judgeRun = (
  { status, signal, stderr }: CheckerRun,
  { lookUps = true }: JudgeOptions = {},
): RunVerdict => {
  if (status === 0) return { result: 'passed' };
  if (signal !== null) return inconclusive(`the checker was killed by ${signal}`, stderr);
  const alerts = parseAlerts(stderr).filter(({ severity }) => severity === 'alert');
  const machine = alerts.find(({ text }) => blamesTheMachine(text));
  if (machine !== undefined) return inconclusive(machine.text);
  const name = lookUps ? undefined : alerts.map(hostName).find((host) => host !== undefined);
  if (name !== undefined) {
    return inconclusive(
      `${name} cannot be looked up, since checks run without network; write its address`,
    );
  }
  if (status !== 1) return inconclusive(`the checker ended with status ${String(status)}`, stderr);
  if (!alerts.some(pointsAtUs)) return inconclusive(withoutName(stderr), stderr);
  return { result: 'refused', alerts };
};

/** What HAProxy prints where it has no memory for its message is `(null)`. */
const withoutName = (stderr: string): string =>
  /config : \(null\)/.test(stderr)
    ? 'memory ran out, also for the message'
    : 'no alert names what is wrong, as when memory runs out';

const pointsAtUs = ({ place, names }: Alert): boolean => place !== undefined || names.length > 0;

const MACHINE =
  /out of memory|not enough memory|memory (?:allocation|exhausted)|(?:cannot|can't|could not|failed to|unable to) (?:re)?allocate|allocation (?:error|failed|failure)|too many open files|file descriptors?|\bfd limit|\bulimit|permission denied|operation not permitted|no space left/i;
/**
 * HAProxy quotes what it was given, and anybody may call something "out of memory", also with quotes inside: everything
 * from the first quote to the last counts as given. An apostrophe inside a word quotes nothing.
 */
const QUOTED = /(?<!\w)'[^\n]*'(?!\w)|<[^\n]*>/g;

const blamesTheMachine = (text: string): boolean => MACHINE.test(text.replaceAll(QUOTED, "''"));

/** The name in "invalid address: 'log.example.com' in 'log.example.com:514'". */
const hostName = ({ text }: Alert): string | undefined =>
  /invalid address: '((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z][a-z0-9-]*)\.?' in /i.exec(
    text,
  )?.[1];

const LONGEST_CAUSE = 500;

const inconclusive = (reason: string, stderr = ''): RunVerdict => {
  const said = lastWords(stderr);
  const cause = said === '' ? reason : `${reason}: ${said}`;
  return { result: 'inconclusive', cause: cause.slice(0, LONGEST_CAUSE) };
};

/** The last line somebody would want to read. */
const lastWords = (stderr: string): string =>
  stderr
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('[NOTICE]'))
    .at(-1)
    ?.trim() ?? '';
