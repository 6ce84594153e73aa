import { KubeError, type KubeErrorCode } from './client.ts';

const CODES: ReadonlyMap<number, KubeErrorCode> = new Map<number, KubeErrorCode>([
  [400, 'invalid'],
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, 'not-found'],
  [405, 'invalid'],
  [409, 'conflict'],
  [410, 'gone'],
  [415, 'invalid'],
  [422, 'invalid'],
  [429, 'too-many-requests'],
]);

/** What the server said about a request that failed. */
export interface Refusal {
  /** Verb and path, for the message. */
  readonly request: string;
  /** HTTP status; a `code` in the answer is used where there is none, as in an ERROR event of a watch. */
  readonly status?: number;
  /** The answer: a Status object, or anything. */
  readonly answer: unknown;
  /** Header Retry-After. */
  readonly retryAfter?: string | undefined;
}

/**
 * The error that an answer means. Its message carries the server's reason, at most 500 characters of it, and of the answer
 * nothing else. A resourceVersion that the server has not reached (after a restore, or at a replica that lags behind) is of
 * no more use than one it has forgotten, so both are `gone`.
 */
export const refusalError = ({ request, status, answer, retryAfter }: Refusal): KubeError => {
  const said = statusOf(answer);
  const code = status ?? said.code ?? 500;
  const retryAfterMs = waitOf(retryAfter) ?? said.retryAfterMs;
  return new KubeError(
    said.versionTooLarge ? 'gone' : codeOf(code),
    `${request}: status ${code}: ${said.message ?? 'no reason given'}`,
    { status: code, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
  );
};

const codeOf = (status: number): KubeErrorCode =>
  CODES.get(status) ?? (status >= 500 ? 'server' : status >= 400 ? 'invalid' : 'protocol');

interface Said {
  readonly code: number | undefined;
  readonly message: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly versionTooLarge: boolean;
}

/** What a Status object (meta/v1) says, whatever else it holds. */
const statusOf = (answer: unknown): Said => {
  const { code, message, details } = membersOf(answer);
  const { retryAfterSeconds, causes } = membersOf(details);
  const text = typeof message === 'string' ? message.slice(0, 500) : undefined;
  return {
    code: typeof code === 'number' ? code : undefined,
    message: text,
    retryAfterMs:
      typeof retryAfterSeconds === 'number' && retryAfterSeconds > 0
        ? retryAfterSeconds * 1_000
        : undefined,
    versionTooLarge:
      Array.isArray(causes) &&
      causes.some((cause) => membersOf(cause)['reason'] === 'ResourceVersionTooLarge'),
  };
};

const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** API servers send whole seconds; a date is not understood. */
const waitOf = (retryAfter: string | undefined): number | undefined =>
  retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1_000 : undefined;

/**
 * Longest wait in milliseconds before a request that failed is tried again: 5 s while the API server cannot be reached,
 * for asking costs nobody anything and everybody waits for it to be back; 30 s after anything that it answered.
 */
export const longestWaitMs = (error: unknown): number =>
  error instanceof KubeError && (error.code === 'unreachable' || error.code === 'timeout')
    ? 5_000
    : 30_000;
