import { X509Certificate } from 'node:crypto';
import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OPERATION_KINDS, type Operation } from '../../src/protocol/protocol.ts';
import type { Tree } from '../files/tree.ts';
import type { Command, Worker } from '../haproxy/worker.ts';
import type { Deviation } from './worker-image.ts';

/** What one look costs is bounded: ten thousand certificates are seen once in less than an hour of such looks. */
const MOST = 200;

const ask = (line: string): Command => ({ line, accept: /./, tolerate: /./ });

/**
 * Compares the certificates that the worker has loaded with the files the agent wrote, some with each look and the next
 * ones with the next. A certificate is known by its SHA-1 fingerprint, as HAProxy tells it.
 */
export class CertificateWatch {
  #next = 0;

  /** The lock must be held, and the files be those that the worker shall have loaded. */
  async compare(worker: Worker, tree: Tree): Promise<Deviation[]> {
    const paths = [...tree.held].flatMap(([path, { kind }]) => (kind === 'cert' ? [path] : []));
    if (paths.length === 0) return [];
    if (this.#next >= paths.length) this.#next = 0;
    const slice = paths.slice(this.#next, this.#next + MOST);
    const deviations: Deviation[] = [];
    for (const [path, real] of await loadedFingerprints(worker, tree.base, slice)) {
      const wanted = await fingerprintOf(tree.at(path));
      if (wanted === undefined || real === wanted) continue;
      deviations.push({ target: path, repairs: repairsOf(path, tree) });
    }
    return deviations;
  }

  /** The next look is at the next ones. */
  advance(): void {
    this.#next += MOST;
  }
}

/** Path → fingerprint of those that the worker has loaded. */
async function loadedFingerprints(
  worker: Worker,
  base: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const [list] = await worker.run([ask('show ssl cert')]);
  const loaded = new Set(list?.text.split('\n'));
  const asked = paths.flatMap((path) => {
    const spellings = [path, `./${path}`, join(base, path)];
    const reference = spellings.find((spelling) => loaded.has(spelling));
    return reference === undefined ? [] : [{ path, line: `show ssl cert ${reference}` }];
  });
  const replies = await worker.run(asked.map(({ line }) => ask(line)));
  return new Map(
    asked.flatMap(({ path }, at): (readonly [string, string])[] => {
      const found = /^SHA1 FingerPrint: ([0-9A-F]+)$/m.exec(replies[at]?.text ?? '')?.[1];
      return found === undefined ? [] : [[path, found]];
    }),
  );
}

/** @returns `undefined` when the file holds no certificate that can be read, and then nothing is compared */
async function fingerprintOf(path: string): Promise<string | undefined> {
  try {
    const bytes = await readFile(path, { flag: constants.O_RDONLY | constants.O_NOFOLLOW });
    return new X509Certificate(bytes).fingerprint.replaceAll(':', '');
  } catch {
    return undefined;
  }
}

/** Where certificates can be set at run time, that; else only a reload reads the file again. */
function repairsOf(file: string, tree: Tree): readonly Operation[] | undefined {
  const digest = tree.held.get(file)?.digest;
  if (digest === undefined || !OPERATION_KINDS.includes('cert_set')) return undefined;
  return [{ kind: 'cert_set', file, digest }];
}
