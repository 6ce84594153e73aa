import { Readable } from 'node:stream';
import { Observable } from 'rxjs';
import { Agent, errors, request, type Dispatcher } from 'undici';
import { AgentError, type AgentClient, type ApplyRequest, type Pod } from '../ports.ts';
import { FRAME_HEAD_BYTES, FRAME_TYPE, encodeFrameHead } from '../protocol/frame.ts';
import type { ApplyConflict, ApplyOutcome } from '../protocol/answers.ts';
import { readAgentState, readConflict, readOutcome, readStoredPlan } from './agent-answers.ts';
import { explainTlsFailure } from './agent-tls-failure.ts';
import { AGENT_POOL, type AgentTls } from './agent-tls.ts';

/** How the controller proves itself: by certificates, or by a token where the way to the agents is a loopback address. */
export type AgentAccess = { readonly tls: AgentTls } | { readonly token: string };

/** How the controller speaks with its agents. */
export type AgentClientOptions = AgentAccess & {
  /** Who this controller is among those that may lead, as its manifests say it; see `Manifest.leader`. Default: not told. */
  readonly identity?: string;
  /** Milliseconds a call may take as a whole. */
  readonly timeoutMs: {
    /** `state` and `plan`. */
    readonly state: number;
    /** `apply`, with a reload in it. */
    readonly apply: number;
  };
};

/** A client, and how its connections end. */
export interface ClosableAgentClient extends AgentClient {
  readonly close: () => Promise<void>;
}

interface Call<T> {
  readonly pod: Pod;
  readonly path: string;
  readonly timeoutMs: number;
  readonly body?: Body;
  /** Reads the answer of these statuses; every other is an error. */
  readonly read: Readonly<Record<number, (json: unknown) => T>>;
}

interface Body {
  readonly length: number;
  readonly chunks: () => Iterable<Uint8Array>;
}

const MAX_ANSWER_BYTES = 512 * 1024 * 1024;
const ONE_PIECE_BYTES = 256 * 1024;

/**
 * The client of the agents' protocol (docs/protocol.md). Calls are cold; unsubscribing aborts the request. One pool of
 * connections serves all pods. With `tls` the client owns it: closing one closes the other.
 */
export function createAgentClient(options: AgentClientOptions): ClosableAgentClient {
  const way = 'tls' in options ? throughTls(options.tls) : withToken(options.token);
  const call = <T>(one: Call<T>): Observable<T> => ask(way, one);
  return {
    state: (pod, { verify }) =>
      call({
        pod,
        path: verify ? '/v1/state?verify=1' : '/v1/state',
        timeoutMs: options.timeoutMs.state,
        read: { 200: readAgentState },
      }),
    plan: (pod) =>
      call({
        pod,
        path: '/v1/plan',
        timeoutMs: options.timeoutMs.state,
        read: { 200: readStoredPlan },
      }),
    apply: (pod, apply) =>
      call<ApplyOutcome | ApplyConflict>({
        pod,
        path: '/v1/apply',
        timeoutMs: options.timeoutMs.apply,
        body: frameOf(apply, options.identity),
        read: { 200: readOutcome, 422: readOutcome, 409: readConflict },
      }),
    close: way.close,
  };
}

/** How a request reaches an agent, and what its failure says. */
interface Way {
  readonly dispatcher: () => Dispatcher;
  readonly headers: Readonly<Record<string, string>>;
  readonly explain: (error: unknown, lastedMs: number) => string | undefined;
  readonly close: () => Promise<void>;
}

const throughTls = ({ dispatcher, notAfterMs, close }: AgentTls): Way => ({
  dispatcher,
  headers: {},
  explain: (error, lastedMs) =>
    explainTlsFailure(error, { lastedMs, notAfterMs: notAfterMs(), nowMs: Date.now() }),
  close,
});

function withToken(token: string): Way {
  const dispatcher = new Agent(AGENT_POOL);
  return {
    dispatcher: () => dispatcher,
    headers: { authorization: `Bearer ${token}` },
    explain: () => undefined,
    close: () => dispatcher.destroy(),
  };
}

function frameOf({ manifest, parts, plan }: ApplyRequest, leader?: string): Body {
  const encoder = new TextEncoder();
  const head = encoder.encode(
    JSON.stringify(leader === undefined ? manifest : { ...manifest, leader }),
  );
  const tail = encoder.encode(plan);
  const length = parts.reduce(
    (sum, part) => sum + part.length,
    FRAME_HEAD_BYTES + head.length + tail.length,
  );
  return {
    length,
    *chunks() {
      yield encodeFrameHead(head.length);
      yield head;
      for (const part of parts) if (part.length > 0) yield part; // an empty chunk would end the stream
      if (tail.length > 0) yield tail;
    },
  };
}

function ask<T>(way: Way, call: Call<T>): Observable<T> {
  return new Observable((subscriber) => {
    const startedAt = performance.now();
    const abort = new AbortController();
    const timer = setTimeout(() => {
      abort.abort(new AgentError('timeout', `${call.path}: no answer in ${call.timeoutMs} ms`));
    }, call.timeoutMs);
    let ended = false;
    answer(way, { ...call, signal: abort.signal }).then(
      (value) => {
        ended = true;
        clearTimeout(timer);
        subscriber.next(value);
        subscriber.complete();
      },
      (error: unknown) => {
        ended = true;
        clearTimeout(timer);
        const reason = way.explain(error, performance.now() - startedAt);
        subscriber.error(
          reason === undefined
            ? asAgentError(error, call)
            : new AgentError('unauthorized', `${call.pod.name} ${call.path}: ${reason}`, {
                cause: error,
              }),
        );
      },
    );
    return () => {
      clearTimeout(timer);
      if (!ended) abort.abort();
    };
  });
}

async function answer<T>(way: Way, call: Call<T> & { readonly signal: AbortSignal }): Promise<T> {
  const { statusCode, body } = await request(new URL(call.path, call.pod.url), {
    dispatcher: way.dispatcher(),
    method: call.body === undefined ? 'GET' : 'POST',
    headers: {
      ...way.headers,
      ...(call.body === undefined
        ? {}
        : { 'content-type': FRAME_TYPE, 'content-length': String(call.body.length) }),
    },
    body: call.body === undefined ? null : streamed(call.body),
    signal: call.signal,
    headersTimeout: 0, // the timer of the call is the only one
    bodyTimeout: 0,
  });
  const text = await readText(body);
  const read = call.read[statusCode];
  if (read === undefined) throw statusError(statusCode, text, call);
  return parsed(text, read, call);
}

/** A small body leaves in one piece with its head; a large one is never put together. */
const streamed = ({ length, chunks }: Body): Buffer | Readable =>
  length <= ONE_PIECE_BYTES
    ? Buffer.concat([...chunks()], length)
    : Readable.from(chunks(), { objectMode: false });

async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_ANSWER_BYTES) throw new AgentError('protocol', 'the answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function parsed<T>(text: string, read: (json: unknown) => T, { path }: Call<T>): T {
  try {
    return read(JSON.parse(text));
  } catch (error: unknown) {
    const reason = error instanceof SyntaxError ? 'not JSON' : messageOf(error);
    throw new AgentError('protocol', `${path}: ${reason}`, { cause: error });
  }
}

function statusError<T>(status: number, text: string, { path }: Call<T>): AgentError {
  const message = `${path}: status ${status}: ${errorIn(text)}`;
  if (status === 401) return new AgentError('unauthorized', message);
  if (status === 503) return new AgentError('not-ready', message);
  return new AgentError('protocol', message);
}

/** The agent's own words, if these are its words. */
function errorIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    return typeof error === 'string' ? error.slice(0, 500) : 'no reason given';
  } catch {
    return 'no reason given';
  }
}

function asAgentError<T>(error: unknown, { pod, path }: Call<T>): AgentError {
  if (error instanceof AgentError) return error;
  const timedOut =
    error instanceof errors.ConnectTimeoutError || error instanceof errors.HeadersTimeoutError;
  const message = `${pod.name} ${path}: ${messageOf(error)}`;
  return new AgentError(timedOut ? 'timeout' : 'unreachable', message, { cause: error });
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
