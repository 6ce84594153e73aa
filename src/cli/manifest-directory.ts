import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CommandError, EXIT } from './command.ts';

/** The absolute path of a directory that the user named. Throws CommandError when it is none. */
export const manifestDirectory = async (path: string): Promise<string> => {
  const directory = resolve(path);
  const found = await stat(directory).catch(() => undefined);
  if (found?.isDirectory() === true) return directory;
  throw new CommandError(
    `${path} is no directory; name one that holds Kubernetes manifests (YAML or JSON)`,
    EXIT.badInput,
  );
};
