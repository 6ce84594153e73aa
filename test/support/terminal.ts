import { runCommand } from '../../src/cli/command.ts';
import { diffCommand } from '../../src/cli/diff.ts';
import { explain } from '../../src/cli/explain.ts';
import { render } from '../../src/cli/render.ts';
import { testCommand } from '../../src/cli/test.ts';
import { up } from '../../src/cli/up.ts';
import { validate } from '../../src/cli/validate.ts';

/** What a command printed, and its exit status. */
export interface Printed {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** Runs `haptic` inside this process, with no environment but the one given. */
export const haptic = async (
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Printed> => {
  let [out, err] = ['', ''];
  const commands = [up, render, diffCommand, validate, testCommand, explain];
  const program = { commands, version: '1.2.3' };
  const status = await runCommand(program, words, {
    out: (text) => (out += text),
    err: (text) => (err += text),
    isTerminal: false,
    environment,
    signal: new AbortController().signal,
  });
  return { status, out, err };
};
