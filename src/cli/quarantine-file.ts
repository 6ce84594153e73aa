import { readFile, rename, writeFile } from 'node:fs/promises';
import {
  catchError,
  defer,
  EMPTY,
  filter,
  from,
  ignoreElements,
  map,
  type Observable,
  skipWhile,
} from 'rxjs';
import { latestWins } from '../operators/latest-wins.ts';
import { isType, type Observer } from '../ports.ts';
import { readStored, type StoredQuarantine } from '../quarantine/stored.ts';

/** Reads what was in quarantine; empty when there is nothing, or nothing that can be read. Never errors. */
export const loadQuarantine = (path: string): Observable<StoredQuarantine> =>
  defer(() => from(readFile(path, 'utf8'))).pipe(
    map((text) => readStored(JSON.parse(text))),
    filter((stored) => stored !== undefined),
    catchError(() => EMPTY),
  );

/**
 * Keeps what is in quarantine in a file that this user alone may read, whenever it changes. What cannot be written is told;
 * then the next start finds out anew.
 */
export const keepQuarantine =
  (path: string, failed: (message: string) => void): Observer =>
  ({ notifications$ }) =>
    notifications$.pipe(
      filter(isType('Quarantine')),
      skipWhile(({ objects }) => objects.length === 0),
      latestWins(({ stored }) =>
        defer(() => write(path, JSON.stringify(stored()))).pipe(
          catchError((error: unknown) => {
            failed(error instanceof Error ? error.message : String(error));
            return EMPTY;
          }),
        ),
      ),
      ignoreElements(),
    );

/** Whole or not at all. */
const write = async (path: string, text: string): Promise<void> => {
  const beside = `${path}.new`;
  await writeFile(beside, text, { mode: 0o600 });
  await rename(beside, path);
};
