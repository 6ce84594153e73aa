import type { ChangeSet } from '../plan/change-set.ts';
import { BASE_CAPABILITIES } from '../plan/classify.ts';
import { sha256 } from '../digest.ts';
import { diff } from '../plan/diff.ts';
import { runtimeState } from '../plan/runtime-state.ts';
import { parsePlan } from '../plan/serialise.ts';
import type { Operation } from '../protocol/protocol.ts';
import type { ReceivedRender } from '../vetting/render-config.ts';
import { EXIT, type Command } from './command.ts';
import { COMPILE_OPTIONS, compileOptions } from './compile-options.ts';
import { hasErrors, renderDirectory, tellProblems, toldAsJson } from './one-shot.ts';

export const diffCommand: Command = {
  name: 'diff',
  arguments: ['DIR1', 'DIR2'],
  summary:
    'Show how a fleet gets from what DIR1 renders to what DIR2 renders: operations, or a reload and why',
  options: COMPILE_OPTIONS,
  run: async ({ positionals, values, terminal }) => {
    const options = await compileOptions(values, terminal);
    const before = await renderDirectory(positionals[0] ?? '', options);
    const after = await renderDirectory(positionals[1] ?? '', options);
    const problems = [...before.problems, ...after.problems];
    const { haproxyVersion } = options;
    const changes =
      before.render && after.render && changesBetween(before.render, after.render, haproxyVersion);
    if (values['output'] === 'json') {
      const told = changes && { haproxyVersion, ...plainly(changes) };
      terminal.out(toldAsJson({ ...told, problems }));
    } else {
      tellProblems(problems, terminal);
      if (changes !== undefined) terminal.out(asText(changes));
    }
    return changes === undefined || hasErrors(problems) ? EXIT.badInput : EXIT.good;
  },
};

const changesBetween = (from: ReceivedRender, to: ReceivedRender, haproxy: string): ChangeSet => {
  const before = parsePlan(from.serialisedPlan, sha256);
  return diff(
    { applied: before, running: before, worker: runtimeState(before), workerOperations: 0 },
    parsePlan(to.serialisedPlan, sha256),
    { ...BASE_CAPABILITIES, haproxy },
  );
};

const plainly = ({ changedFiles, ...changes }: ChangeSet): object => ({
  ...changes,
  changedFiles: [...changedFiles].sort(),
});

const asText = (changes: ChangeSet): string => {
  const { verdict, operations, inPlaceOperations, reasons, changedFiles } = changes;
  const unchanged = operations.length === 0 && changedFiles.size === 0;
  const lines = [
    `verdict: ${verdict === 'files' && unchanged ? 'nothing differs' : verdict}`,
    ...reasons.map(({ cause, message }) => `reload because ${message} (${cause})`),
    ...operations.map((operation) => `operation ${describe(operation)}`),
    ...inPlaceOperations.map((operation) => `before the reload ${describe(operation)}`),
    ...[...changedFiles].sort().map((path) => `file ${path}`),
  ];
  return `${lines.join('\n')}\n`;
};

const describe = (operation: Operation): string => {
  const { kind, ...members } = operation;
  const words = Object.entries(members).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `${kind} ${words.join(' ')}`;
};
