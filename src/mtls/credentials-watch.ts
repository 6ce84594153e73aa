import { watch, type FSWatcher } from 'node:fs';
import { readCredentials, type Credentials } from './credentials.ts';

/** How credentials are followed while their files are replaced. */
export interface CredentialsWatch {
  readonly dir: string;
  /** What is in force at first. */
  readonly initial: Credentials;
  /** Called with whole and checked credentials that differ from those in force. */
  readonly onChange: (credentials: Credentials) => void;
  /** Called once for each thing that is wrong; what was in force stays. Never holds anything of the key. */
  readonly onProblem: (message: string) => void;
  /** Milliseconds between two looks when the file system tells of no change. Default: 10 s. */
  readonly everyMs?: number;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

const EVERY_MS = 10_000;
/** A change is looked at when nothing more has happened for this long, in milliseconds. */
const QUIET_MS = 50;

/**
 * Follows the credentials in a directory until the returned function is called. A Secret volume replaces the link
 * `..data`, so the directory is watched rather than its files; the periodic look finds what the file system does not
 * tell. Own certificates that have expired are told as a problem and stay in force: the other side decides.
 */
export function watchCredentials(options: CredentialsWatch): () => void {
  const follower = new Follower(options);
  const { everyMs = EVERY_MS } = options;
  let quiet: NodeJS.Timeout | undefined;
  const watcher = tryWatch(options.dir, () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => follower.look(), QUIET_MS);
  });
  const timer = setInterval(() => follower.look(), everyMs).unref();
  follower.look();
  return () => {
    follower.stop();
    clearTimeout(quiet);
    clearInterval(timer);
    watcher?.close();
  };
}

class Follower {
  readonly #options: CredentialsWatch;
  readonly #now: () => number;
  #current: Credentials;
  #told: string | undefined;
  #expired: string | undefined;
  #looking = false;
  #again = false;
  #stopped = false;

  constructor(options: CredentialsWatch) {
    this.#options = options;
    this.#current = options.initial;
    this.#now = options.now ?? Date.now;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Looks once; a look that is asked for meanwhile follows. */
  look(): void {
    this.#again = this.#looking;
    if (this.#looking || this.#stopped) return;
    this.#looking = true;
    void this.#read().finally(() => {
      this.#looking = false;
      if (this.#again) this.look();
    });
  }

  async #read(): Promise<void> {
    const { dir, onChange } = this.#options;
    try {
      const found = await readCredentials(dir);
      if (this.#stopped) return;
      this.#told = undefined;
      if (found.fingerprint !== this.#current.fingerprint) {
        onChange(found);
        this.#current = found;
      }
    } catch (error: unknown) {
      this.#problem(error instanceof Error ? error.message : String(error));
    }
    this.#checkExpiry();
  }

  #problem(reason: string): void {
    if (this.#stopped || reason === this.#told) return;
    this.#told = reason;
    const { dir, onProblem } = this.#options;
    onProblem(`the credentials in ${dir} are not taken over, the ones before stay: ${reason}`);
  }

  #checkExpiry(): void {
    const { notAfterMs, fingerprint } = this.#current;
    if (this.#stopped || notAfterMs > this.#now() || fingerprint === this.#expired) return;
    this.#expired = fingerprint;
    const end = new Date(notAfterMs).toISOString();
    const { dir, onProblem } = this.#options;
    onProblem(`the certificate in ${dir} expired at ${end}: the other side refuses it, renew it`);
  }
}

/** Watching may be impossible, for example without free inotify instances: then the periodic look has to do. */
function tryWatch(dir: string, onEvent: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(dir, { persistent: false }, onEvent);
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
