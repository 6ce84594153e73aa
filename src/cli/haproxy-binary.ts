import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { CommandError } from './command.ts';

export interface HaproxyBinary {
  readonly path: string;
  /** For example `3.0.11`. */
  readonly version: string;
}

const OLDEST = 3;

/**
 * The HAProxy to run: the one named by flag or by `$HAPROXY`, else the one on PATH; 3.0 or newer. Throws CommandError that
 * says how to get one.
 */
export const findHaproxy = async (
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<HaproxyBinary> => {
  const explicit = named ?? environment['HAPROXY'];
  const path = explicit ?? (await onPath(environment['PATH'] ?? ''));
  if (path === undefined) {
    throw new CommandError(
      'there is no haproxy on PATH; install HAProxy 3.0 or newer, or name one with --haproxy or HAPROXY=…',
    );
  }
  const version = await versionOf(path);
  if (Number(version.split('.')[0]) < OLDEST) {
    throw new CommandError(
      `${path} is HAProxy ${version}; HAPTIC needs 3.0 or newer: name another one with --haproxy or HAPROXY=…`,
    );
  }
  return { path, version };
};

const versionOf = async (path: string): Promise<string> => {
  const answer = await promisify(execFile)(path, ['-v'], { timeout: 10_000, env: {} }).catch(
    (error: unknown) => {
      throw new CommandError(`cannot run ${path}: ${reasonOf(error)}`, undefined, { cause: error });
    },
  );
  const version = /version (\d+\.\d+(?:\.\d+)?)/.exec(answer.stdout)?.[1];
  if (version === undefined) throw new CommandError(`${path} does not look like HAProxy`);
  return version;
};

/** Why a program could not be run, without the command line and the code that Node puts around it. */
const reasonOf = (error: unknown): string => {
  const { code, signal } = error as { readonly code?: unknown; readonly signal?: unknown };
  if (code === 'ENOENT') return 'no such file';
  if (code === 'EACCES') return 'it is not executable';
  if (typeof code === 'number') return `it ended with status ${String(code)}`;
  if (typeof signal === 'string') return `it ended with signal ${signal}`;
  return error instanceof Error ? error.message : String(error);
};

const onPath = async (path: string): Promise<string | undefined> => {
  for (const folder of path.split(delimiter).filter((part) => part !== '')) {
    const candidate = join(folder, 'haproxy');
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return candidate;
  }
  return undefined;
};
