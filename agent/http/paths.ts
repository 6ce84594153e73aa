import type { IncomingMessage } from 'node:http';

const PUBLIC = ['/healthz', '/readyz', '/metrics'];

/** The path of a request without its query. */
export const pathOf = (request: IncomingMessage): string =>
  (request.url ?? '').split('?', 1)[0] ?? '';

/** Whether a request is for health or metrics, which tell nothing that needs a token. */
export const isPublic = (request: IncomingMessage): boolean => PUBLIC.includes(pathOf(request));
