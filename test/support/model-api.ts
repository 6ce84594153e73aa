/**
 * An API server in virtual time, as far as the sinks use one: objects by path, server-side apply as a replacement of what
 * the same manager applied, lists by one label in pages, and whatever failures a test wants.
 */
import { defer, finalize, map, type Observable, throwError, timer } from 'rxjs';
import { KubeError, type KubeClient, type KubeRequest } from '../../src/kube/client.ts';

type Members = Readonly<Record<string, unknown>>;
interface Stored {
  readonly metadata: Members & { readonly labels?: Readonly<Record<string, string>> };
  readonly [member: string]: unknown;
}

export interface ModelApiOptions {
  /** Milliseconds that every call takes. Default 1. */
  readonly latencyMs?: number;
  /** What goes wrong with a call, asked when it arrives. */
  readonly fails?: (request: KubeRequest) => KubeError | undefined;
}

export class ModelApi implements KubeClient {
  /** By path. */
  readonly objects = new Map<string, Stored>();
  /** Calls that came, in order. */
  readonly calls: KubeRequest[] = [];
  /** Writes that succeeded. */
  readonly done: KubeRequest[] = [];
  inFlight = 0;
  maxInFlight = 0;
  readonly #options: ModelApiOptions;

  constructor(options: ModelApiOptions = {}) {
    this.#options = options;
  }

  request(request: KubeRequest): Observable<unknown> {
    return defer(() => {
      this.calls.push(request);
      this.inFlight += 1;
      this.maxInFlight = Math.max(this.maxInFlight, this.inFlight);
      const { latencyMs = 1, fails } = this.#options;
      return timer(latencyMs).pipe(
        map(() => {
          const failure = fails?.(request);
          if (failure !== undefined) throw failure;
          const answer = this.#answer(request);
          if (request.method !== 'GET') this.done.push(request);
          return answer;
        }),
        finalize(() => {
          this.inFlight -= 1;
        }),
      );
    });
  }

  stream(): Observable<unknown> {
    return throwError(() => new KubeError('unreachable', 'no streams here'));
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  /** Puts an object there. */
  put(path: string, object: Members): void {
    const metadata = {
      name: path.split('/').at(-1) ?? '',
      ...(object['metadata'] as Members | undefined),
    };
    this.objects.set(path, { ...object, metadata });
  }

  /** Writes that succeeded as `METHOD path`, in order. */
  get effects(): readonly string[] {
    return this.done.map(({ method, path }) => `${method} ${path.split('/').slice(-2).join('/')}`);
  }

  #answer(request: KubeRequest): unknown {
    const { method, path } = request;
    switch (method) {
      case 'GET':
        return this.#isObject(path) ? this.#get(path) : this.#list(request);
      case 'DELETE':
        this.#get(path);
        this.objects.delete(path);
        return {};
      case 'POST': {
        const name = String((request.body as Stored).metadata['name']);
        if (this.objects.has(`${path}/${name}`)) throw new KubeError('conflict', `${name} exists`);
        this.put(`${path}/${name}`, request.body as Members);
        return request.body;
      }
      default:
        return this.#apply(request);
    }
  }

  #apply({ path, body }: KubeRequest): unknown {
    if (!path.endsWith('/status')) {
      const { status } = (this.objects.get(path) ?? {}) as Members;
      this.put(path, { ...(body as Members), ...(status === undefined ? {} : { status }) });
      return body;
    }
    const parent = path.slice(0, -'/status'.length);
    const object = this.#get(parent);
    const managedFields = [{ manager: 'haptic', subresource: 'status' }];
    this.put(parent, {
      ...object,
      metadata: { ...object.metadata, managedFields },
      status: (body as Members)['status'],
    });
    return body;
  }

  #get(path: string): Stored {
    const object = this.objects.get(path);
    if (object === undefined) throw new KubeError('not-found', `GET ${path}: not found`);
    return object;
  }

  #isObject(path: string): boolean {
    const rest = path.split('/').slice(path.startsWith('/apis') ? 4 : 3);
    return rest[0] === 'namespaces' ? rest.length > 3 : rest.length > 1;
  }

  #list({ path, query = {} }: KubeRequest): unknown {
    const [label = '', value] = String(query['labelSelector'] ?? '').split('=');
    const all = [...this.objects]
      .filter(([stored]) => this.#isIn(path, stored))
      .map(([, object]) => object)
      .filter(({ metadata }) => label === '' || metadata.labels?.[label] === value);
    const from = Number(query['continue'] ?? 0);
    const end = from + Number(query['limit'] ?? all.length);
    const metadata = end < all.length ? { continue: String(end) } : {};
    return { metadata, items: all.slice(from, end) };
  }

  /** Whether an object lies in a collection, of one namespace or of all. */
  #isIn(collection: string, path: string): boolean {
    if (path.startsWith(`${collection}/`)) return true;
    const plural = collection.split('/').at(-1) ?? '';
    const group = collection.slice(0, -plural.length);
    return (
      !collection.includes('/namespaces/') &&
      path.startsWith(`${group}namespaces/`) &&
      path.split('/').at(-2) === plural
    );
  }
}

/** Fails the first `times` calls that match. */
export const failing = (
  matches: (request: KubeRequest) => boolean,
  error: KubeError,
  times = Infinity,
): ((request: KubeRequest) => KubeError | undefined) => {
  let left = times;
  return (request) => {
    if (left <= 0 || !matches(request)) return undefined;
    left -= 1;
    return error;
  };
};
