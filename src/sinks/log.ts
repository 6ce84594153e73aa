import type { Notification } from '../ports.ts';
import type { Problem } from '../snapshot/problem.ts';

/** One line of the log. `fields` holds ids, counts and durations, never content. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The lines that tell a person what happened; nothing for what only machines care about. Pure. */
export const logLines = (event: Notification): readonly LogLine[] => {
  const describe = lines[event.type] as ((event: Notification) => readonly LogLine[]) | undefined;
  return describe === undefined ? [] : describe(event);
};

type Of<T extends Notification['type']> = Extract<Notification, { type: T }>;
type Lines = { readonly [T in Notification['type']]?: (event: Of<T>) => readonly LogLine[] };

const line = (
  level: LogLine['level'],
  message: string,
  fields: Readonly<Record<string, unknown>> = {},
): LogLine => ({ level, message, fields });

const lines: Lines = {
  ConfigLoaded: ({ generation, watched }) => [
    line('info', `configuration ${short(generation)} loaded, watching ${watched.join(', ')}`, {
      generation,
    }),
  ],
  ConfigRefused: ({ problems }) => [
    line('error', 'configuration refused, the one before stays in force'),
    ...problems.map(problemLine),
  ],
  SourceProblems: ({ problems }) => problems.map(problemLine),
  Snapshot: ({ snapshot }) => [
    line('info', `changed: ${describeChanges(snapshot.changes)}`, {
      version: snapshot.version,
      changes: snapshot.changes.length,
    }),
  ],
  Rendered: ({ render, durationMs }) => [
    line(
      'info',
      `rendered ${short(render.plan.id)} in ${ms(durationMs)}: ${plural(render.cells.evaluated, 'cell')} evaluated, ${String(render.cells.reused)} reused`,
      {
        planId: render.plan.id,
        durationMs,
        backends: render.plan.backends.size,
      },
    ),
    ...render.problems.map(problemLine),
  ],
  RenderFailed: ({ failure, durationMs }) => [
    line('error', `render failed in phase ${failure.phase}, what is served stays`, {
      phase: failure.phase,
      durationMs,
    }),
    ...failure.problems.map(problemLine),
  ],
  GateChanged: ({ phase, accepted }) => [
    line(
      phase === 'open' ? 'info' : 'warn',
      `gate is ${phase}${accepted === undefined ? '' : `, accepted ${short(accepted)}`}`,
      { phase, accepted },
    ),
  ],
  Checked: ({ checked }) => checkedLines(checked),
  Reverting: ({ refused, to }) => [
    line(
      'warn',
      `reverting pods on ${refused.map(short).join(', ')} to ${to === undefined ? 'their last good tree' : short(to)}`,
      { refused, to },
    ),
  ],
  Applied: (event) => [appliedLine(event)],
  ReloadDone: ({ pod, planId, ok, message, durationMs }) => [
    ok
      ? line('info', `${pod.name}: reloaded ${short(planId)} in ${ms(durationMs)}`, {
          pod: pod.name,
          planId,
          durationMs,
        })
      : line('error', `${pod.name}: reload of ${short(planId)} failed: ${message}`, {
          pod: pod.name,
          planId,
        }),
  ],
  ApplyFailed: ({ pod, cause, message, retryInMs }) => [
    line('error', `${pod.name}: ${cause}: ${message}; next try in ${ms(retryInMs)}`, {
      pod: pod.name,
      cause,
      retryInMs,
    }),
  ],
  DriftFound: ({ pod, kind, details }) => [
    line('warn', `${pod.name}: ${kind} drift: ${details.slice(0, 5).join(', ')}`, {
      pod: pod.name,
      kind,
      count: details.length,
    }),
  ],
  Leadership: ({ leadership }) => [
    leadership.leading
      ? line('info', `leading, epoch ${String(leadership.epoch)}`, { epoch: leadership.epoch })
      : line('info', 'following'),
  ],
  PodGone: ({ pod }) => [line('info', `${pod.name}: gone`, { pod: pod.name })],
  ShuttingDown: () => [line('info', 'shutting down, work in flight ends')],
};

const checkedLines = ({
  planId,
  verdict,
  durationMs,
}: Of<'Checked'>['checked']): readonly LogLine[] => {
  const fields = { planId, verdict: verdict.result, durationMs };
  if (verdict.result === 'passed') {
    return [line('info', `checked ${short(planId)}: passed in ${ms(durationMs)}`, fields)];
  }
  if (verdict.result === 'inconclusive') {
    return [line('warn', `checked ${short(planId)}: no verdict: ${verdict.cause}`, fields)];
  }
  return [
    line('error', `checked ${short(planId)}: HAProxy refuses it: ${verdict.message}`, fields),
    ...verdict.problems.map(problemLine),
  ];
};

const appliedLine = ({
  pod,
  planId,
  verdict,
  reverted,
  outcome,
  operations,
  reasons,
  durationMs,
}: Of<'Applied'>): LogLine => {
  const how = {
    runtime: `by ${plural(operations, 'runtime operation')}, no reload`,
    files: 'files only, no reload',
    noop: 'nothing to do',
    reload: `by a reload (${reasons.join('; ')})`,
    scheduled: `reload in ${ms(outcome.reloadInMs ?? 0)} (${reasons.join('; ')})`,
    rejected: `rejected: ${outcome.error?.message ?? ''}`,
  }[outcome.outcome];
  const what = reverted ? 'reverted to' : 'applied';
  return line(
    outcome.outcome === 'rejected' ? 'error' : 'info',
    `${pod.name}: ${what} ${short(planId)} ${how} in ${ms(durationMs)}`,
    {
      pod: pod.name,
      planId,
      verdict,
      outcome: outcome.outcome,
      operations,
      reasons,
      durationMs,
    },
  );
};

/** One problem as a line: object, field, reason, what is wrong, what to do. */
export const problemLine = (problem: Problem): LogLine =>
  line(problem.severity === 'error' ? 'error' : 'warn', describeProblem(problem), {
    reason: problem.reason,
    ...(problem.object === undefined ? {} : { object: problem.object }),
    ...(problem.field === undefined ? {} : { field: problem.field }),
    ...(problem.place === undefined ? {} : { place: problem.place }),
  });

/** The same as text, for command output. */
export const describeProblem = ({
  object,
  field,
  place,
  message,
  reason,
  nextStep,
}: Problem): string => {
  const where = [
    place === undefined
      ? ''
      : `${place.source}${place.line === undefined ? '' : `:${String(place.line)}`}${place.column === undefined ? '' : `:${String(place.column)}`}`,
    object === undefined
      ? ''
      : `${object.kind} ${object.namespace === '' ? '' : `${object.namespace}/`}${object.name}`,
    field ?? '',
  ].filter((part) => part !== '');
  return `${[...where, reason].join(': ')}: ${message} ${nextStep}`.trim();
};

const describeChanges = (
  changes: readonly {
    readonly resource: string;
    readonly key: string;
    readonly before: unknown;
    readonly after: unknown;
  }[],
): string => {
  if (changes.length === 0) return 'nothing';
  const named = changes.slice(0, 3).map(({ resource, key, before, after }) => {
    const verb = before === undefined ? 'added' : after === undefined ? 'deleted' : 'edited';
    return `${resource} ${key} ${verb}`;
  });
  return changes.length > 3
    ? `${named.join(', ')} and ${String(changes.length - 3)} more`
    : named.join(', ');
};

/** First characters of a digest: enough for people, the fields hold all of it. */
const short = (digest: string): string => digest.slice(0, 10);
const ms = (value: number): string =>
  value >= 1_000 ? `${(value / 1_000).toFixed(1)} s` : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const plural = (count: number, word: string): string =>
  `${String(count)} ${word}${count === 1 ? '' : 's'}`;
