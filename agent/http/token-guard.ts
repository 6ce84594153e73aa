import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Guard, GuardReports } from './guard.ts';
import { isPublic } from './paths.ts';

const MIN_TOKEN_LENGTH = 16;

/**
 * Plain HTTP with a bearer token for everything but health and metrics: for a loopback address.
 *
 * @throws when the token cannot be used
 */
export async function createTokenGuard(file: string, { metrics }: GuardReports): Promise<Guard> {
  const token = (await readFile(file, 'utf8')).trim();
  if (token.length < MIN_TOKEN_LENGTH) {
    throw new Error(`the token must have at least ${MIN_TOKEN_LENGTH} characters`);
  }
  const expected = sha256(`Bearer ${token}`);
  return {
    createServer: (listener) => createServer(listener),
    refusal: (request) => {
      if (isPublic(request)) return undefined;
      if (timingSafeEqual(sha256(request.headers.authorization ?? ''), expected)) return undefined;
      metrics.count('haptic_agent_refused_connections_total', 'token');
      return 'a valid bearer token is needed';
    },
    isOutdated: () => false,
    close: () => undefined,
  };
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();
