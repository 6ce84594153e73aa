import type { Notification } from '../ports.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { commitMs } from './change-latency.ts';

/** One line of the log. `fields` holds ids, counts and durations, never content. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Returns what turns each event into the lines that tell a person what happened; nothing for what only machines care about.
 * A problem that lasts is told once: again only after it was gone.
 */
export const createLog = (): ((event: Notification) => readonly LogLine[]) => {
  const open = new Map<ProblemList, ReadonlySet<Problem | string>>();
  const unTold = (list: ProblemList, problems: readonly Problem[]): readonly Problem[] => {
    const before = open.get(list);
    // By identity first: of thousands of problems most are those of the render before.
    open.set(list, new Set(problems.flatMap((problem) => [problem, describeProblem(problem)])));
    return problems.filter(
      (problem) => before?.has(problem) !== true && before?.has(describeProblem(problem)) !== true,
    );
  };
  let syncing = true;
  return (event) => {
    if (event.type === 'ConfigLoaded') syncing = true;
    if (event.type === 'Snapshot' && syncing) {
      syncing = false;
      return [syncedLine(event.snapshot)];
    }
    const told = lines[event.type] as ((event: Notification) => readonly LogLine[]) | undefined;
    return [...(told?.(event) ?? []), ...problemLines(event, unTold)];
  };
};

/** The first snapshot of a configuration holds everything: counts say more than its last change. */
const syncedLine = (snapshot: Snapshot): LogLine => {
  const counts = snapshot.resources.map((name) => [name, snapshot.store(name).size] as const);
  const named = counts
    .filter(([, size]) => size > 0)
    .map(([name, size]) => `${String(size)} ${name}`);
  return line('info', `synced: ${named.join(', ') || 'no objects yet'}`, {
    version: snapshot.version,
    objects: Object.fromEntries(counts),
  });
};

/** Lists of problems that are told anew as a whole each time. */
type ProblemList = 'source' | 'config' | 'render';

/** The problems that an event brings and that were not told before. Pure. */
const problemLines = (
  event: Notification,
  unTold: (list: ProblemList, problems: readonly Problem[]) => readonly Problem[],
): readonly LogLine[] => {
  switch (event.type) {
    case 'SourceProblems':
      return unTold('source', event.problems).map(problemLine);
    case 'ConfigRefused':
      return unTold('config', event.problems).map(problemLine);
    case 'ConfigLoaded':
      return unTold('config', []).map(problemLine);
    case 'Rendered':
      return unTold('render', event.render.problems).map(problemLine);
    case 'RenderFailed':
      return unTold('render', event.failure.problems).map(problemLine);
    default:
      return [];
  }
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
  ConfigRefused: () => [line('error', 'configuration refused, the one before stays in force')],
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
  ],
  RenderFailed: ({ failure, durationMs }) => [
    line('error', `render failed in phase ${failure.phase}, what is served stays`, {
      phase: failure.phase,
      durationMs,
    }),
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
  // A rejected apply is told by the failure that follows, with what is done about it.
  Applied: (event) => (event.outcome.outcome === 'rejected' ? [] : [appliedLine(event)]),
  UpToDate: ({ pod, planId }) => [
    line('debug', `${pod.name}: holds ${short(planId)} already`, { pod: pod.name, planId }),
  ],
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
  ObserverFailed: ({ message }) => [
    line('error', `an observer of the pipeline failed: ${message}`),
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
    rejected: 'rejected',
  }[outcome.outcome];
  const what = reverted ? 'reverted to' : 'applied';
  return line('info', `${pod.name}: ${what} ${short(planId)} ${how} in ${ms(durationMs)}`, {
    pod: pod.name,
    planId,
    verdict,
    outcome: outcome.outcome,
    operations,
    reasons,
    durationMs,
    commitMs: commitMs(outcome),
  });
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
