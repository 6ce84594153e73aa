import { stat } from 'node:fs/promises';
import type { Problem } from '../snapshot/problem.ts';

/** The directory of manifests is gone, or not there yet. */
export const absentDirectory = (directory: string): Problem => ({
  severity: 'error',
  reason: 'DirectoryNotFound',
  message: `The directory ${directory} does not exist.`,
  nextStep: 'Create it again; until then the last content stays in use.',
  place: { source: directory },
});

/** The operating system refuses to tell of changes. */
export const unwatchedDirectory = (directory: string, error: unknown): Problem => ({
  severity: 'warning',
  reason: 'DirectoryNotWatched',
  message: `Changes below ${directory} are noticed late, because it cannot be watched (${codeOf(error)}).`,
  nextStep:
    'Raise the limit of inotify watches (fs.inotify.max_user_watches), or use fewer folders.',
  place: { source: directory },
});

/** A file or folder that exists and cannot be read. */
export const unreadableFile = (path: string, error: unknown): Problem => ({
  severity: 'error',
  reason: 'FileUnreadable',
  message: `${path} cannot be read (${codeOf(error)}).`,
  nextStep: 'Check its permissions; until then its last good content stays in use.',
  place: { source: path },
});

/** Largest file in bytes that is read. */
export const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** A file nobody means as a manifest. */
export const oversizedFile = (path: string): Problem => ({
  severity: 'error',
  reason: 'FileTooLarge',
  message: `${path} is larger than ${MAX_FILE_BYTES} bytes and is not read.`,
  nextStep: 'Split it into several files.',
  place: { source: path },
});

/** Whether an error of the file system says that nothing is there. */
export const isAbsence = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error));

/** Whether anything is at a path. */
export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: unknown) => !isAbsence(error),
  );

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : 'unknown error';
