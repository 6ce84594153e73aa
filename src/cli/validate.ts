import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { map } from 'rxjs';
import { createChecker, type HaproxyChecker } from '../gate/checker.ts';
import type { Checkable, Verdict } from '../gate/verdict.ts';
import type { Problem } from '../snapshot/problem.ts';
import { EXIT, type Command, type Terminal } from './command.ts';
import { COMPILE_OPTIONS, compileOptions } from './compile-options.ts';
import { defaultCertificate } from './default-certificate.ts';
import { findHaproxy } from './haproxy-binary.ts';
import { hasErrors, renderDirectory, tellProblems, toldAsJson, untilStopped } from './one-shot.ts';

export const validate: Command = {
  name: 'validate',
  arguments: ['DIR'],
  summary: 'Render a directory of manifests and have HAProxy check the result',
  details:
    'Exit status 1 when anything is wrong with the input, or HAProxy refuses the result; 2 when HAProxy could not judge.',
  options: {
    ...COMPILE_OPTIONS,
    haproxy: {
      type: 'string',
      value: 'PATH',
      help: 'the HAProxy that checks (default $HAPROXY, else the one on PATH)',
    },
  },
  run: async ({ positionals, values, terminal }) => {
    const named = values['haproxy'];
    const haproxy = await findHaproxy(
      typeof named === 'string' ? named : undefined,
      terminal.environment,
    );
    const scratch = await mkdtemp(join(tmpdir(), 'haptic-'));
    try {
      const options = {
        ...(await compileOptions({ 'haproxy-version': haproxy.version, ...values }, terminal)),
        defaultCertificate: await defaultCertificate(join(scratch, 'default.pem')),
      };
      const { render, problems } = await renderDirectory(positionals[0] ?? '', options);
      const { signal } = terminal;
      const verdict =
        render &&
        (await judge(render, createChecker({ binary: haproxy.path, dir: scratch }), signal));
      return report(problems, verdict, { terminal, json: values['output'] === 'json' });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
};

const NO_VERDICT: Verdict = { result: 'inconclusive', cause: 'the check gave no verdict' };

const judge = async (
  render: Checkable,
  checker: HaproxyChecker,
  signal: AbortSignal,
): Promise<Verdict> => {
  try {
    const verdict$ = checker.check(render).pipe(map(({ verdict }) => verdict));
    return await untilStopped(verdict$, signal, NO_VERDICT);
  } finally {
    await checker.close();
  }
};

const report = (
  problems: readonly Problem[],
  verdict: Verdict | undefined,
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
): number => {
  const all = [...problems, ...(verdict?.result === 'refused' ? verdict.problems : [])];
  if (json) terminal.out(toldAsJson({ verdict, problems: all }));
  else {
    tellProblems(all, terminal);
    terminal.out(`${describe(verdict, problems)}\n`);
  }
  if (verdict?.result === 'inconclusive') return EXIT.couldNotRun;
  return hasErrors(all) || verdict?.result !== 'passed' ? EXIT.badInput : EXIT.good;
};

const describe = (verdict: Verdict | undefined, problems: readonly Problem[]): string => {
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  if (verdict === undefined) return `${counted(errors)} in the input; nothing was rendered`;
  if (verdict.result === 'passed') {
    return errors === 0
      ? 'HAProxy accepts the result'
      : `${counted(errors)} in the input; HAProxy accepts the rest`;
  }
  return verdict.result === 'refused'
    ? `HAProxy refuses the result:\n${verdict.message}`
    : `HAProxy could not judge: ${verdict.cause}`;
};

const counted = (errors: number): string =>
  `${String(errors)} ${errors === 1 ? 'error' : 'errors'}`;
