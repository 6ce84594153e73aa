import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import { ApiModel, type CollectionQuery, Gone, TooLarge } from './api-model.ts';

/** A request that the server got. */
export interface FaultRequest {
  readonly verb: 'list' | 'watch' | 'get';
  readonly method: string | undefined;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** As much of it as has arrived. */
  readonly body: string;
  /** How many requests of this verb there have been, this one included. */
  readonly count: number;
}

/** How the server misbehaves at one request. */
export type Fault =
  | {
      readonly type: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: unknown;
    }
  /** As ever, but the connection is reset after so many bytes of the body. */
  | { readonly type: 'cut'; readonly afterBytes: number }
  /** The head and nothing more, as a connection that is half open looks. */
  | { readonly type: 'silent' }
  /** These bytes as the body, one piece after the other; then what `then` says. */
  | {
      readonly type: 'raw';
      readonly pieces: readonly (string | Buffer)[];
      readonly then: 'end' | 'reset' | 'stay';
    }
  /** As ever, but later. */
  | { readonly type: 'delay'; readonly ms: number };

interface Listener {
  readonly server: Server;
  readonly port: number;
}

/**
 * An API server on loopback, as good as it must be for a list-watch, and as bad as a test wants it. Collections are
 * {@link ApiModel}s by the path of the collection over all namespaces, `/api/v1/configmaps`; other paths are answered from
 * `documents`.
 */
export class FaultServer {
  readonly requests: FaultRequest[] = [];
  readonly collections = new Map<string, ApiModel>();
  readonly documents = new Map<string, unknown>();
  /** Asked at each request; undefined: no fault. */
  fault: (request: FaultRequest) => Fault | undefined = () => undefined;
  /** Answers requests other than GET, when their body is there: status and answer. Default: as if they were GET. */
  write: ((request: FaultRequest) => readonly [status: number, answer: unknown]) | undefined;
  #listener: Listener | undefined;
  readonly #watches = new Set<ServerResponse>();

  static async start(): Promise<FaultServer> {
    const server = new FaultServer();
    await server.listen();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener?.port ?? 0}`;
  }

  /** Watches that are open. */
  get watches(): number {
    return this.#watches.size;
  }

  collection(path: string, kind = 'ConfigMap'): ApiModel {
    const model = this.collections.get(path) ?? new ApiModel(kind);
    this.collections.set(path, model);
    return model;
  }

  /** Starts, or starts again at the same port. */
  async listen(port = this.#listener?.port ?? 0): Promise<void> {
    const server = createServer((request, response) => this.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    this.#listener = { server, port: (server.address() as AddressInfo).port };
  }

  /** Ends every watch in order, as at the end of timeoutSeconds. */
  endWatches(): void {
    for (const response of this.#watches) response.end();
  }

  /** Resets every connection. */
  resetConnections(): void {
    for (const response of this.#watches) response.socket?.resetAndDestroy();
    this.#listener?.server.closeAllConnections();
  }

  /** Sends a bookmark on every watch. */
  bookmark(path: string): void {
    for (const response of this.#watches) write(response, this.collection(path).bookmark());
  }

  async close(): Promise<void> {
    this.resetConnections();
    const server = this.#listener?.server;
    await new Promise((resolve) => server?.close(resolve) ?? resolve(undefined));
  }

  /** The object at a path, from its collection. */
  object(path: string): KubeObject | undefined {
    const [, where = '', name] = /^(.*)\/([^/]+)$/.exec(path) ?? [];
    const { collection, namespace } = placeOf(where);
    return this.collections
      .get(collection)
      ?.objects.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  }

  #answer(incoming: IncomingMessage, response: ServerResponse): void {
    response.on('error', () => undefined);
    const url = new URL(incoming.url ?? '/', 'http://localhost');
    const place = placeOf(url.pathname);
    const model = this.collections.get(place.collection);
    const verb: FaultRequest['verb'] =
      model === undefined ? 'get' : url.searchParams.has('watch') ? 'watch' : 'list';
    const request = {
      verb,
      method: incoming.method,
      body: '',
      path: url.pathname,
      query: url.searchParams,
      headers: incoming.headers,
      count: this.requests.filter((earlier) => earlier.verb === verb).length + 1,
    };
    this.requests.push(request);
    incoming.on('data', (piece: Buffer) => (request.body += piece.toString()));
    const fault = this.fault(request);
    const serve = (): void => {
      if (this.write !== undefined && request.method !== 'GET') {
        const { write } = this;
        incoming.on('end', () => {
          const [status, answer] = write(request);
          response.writeHead(status, { 'content-type': 'application/json' });
          response.end(JSON.stringify(answer));
        });
      } else if (model === undefined)
        incoming.on('end', () => this.#document(url.pathname, response));
      else
        serveCollection(model, {
          request,
          namespace: place.namespace,
          response,
          watches: this.#watches,
        });
    };
    if (fault === undefined) serve();
    else misbehave(fault, response, serve);
  }

  #document(path: string, response: ServerResponse): void {
    const document = this.documents.get(path) ?? this.object(path);
    if (document === undefined)
      fail(response, 404, 'the server could not find the requested resource');
    else response.end(JSON.stringify(document));
  }
}

interface Serving {
  readonly request: FaultRequest;
  readonly namespace: string | undefined;
  readonly response: ServerResponse;
  readonly watches: Set<ServerResponse>;
}

const serveCollection = (model: ApiModel, serving: Serving): void => {
  const { query, verb } = serving.request;
  const selection: CollectionQuery = {
    namespace: serving.namespace,
    labelSelector: query.get('labelSelector') ?? undefined,
    fieldSelector: query.get('fieldSelector') ?? undefined,
  };
  try {
    if (verb === 'watch') serveWatch(model, selection, serving);
    else serveList(model, selection, serving);
  } catch (error: unknown) {
    if (error instanceof Gone) fail(serving.response, 410, 'too old resource version');
    else if (error instanceof TooLarge) tooLarge(serving.response);
    else throw error;
  }
};

const serveList = (
  model: ApiModel,
  selection: CollectionQuery,
  { request, response }: Serving,
): void => {
  const limit = Number(request.query.get('limit') ?? 0);
  response.end(JSON.stringify(model.list(selection, limit, request.query.get('continue') ?? '')));
};

const serveWatch = (
  model: ApiModel,
  selection: CollectionQuery,
  { request, response, watches }: Serving,
): void => {
  let sent = Number(request.query.get('resourceVersion'));
  const first = model.eventsAfter(sent, selection);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  for (const event of first) write(response, event);
  sent = model.version;
  watches.add(response);
  const stop = model.onChange(() => {
    if (response.socket?.destroyed !== false) return; // gone, and not told yet
    for (const event of model.eventsAfter(sent, selection)) write(response, event);
    sent = model.version;
  });
  response.on('close', () => {
    stop();
    watches.delete(response);
  });
};

const misbehave = (fault: Fault, response: ServerResponse, serve: () => void): void => {
  switch (fault.type) {
    case 'status':
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(JSON.stringify(fault.body ?? statusObject(fault.status, 'a fault')));
      return;
    case 'cut':
      cutAfter(response, fault.afterBytes);
      serve();
      return;
    case 'silent':
      response.writeHead(200);
      response.flushHeaders();
      return;
    case 'raw':
      void sendRaw(response, fault);
      return;
    case 'delay':
      setTimeout(serve, fault.ms);
      return;
  }
};

const sendRaw = async (
  response: ServerResponse,
  { pieces, then }: Extract<Fault, { type: 'raw' }>,
): Promise<void> => {
  response.writeHead(200);
  response.flushHeaders();
  for (const piece of pieces) {
    await new Promise<void>((resolve) => void response.write(piece, () => setImmediate(resolve)));
  }
  if (then === 'end') response.end();
  if (then === 'reset') response.socket?.resetAndDestroy();
};

/** Lets so many bytes of the body through, then resets the connection. */
const cutAfter = (response: ServerResponse, bytes: number): void => {
  let left = bytes;
  const pass = response.write.bind(response);
  const cut = (chunk: unknown): boolean => {
    const piece = Buffer.from(chunk as string);
    if (left <= 0) return true;
    const reset = (): void => {
      if (left <= 0) response.socket?.resetAndDestroy();
    };
    const part = piece.subarray(0, left);
    left -= part.length;
    return pass(part, () => setImmediate(reset));
  };
  response.write = cut as typeof response.write;
  response.end = cut as unknown as typeof response.end;
  if (bytes === 0) {
    response.flushHeaders = () => undefined;
    setImmediate(() => response.socket?.resetAndDestroy());
  }
};

const write = (response: ServerResponse, event: unknown): void => {
  response.write(`${JSON.stringify(event)}\n`);
};

const fail = (response: ServerResponse, status: number, message: string): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(statusObject(status, message)));
};

const tooLarge = (response: ServerResponse): void => {
  response.writeHead(504, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({
      ...statusObject(504, 'Too large resource version'),
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
    }),
  );
};

/** A Status of meta/v1. */
export const statusObject = (code: number, message: string): Readonly<Record<string, unknown>> => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  code,
});

/** `/api/v1/namespaces/shop/configmaps` → `/api/v1/configmaps` in namespace `shop`. */
const placeOf = (path: string): { readonly collection: string; readonly namespace?: string } => {
  const [, prefix, namespace, plural] =
    /^(\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)\/namespaces\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  return namespace === undefined
    ? { collection: path }
    : { collection: `${prefix ?? ''}/${plural ?? ''}`, namespace };
};
