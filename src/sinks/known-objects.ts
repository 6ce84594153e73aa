import {
  catchError,
  concatMap,
  defer,
  from,
  ignoreElements,
  map,
  type Observable,
  tap,
} from 'rxjs';
import { objectPath } from '../kube/api-resource.ts';
import type { KubeClient } from '../kube/client.ts';
import { at, textAt } from '../routing/fields.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import { listObjects } from './list-objects.ts';
import {
  CONFIGURATION,
  HAPROXY_CFG,
  objectName,
  PUBLISHED_RESOURCES,
  type PublishedFile,
} from './published-files.ts';
import { asCall, type Members, type WrittenResource } from './write-objects.ts';

/** The `HAProxyTemplateConfig` that owns what is published, in whose namespace it lies. */
export interface Owner {
  readonly namespace: string;
  readonly name: string;
}

/** What lies at the API server under one name. */
interface Known {
  readonly resource: WrittenResource;
  readonly name: string;
  readonly checksum: string | undefined;
  readonly part: unknown;
  readonly parts: number;
}

const UID_LABEL = 'haproxy-haptic.org/config-uid';
const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
/** Objects in one page, each of up to 1 MiB. */
const PAGE = 16;
/** A number of parts above this is not ours. */
const MAX_PARTS = 1_024;

/** The published objects of one configuration: what was listed, and what was written since. Contents are not kept. */
export class KnownObjects {
  /** `status` of the main file. */
  status: unknown;
  readonly #owner: Owner;
  readonly #byKey = new Map<string, Known>();
  #ownerUid = '';

  constructor(owner: Owner) {
    this.#owner = owner;
  }

  /** Reads the owner and lists what it owns, in place of what was known. */
  load(client: KubeClient): Observable<never> {
    const where = { ...CONFIGURATION, ...this.#owner };
    return client.request({ method: 'GET', path: objectPath(where) }).pipe(
      catchError(asCall({ verb: 'get', resource: CONFIGURATION, ...this.#owner })),
      tap((owner) => {
        this.#ownerUid = textAt(owner, 'metadata', 'uid') ?? '';
        this.status = undefined;
        this.#byKey.clear();
      }),
      concatMap(() => from(PUBLISHED_RESOURCES)),
      concatMap((resource) =>
        defer(() => this.#list(client, resource)).pipe(
          map((object) => {
            this.#observe(resource, object);
          }),
        ),
      ),
      ignoreElements(),
    );
  }

  #list(client: KubeClient, resource: WrittenResource): Observable<KubeObject> {
    const { namespace } = this.#owner;
    const labelSelector = `${UID_LABEL}=${this.#ownerUid}`;
    return listObjects(client, { resource, namespace, labelSelector, limit: PAGE });
  }

  #observe(resource: WrittenResource, object: KubeObject): void {
    const { name } = object.metadata;
    const [part, parts] = [at(object, 'spec', 'part'), at(object, 'spec', 'parts')];
    const isNumber = typeof parts === 'number' && parts >= 1 && parts <= MAX_PARTS;
    const checksum = textAt(object, 'spec', 'checksum');
    this.set({ resource, name, checksum, part, parts: isNumber ? parts : 1 });
    if (resource === HAPROXY_CFG && name === this.#owner.name) this.status = at(object, 'status');
  }

  /** It was written. */
  set(known: Known): void {
    this.#byKey.set(keyOf(known.resource, known.name), known);
  }

  /** It was deleted. */
  delete({ resource, name }: Known): void {
    this.#byKey.delete(keyOf(resource, name));
    if (resource === HAPROXY_CFG && name === this.#owner.name) this.status = undefined;
  }

  /** Whether the main file has an object, which is where the status is. */
  get hasMain(): boolean {
    return this.#byKey.has(keyOf(HAPROXY_CFG, this.#owner.name));
  }

  /** Whether every part of a file is there as it should be. */
  isPublished(file: PublishedFile): boolean {
    const keys = this.#partsOf(file);
    return (
      keys.length > 0 &&
      keys.every((key, index) => {
        const known = this.#byKey.get(key);
        return (
          known?.checksum === file.checksum &&
          known.part === index + 1 &&
          known.parts === keys.length
        );
      })
    );
  }

  /** What is no part of these files. */
  othersThan(files: readonly PublishedFile[]): readonly Known[] {
    const wanted = new Set(files.flatMap((file) => this.#partsOf(file)));
    return [...this.#byKey].flatMap(([key, known]) => (wanted.has(key) ? [] : [known]));
  }

  /** Labels and owner of every published object. */
  metadata(): Members {
    const { apiVersion, kind } = CONFIGURATION;
    const uid = this.#ownerUid;
    return {
      labels: { [MANAGED_BY_LABEL]: 'haptic', [UID_LABEL]: uid },
      ownerReferences: [{ apiVersion, kind, name: this.#owner.name, uid }],
    };
  }

  /** Keys of as many parts as the first one says there are; none when that is not there. */
  #partsOf(file: PublishedFile): readonly string[] {
    const keyOfPart = (part: number): string =>
      keyOf(file.resource, objectName(this.#owner.name, file, part));
    const parts = this.#byKey.get(keyOfPart(1))?.parts ?? 0;
    return Array.from({ length: parts }, (_, index) => keyOfPart(index + 1));
  }
}

const keyOf = (resource: WrittenResource, name: string): string => `${resource.plural}/${name}`;
