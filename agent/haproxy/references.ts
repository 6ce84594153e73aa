import { resolve } from 'node:path';
import { LIMITS } from '../../src/protocol/protocol.ts';
import { exchange } from './socket.ts';
import { sameWorker, type WorkerIdentity } from './worker-identity.ts';

/** What a worker loads from files and keeps under their names. */
export type Loaded = 'map' | 'cert' | 'ca' | 'crl' | 'crt-list';

const LISTS: Readonly<Record<Loaded, { readonly command: string; readonly name: RegExp }>> = {
  map: { command: 'show map', name: /^-?\d+ \((.+?)\) pattern loaded/ },
  cert: { command: 'show ssl cert', name: /^\*?(.+)$/ },
  ca: { command: 'show ssl ca-file', name: /^\*?(.+?) - \d+ certificate/ },
  crl: { command: 'show ssl crl-file', name: /^\*?(.+)$/ },
  'crt-list': { command: 'show ssl crt-list', name: /^(.+)$/ },
};

/** Under which names a worker knows files: as its configuration spells them, and that is how commands must. */
export class References {
  readonly #socket: string;
  readonly #base: string;
  #of: WorkerIdentity | null = null;
  /** Absolute path → name, by kind. */
  readonly #names = new Map<Loaded, Map<string, string>>();

  constructor(socket: string, base: string) {
    this.#socket = socket;
    this.#base = base;
  }

  /**
   * @returns `undefined` when this worker has not loaded the file
   * @throws when the worker does not answer
   */
  async find(kind: Loaded, path: string, worker: WorkerIdentity): Promise<string | undefined> {
    if (!sameWorker(this.#of, worker)) this.#names.clear();
    this.#of = worker;
    const names = this.#names.get(kind) ?? (await this.#ask(kind));
    this.#names.set(kind, names);
    return names.get(resolve(this.#base, path));
  }

  /** The worker has come to know the file by its own path, or knows it no more. */
  note(kind: Loaded, path: string, isLoaded: boolean): void {
    const names = this.#names.get(kind);
    if (isLoaded) names?.set(resolve(this.#base, path), path);
    else names?.delete(resolve(this.#base, path));
  }

  async #ask(kind: Loaded): Promise<Map<string, string>> {
    const { command, name } = LISTS[kind];
    const timeoutMs = LIMITS.commandTimeoutMs;
    const text = await exchange(this.#socket, { text: `${command}\n`, timeoutMs });
    const names = new Map<string, string>();
    for (const line of text.split('\n')) {
      const found = line.startsWith('#') ? undefined : name.exec(line)?.[1];
      if (found !== undefined) names.set(resolve(this.#base, withoutScheme(found)), found);
    }
    return names;
  }
}

/** An optional map is known by a name with a word before it. */
const withoutScheme = (name: string): string => name.replace(/^(?:opt|file)@/, '');
