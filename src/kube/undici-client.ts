import { Observable } from 'rxjs';
import { type Dispatcher, errors, request as send } from 'undici';
import { KubeError, type KubeClient, type KubeRequest } from './client.ts';
import { Connections } from './connections.ts';
import { JsonLines } from './json-lines.ts';
import type { KubeAccess } from './kube-access.ts';
import { refusalError } from './kube-error.ts';

/** Bounds of {@link createKubeClient}. */
export interface KubeClientOptions {
  /** Longest answer to a request in bytes. Default 256 MiB. */
  readonly maxAnswerBytes?: number;
  /** Longest line of a stream in bytes. Default 16 MiB, ten times what etcd stores of one object. */
  readonly maxLineBytes?: number;
}

const MIB = 1024 * 1024;
const DEFAULTS = { maxAnswerBytes: 256 * MIB, maxLineBytes: 16 * MIB };
const DEFAULT_TIMEOUT_MS = 30_000;
/** Of an answer that is an error no more is read. */
const MAX_ERROR_BYTES = 64 * 1024;

interface Call extends KubeRequest {
  /** Verb and path. */
  readonly name: string;
  readonly signal: AbortSignal;
  /** The head has arrived: the time limit of a stream ends here. */
  readonly answered: () => void;
}

/**
 * The client of the API server over undici: one pool of connections with TCP keep-alive for everything, credentials as
 * they are at each request. Bodies are bounded and never appear in an error.
 */
export const createKubeClient = (
  access: KubeAccess,
  options: KubeClientOptions = {},
): KubeClient => {
  const limits = { ...DEFAULTS, ...options };
  const connections = new Connections();
  return {
    request: (request) =>
      call(request, async (one, emit) => {
        const { body } = await answer(access, connections, one);
        emit(parsed(await readText(body, limits.maxAnswerBytes), one));
      }),
    stream: (request) =>
      call(request, async (one, emit) => {
        const { body } = await answer(access, connections, one);
        one.answered();
        const lines = new JsonLines(limits.maxLineBytes);
        // The next piece is asked for when the lines of this one are taken in: that is what slows the server down.
        for await (const piece of body as AsyncIterable<Buffer>) {
          for (const value of lines.push(piece)) emit(value);
        }
        lines.end();
      }),
    close: () => connections.destroy(),
  };
};

type Run = (call: Call, emit: (value: unknown) => void) => Promise<void>;

const call = (request: KubeRequest, run: Run): Observable<unknown> =>
  new Observable((subscriber) => {
    const name = `${request.method} ${request.path}`;
    const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      abort.abort(new KubeError('timeout', `${name}: no answer in ${timeoutMs} ms`));
    }, timeoutMs);
    const answered = (): void => clearTimeout(timer);
    const emit = (value: unknown): void => {
      if (abort.signal.aborted) throw new KubeError('unreachable', `${name}: aborted`);
      subscriber.next(value);
    };
    let ended = false;
    run({ ...request, name, signal: abort.signal, answered }, emit).then(
      () => {
        ended = true;
        clearTimeout(timer);
        subscriber.complete();
      },
      (error: unknown) => {
        ended = true;
        clearTimeout(timer);
        subscriber.error(asKubeError(error, name));
      },
    );
    return () => {
      clearTimeout(timer);
      if (!ended) abort.abort();
    };
  });

/** The head of an answer that is a success; every other is an error. */
const answer = async (
  access: KubeAccess,
  connections: Connections,
  call: Call,
): Promise<Dispatcher.ResponseData> => {
  const { headers, tls } = await access.credentials().catch((error: unknown) => {
    throw new KubeError('unauthorized', `no credentials for the API server: ${messageOf(error)}`, {
      cause: error,
    });
  });
  call.signal.throwIfAborted();
  const response = await send(urlOf(access.server, call), {
    dispatcher: connections.for(tls),
    method: call.method,
    headers: { accept: call.accept ?? 'application/json', ...headers, ...bodyHeaders(call) },
    body: call.body === undefined ? null : JSON.stringify(call.body),
    signal: call.signal,
    headersTimeout: 0, // the timer of the call, and the silence watchdog of its user, are the only ones
    bodyTimeout: 0,
  });
  const { statusCode, body } = response;
  if (statusCode >= 200 && statusCode < 300) {
    call.onHead?.();
    return response;
  }
  const text = await readText(body, MAX_ERROR_BYTES).catch(() => '');
  const retryAfter = response.headers['retry-after'];
  throw refusalError({
    request: call.name,
    status: statusCode,
    answer: jsonOr(text, undefined),
    retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
  });
};

const urlOf = (server: string, { path, query }: KubeRequest): string => {
  const terms = Object.entries(query ?? {}).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  const search = terms.length === 0 ? '' : `?${new URLSearchParams(terms).toString()}`;
  return `${server.replace(/\/+$/, '')}${path}${search}`;
};

const bodyHeaders = ({ body, contentType }: KubeRequest): Readonly<Record<string, string>> =>
  body === undefined ? {} : { 'content-type': contentType ?? 'application/json' };

const readText = async (
  body: Dispatcher.ResponseData['body'],
  maxBytes: number,
): Promise<string> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes) {
      throw new KubeError('protocol', `the answer is longer than ${maxBytes} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
};

/** An empty answer, as some deletions give, is no value. */
const parsed = (text: string, { name }: Call): unknown => {
  if (text === '') return undefined;
  const value = jsonOr(text, NOT_JSON);
  if (value === NOT_JSON) throw new KubeError('protocol', `${name}: the answer is not JSON`);
  return value;
};

const NOT_JSON = Symbol('not JSON');

const jsonOr = (text: string, otherwise: unknown): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return otherwise;
  }
};

const asKubeError = (error: unknown, name: string): KubeError => {
  if (error instanceof KubeError) {
    return error.message.startsWith(name)
      ? error
      : new KubeError(error.code, `${name}: ${error.message}`, { cause: error.cause });
  }
  const timedOut = error instanceof errors.ConnectTimeoutError;
  return new KubeError(timedOut ? 'timeout' : 'unreachable', `${name}: ${messageOf(error)}`, {
    cause: error,
  });
};

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
