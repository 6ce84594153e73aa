import type { Observable } from 'rxjs';

/** One request to the API server. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the server's address, from `objectPath` or `collectionPath`: every name in it is encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  /** Sent as JSON. Default: no body. */
  readonly body?: unknown;
  /**
   * Media type of the body: `application/json` (default), `application/merge-patch+json`, or
   * `application/apply-patch+yaml` for server-side apply (JSON is YAML).
   */
  readonly contentType?: string;
  /** Media type asked for. Default `application/json`. */
  readonly accept?: string;
  /** Called when the head of an answer that is a success has arrived: a quiet stream is open. */
  readonly onHead?: () => void;
  /** Milliseconds for the whole call. Default 30,000. */
  readonly timeoutMs?: number;
}

/** How to speak with the API server. */
export interface KubeClient {
  /** Cold; emits the parsed answer once and completes. Unsubscribing aborts. Errors with {@link KubeError} only. */
  request(request: KubeRequest): Observable<unknown>;
  /**
   * Cold; emits the lines of a streamed answer, each parsed, and completes when the server ends it. Lines are read no faster
   * than they are taken in. Unsubscribing aborts. Errors with {@link KubeError} only. `timeoutMs` counts to the head.
   */
  stream(request: KubeRequest): Observable<unknown>;
  /** Ends the connections; requests in flight error. */
  close(): Promise<void>;
}

export type KubeErrorCode =
  /** No connection, or it broke. */
  | 'unreachable'
  | 'timeout'
  /** 401: the credentials are not accepted. */
  | 'unauthorized'
  /** 403: a right is missing. */
  | 'forbidden'
  | 'not-found'
  /** 409: the object is another version than expected, or exists. */
  | 'conflict'
  /** 410, or 504 with cause ResourceVersionTooLarge: the server cannot go on from this resourceVersion. */
  | 'gone'
  /** 400, 405, 415, 422: the request is wrong; the same one will be refused again. */
  | 'invalid'
  /** 429. */
  | 'too-many-requests'
  /** 5xx. */
  | 'server'
  /** The answer is not what the protocol promises. */
  | 'protocol';

/** A request that did not do what it should; `message` names verb, path and the server's reason, never a body. */
export class KubeError extends Error {
  readonly code: KubeErrorCode;
  /** HTTP status, if the server answered. */
  readonly status: number | undefined;
  /** Least wait in milliseconds that the server asks for. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: KubeErrorCode,
    message: string,
    options: ErrorOptions & { readonly status?: number; readonly retryAfterMs?: number } = {},
  ) {
    super(message, options);
    this.name = 'KubeError';
    this.code = code;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}
