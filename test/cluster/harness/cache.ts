/**
 * Things that are made once and kept under a name that says what they were made from.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { progress } from '../../../tools/setup/run-program.js';
import { cacheFolder } from './places.ts';

/** Something to keep. */
export interface Kept {
  /** What it is, in one word: the beginning of the name. */
  readonly kind: string;
  /** Everything that decides about its content; a change makes another one. */
  readonly madeFrom: readonly (string | Buffer)[];
  /** Makes it at a path that does not exist yet; a file or a folder. */
  readonly make: (path: string) => Promise<void>;
}

/**
 * @param parts texts or bytes, in this order
 * @returns the first 16 hexadecimal digits of their SHA-256
 */
export function digest(parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(String(part.length)).update(':').update(part);
  return hash.digest('hex').slice(0, 16);
}

/**
 * Makes a thing unless it is there. It appears at its place whole or not at all; of two processes
 * that want the same at the same time one makes it and the other waits.
 *
 * @returns its absolute path
 */
export async function keep({ kind, madeFrom, make }: Kept): Promise<string> {
  const path = join(cacheFolder(), `${kind}-${digest(madeFrom)}`);
  if (existsSync(path)) {
    utimesSync(path, new Date(), new Date());
    return path;
  }
  mkdirSync(cacheFolder(), { recursive: true });
  const release = await lock(`${path}.lock`, `${kind} to be made`);
  try {
    if (existsSync(path)) return path;
    const building = `${path}.making`;
    rmSync(building, { recursive: true, force: true }); // of one that was interrupted
    await make(building);
    renameSync(building, path);
    return path;
  } finally {
    release();
  }
}

/**
 * Removes the older ones of a kind.
 *
 * @param kind as in {@link Kept}
 * @param count how many stay, the last used ones
 */
export function discardOld(kind: string, count: number): void {
  const pattern = new RegExp(`^${RegExp.escape(kind)}-[0-9a-f]{16}$`);
  const paths = readdirSync(cacheFolder())
    .filter((name) => pattern.test(name))
    .map((name) => join(cacheFolder(), name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const path of paths.slice(count)) rmSync(path, { recursive: true, force: true });
}

/**
 * Waits until no other living process holds the lock, then takes it.
 *
 * @param path file that stands for the lock
 * @param waitingFor what to say when it takes a while
 * @returns gives it back
 */
export async function lock(path: string, waitingFor: string): Promise<() => void> {
  for (let announced = false; !take(path); announced = true) {
    if (!isHeld(path)) rmSync(path, { force: true });
    else if (!announced) progress(`waiting for another process: ${waitingFor} …`);
    await sleep(300);
  }
  return () => {
    rmSync(path, { force: true });
  };
}

/** @returns whether there was no such file; then it is there now, with everything that belongs in it */
function take(path: string): boolean {
  const own = `${path}.${process.pid}`;
  writeFileSync(own, identity(process.pid));
  try {
    linkSync(own, path);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(own);
  }
}

function isHeld(path: string): boolean {
  const holder = readIfThere(path);
  const pid = Number.parseInt(holder, 10);
  // The number of a process that has ended is given to another one some day.
  return pid > 0 && holder === identity(pid) && isAlive(pid);
}

/** A process, told from others that had or will have its number. */
function identity(pid: number): string {
  const status = readIfThere(`/proc/${pid}/stat`);
  // The name of the program is in parentheses and may contain anything; the 22nd field is its start.
  const started = status.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  return `${pid} ${started}`;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error: unknown) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
