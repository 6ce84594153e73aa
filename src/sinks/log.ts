import type { GatePhase } from '../gate/verdict.ts';
import type { Notification } from '../ports.ts';
import type { AgentState } from '../protocol/answers.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { commitMs } from './change-latency.ts';
import type { LogLine } from './log-line.ts';
import { describeProblem, OpenProblems } from './log-problems.ts';

/** What lines depend on besides their event. */
interface Memory {
  /** Configuration whose first snapshot is awaited. */
  syncing: boolean;
  phase: GatePhase;
  /** Keys of pods that nothing was ever applied to. */
  readonly bare: Set<string>;
}

/**
 * Returns what turns each event into the lines that tell a person what happened; nothing for what only machines care about.
 * A problem that lasts is told once: again only after it was gone, which is told as well.
 */
export const createLog = (): ((event: Notification) => readonly LogLine[]) => {
  const open = new OpenProblems();
  const memory: Memory = { syncing: true, phase: 'open', bare: new Set() };
  return (event) => {
    const told = lines[event.type] as
      ((event: Notification, memory: Readonly<Memory>) => readonly LogLine[]) | undefined;
    const result = [...(told?.(event, memory) ?? []), ...problemLines(event, open)];
    remember(memory, event);
    return result;
  };
};

const remember = (memory: Memory, event: Notification): void => {
  if (event.type === 'ConfigLoaded') memory.syncing = true;
  else if (event.type === 'Snapshot') memory.syncing = false;
  else if (event.type === 'GateChanged') memory.phase = event.phase;
  else if (event.type === 'AgentState' && isBare(event.state)) memory.bare.add(event.pod.key);
  else if (event.type === 'AgentState' || event.type === 'PodGone') {
    memory.bare.delete(event.pod.key);
  }
};

const isBare = ({ roles }: AgentState): boolean => roles.applied === null && roles.running === null;

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

const changedLine = (snapshot: Snapshot): LogLine =>
  line('info', `changed: ${describeChanges(snapshot.changes)}`, {
    version: snapshot.version,
    changes: snapshot.changes.length,
  });

/** Lines for the problems that an event brings or ends. */
const problemLines = (event: Notification, open: OpenProblems): readonly LogLine[] => {
  switch (event.type) {
    case 'SourceProblems':
      return open.update('source', event.problems);
    case 'ConfigRefused':
      return open.update('config', event.problems);
    case 'ConfigLoaded':
      return open.update('config', []);
    case 'Rendered':
      return [...open.update('failure', []), ...open.update('render', event.render.problems)];
    case 'RenderFailed':
      return open.update('failure', event.failure.problems);
    case 'Checked': {
      const { verdict } = event.checked;
      if (verdict.result === 'inconclusive') return [];
      return open.update('gate', verdict.result === 'refused' ? perLine(verdict.problems) : []);
    }
    default:
      return [];
  }
};

/** One problem for each template line and object: a snippet that is printed in two frontends is told once. */
const perLine = (problems: readonly Problem[]): readonly Problem[] => {
  const kept = new Map<string, Problem>();
  for (const problem of problems) {
    const { place, object } = problem;
    const key = JSON.stringify(place === undefined ? [problem.message] : [place, object]);
    if (!kept.has(key)) kept.set(key, problem);
  }
  return [...kept.values()];
};

type Of<T extends Notification['type']> = Extract<Notification, { type: T }>;
type Lines = {
  readonly [T in Notification['type']]?: (
    event: Of<T>,
    memory: Readonly<Memory>,
  ) => readonly LogLine[];
};

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
  Snapshot: ({ snapshot }, { syncing }) => [syncing ? syncedLine(snapshot) : changedLine(snapshot)],
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
  GateChanged: ({ phase, accepted }, memory) => [
    line(
      phase === memory.phase ? 'debug' : phase === 'open' ? 'info' : 'warn',
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
  Applied: (event, { bare }) =>
    event.outcome.outcome === 'rejected' ? [] : [appliedLine(event, bare.has(event.pod.key))],
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
      : line('error', `${pod.name}: reload of ${short(planId)} failed: ${oneLine(message)}`, {
          pod: pod.name,
          planId,
        }),
  ],
  ApplyFailed: ({ pod, cause, message, retryInMs }) => [
    line('error', `${pod.name}: ${cause}: ${oneLine(message)}; next try in ${ms(retryInMs)}`, {
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
  WriteFailed: ({ problem, outcome, repeated }) =>
    repeated ? [] : [line('warn', describeProblem(problem), { reason: problem.reason, outcome })],
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
    const cause = oneLine(verdict.cause);
    return [line('warn', `checked ${short(planId)}: no verdict: ${cause}`, fields)];
  }
  // The problems that follow hold HAProxy's words, with the template line each comes from.
  const words = verdict.problems.length === 0 ? `: ${oneLine(verdict.message)}` : '';
  return [line('error', `checked ${short(planId)}: refused in ${ms(durationMs)}${words}`, fields)];
};

const appliedLine = (event: Of<'Applied'>, isFirst: boolean): LogLine => {
  const { pod, planId, verdict, outcome, operations, durationMs } = event;
  const isUnknown = event.causes.length === 1 && event.causes[0] === 'unknown-baseline';
  const reasons = isFirst && isUnknown ? ['first apply'] : event.reasons;
  return line('info', `${pod.name}: ${describeApply(event, reasons.join('; '))}`, {
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

const describeApply = (
  { planId, reverted, outcome, operations, durationMs }: Of<'Applied'>,
  reasons: string,
): string => {
  const took = ms(durationMs);
  if (outcome.outcome === 'scheduled') {
    const what = reverted ? 'old files of' : 'files of';
    return `${what} ${short(planId)} written in ${took}, reload in ${ms(outcome.reloadInMs ?? 0)} (${reasons})`;
  }
  const how = {
    runtime: `by ${plural(operations, 'runtime operation')}, no reload`,
    files: 'files only, no reload',
    noop: 'nothing to do',
    reload: `by a reload (${reasons})`,
    rejected: 'rejected',
  }[outcome.outcome];
  return `${reverted ? 'reverted to' : 'applied'} ${short(planId)} ${how} in ${took}`;
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
/** Alerts of HAProxy come one a line. */
const oneLine = (text: string): string =>
  text
    .split('\n')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' | ');
