import { concat, concatMap, defer, EMPTY, from, map, type Observable, of } from 'rxjs';
import { chunkTexts } from '../cells/chunk.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Notification } from '../ports.ts';
import { deepEqual } from '../routing/fields.ts';
import type { CompressTexts } from './gzip-texts.ts';
import { KnownObjects, type Owner } from './known-objects.ts';
import {
  compressedContent,
  type EncodedFile,
  HAPROXY_CFG,
  holdsPrivateKey,
  objectName,
  plainContent,
  type PublishedFile,
  specOf,
} from './published-files.ts';
import type { Problem } from '../snapshot/problem.ts';
import type {
  Members,
  ObjectWrite,
  WriteOne,
  Writer,
  WriteTask,
  WrittenResource,
} from './write-objects.ts';

/** Where and how files are published. */
export interface PublicationTarget {
  readonly client: KubeClient;
  readonly compress: CompressTexts;
  readonly owner: Owner;
  /** Largest part in bytes. */
  readonly partBytes: number;
}

/** What is to be published: none of these files, with no status, when publishing is switched off. */
export interface Publication {
  readonly files: readonly PublishedFile[];
  /** Files of at least this many bytes are compressed. */
  readonly compressionThreshold: number;
  /** Gives the status of the main file from the one it has; undefined: it is left alone. */
  readonly status: ((observed: unknown) => Members) | undefined;
  /** False: what else is there stays, since it is not known yet what the fleet runs. */
  readonly prunes: boolean;
}

/** Publishes for one term; what is there already is not written. */
export class Publications {
  readonly #target: PublicationTarget;
  readonly #writer: Writer;
  readonly #known: KnownObjects;
  #isLoaded = false;
  /** Kind and path of a file → checksum that the server refused. */
  readonly #refused = new Map<string, string>();
  /** Kinds and paths of files that hold what must not be published. */
  readonly #withheld = new Set<string>();

  constructor(target: PublicationTarget, writer: Writer) {
    this.#target = target;
    this.#writer = writer;
    this.#known = new KnownObjects(target.owner);
  }

  /** Before the next run everything is listed anew, so that what others changed is mended. */
  forget(): void {
    this.#isLoaded = false;
  }

  /** Brings the API server there; cold, errors with `CallFailed` when something is left to be done. */
  publish(publication: Publication): Observable<Notification> {
    return concat(
      defer(() => (this.#isLoaded ? EMPTY : this.#load())),
      this.#writer.run((write) =>
        concat(
          from(publication.files).pipe(concatMap((file) => this.#file(file, publication, write))),
          defer(() => this.#status(publication, write)),
          defer(() => this.#prune(publication, write)),
        ),
      ),
    );
  }

  #load(): Observable<never> {
    return concat(
      this.#known.load(this.#target.client),
      defer(() => {
        this.#isLoaded = true;
        this.#refused.clear();
        this.#withheld.clear();
        return EMPTY;
      }),
    );
  }

  /** One file, unless every part of it is there. The first part goes last: with it the file is complete. */
  #file(file: PublishedFile, publication: Publication, write: WriteOne): Observable<Notification> {
    const id = idOf(file);
    if (this.#known.isPublished(file) || this.#refused.get(id) === file.checksum) return EMPTY;
    this.#withheld.delete(id);
    if (holdsPrivateKey(file.file)) {
      this.#refused.set(id, file.checksum);
      this.#withheld.add(id);
      const { namespace } = this.#target.owner;
      return of(this.#writer.withheld({ resource: file.resource, namespace }, withheld(file)));
    }
    return this.#encode(file, publication).pipe(
      concatMap((encoded) => from(this.#parts(file, encoded))),
      concatMap((task) => write(task)),
    );
  }

  #encode({ file }: PublishedFile, { compressionThreshold }: Publication): Observable<EncodedFile> {
    const { compress, partBytes } = this.#target;
    const plain = file.text.size < compressionThreshold ? plainContent(file, partBytes) : undefined;
    return plain === undefined
      ? compress(chunkTexts(file.text)).pipe(map((bytes) => compressedContent(bytes, partBytes)))
      : of(plain);
  }

  #parts(file: PublishedFile, encoded: EncodedFile): readonly WriteTask[] {
    const { resource, checksum } = file;
    const parts = encoded.contents.length;
    return encoded.contents
      .map((_, index): WriteTask => {
        const part = index + 1;
        const name = objectName(this.#target.owner.name, file, part);
        const body = { metadata: this.#known.metadata(), spec: specOf(file, encoded, part) };
        return {
          write: () => ({ ...this.#object('apply', resource, name), body }),
          done: () => {
            this.#known.set({ resource, name, checksum, part, parts });
          },
          refused: () => {
            this.#refused.set(idOf(file), checksum);
          },
        };
      })
      .reverse();
  }

  #status({ status }: Publication, write: WriteOne): Observable<Notification> {
    if (status === undefined || !this.#known.hasMain) return EMPTY;
    const next = status(this.#known.status);
    if (deepEqual(next, this.#known.status)) return EMPTY;
    const settled = (): void => {
      this.#known.status = next;
    };
    const main = this.#object('apply', HAPROXY_CFG, this.#target.owner.name);
    return write({
      write: () => ({ ...main, subresource: 'status', body: { status: next } }),
      done: settled,
      refused: settled,
    });
  }

  #prune({ files, prunes }: Publication, write: WriteOne): Observable<Notification> {
    if (!prunes) return EMPTY;
    const wanted = files.filter((file) => !this.#withheld.has(idOf(file)));
    return from(this.#known.othersThan(wanted)).pipe(
      concatMap((unwanted) => {
        const forgotten = (): void => {
          this.#known.delete(unwanted);
        };
        return write({
          write: () => this.#object('delete', unwanted.resource, unwanted.name),
          done: forgotten,
          refused: forgotten,
        });
      }),
    );
  }

  #object(verb: ObjectWrite['verb'], resource: WrittenResource, name: string): ObjectWrite {
    return { verb, resource, namespace: this.#target.owner.namespace, name };
  }
}

const idOf = ({ resource, path }: PublishedFile): string => `${resource.kind} ${path}`;

const withheld = ({ path }: PublishedFile): Problem => ({
  severity: 'warning',
  reason: 'PrivateKeyInFile',
  message: `${path} holds a private key and is not published.`,
  nextStep: 'Declare it as a certificate: those are never published.',
});
