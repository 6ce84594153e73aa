import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { ApplyConflict } from '../../src/protocol/answers.ts';
import { LIMITS } from '../../src/protocol/protocol.ts';
import type { Applier } from '../apply/apply.ts';
import type { Drift } from '../drift/verify.ts';
import { BadRequest, ClientGone, Conflict, messageOf } from '../failures.ts';
import { Frame } from './frame.ts';
import type { Guard } from './guard.ts';
import { rolesOf } from '../apply/holding.ts';
import { parseManifest } from './manifest.ts';
import { isPublic, pathOf } from './paths.ts';
import type { Pod } from '../pod.ts';
import { readState } from './state.ts';

/** What the listeners need. */
export interface Served {
  readonly pod: Pod;
  readonly applier: Applier;
  /** Who may speak with the control listener. */
  readonly guard: Guard;
  /** Looks for what somebody else has changed, and repairs what it can. */
  readonly verify: () => Promise<Drift>;
  /** Whether the start-up is finished. */
  readonly isStarted: () => boolean;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The listener of the controller: everything, for whom the guard lets in. */
export function createControlServer(served: Served): Server {
  const { guard } = served;
  const server = guard.createServer((request, response) => {
    const refusal = guard.refusal(request);
    if (refusal !== undefined || guard.isOutdated(request)) {
      response.setHeader('connection', 'close');
    }
    if (refusal !== undefined) {
      send(response, 401, { error: refusal });
      return;
    }
    const handler = isPublic(request) ? answerPublic(served) : answerControl(served);
    void handler(request, response).catch((error: unknown) => {
      served.pod.log.error('request failed', { error: messageOf(error) });
      if (!response.headersSent) send(response, 500, { error: 'internal error' });
      else response.destroy();
    });
  });
  server.headersTimeout = 10_000;
  server.requestTimeout = 0; // a body may take long, but must not fall silent: see bodyIdleMs
  server.keepAliveTimeout = 120_000;
  return server;
}

/** A listener for health and metrics only. */
export function createPublicServer(served: Served): Server {
  return createServer((request, response) => {
    if (isPublic(request)) void answerPublic(served)(request, response);
    else send(response, 404, { error: 'not found' });
  });
}

const answerPublic =
  ({ pod, isStarted }: Served): Handler =>
  async (request, response) => {
    await Promise.resolve();
    if (request.method !== 'GET') {
      send(response, 405, { error: 'use GET' });
      return;
    }
    if (pathOf(request) === '/metrics') {
      sendMetrics(pod, response);
      return;
    }
    // Never takes itself back: a failing apply must not drain the pod and keep the repair away.
    const ready = isStarted() && pod.holding.confirmed;
    const healthy = pathOf(request) === '/healthz' || ready;
    send(response, healthy ? 200 : 503, { ok: healthy });
  };

function sendMetrics({ metrics, holding, deletes }: Pod, response: ServerResponse): void {
  metrics.set('haptic_agent_pending_deletes', deletes.size);
  metrics.set('haptic_agent_pending_reload', holding.pending === null ? 0 : 1);
  metrics.set('haptic_agent_resident_memory_bytes', process.memoryUsage.rss());
  response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  response.end(metrics.text());
}

const answerControl =
  (served: Served): Handler =>
  async (request, response) => {
    if (!served.isStarted()) {
      send(response, 503, { error: 'the agent is starting' });
      return;
    }
    const route = `${request.method ?? ''} ${pathOf(request)}`;
    switch (route) {
      case 'GET /v1/state':
        return answerState(served, request, response);
      case 'GET /v1/plan':
        return answerPlan(served.pod, response);
      case 'POST /v1/apply':
        return answerApply(served, request, response);
      default:
        send(response, 404, { error: 'not found' });
    }
  };

async function answerState(
  { pod, verify }: Served,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const query = new URL(request.url ?? '/', 'http://agent').searchParams;
  const drift = query.get('verify') === '1' ? await verify() : undefined;
  send(response, 200, await readState(pod, drift));
}

async function answerPlan(pod: Pod, response: ServerResponse): Promise<void> {
  const { holding, plans, lock } = pod;
  const pieces = await lock.run(() => plans.read(holding.running, holding.workerOperations));
  response.writeHead(200, { 'content-type': 'application/json' });
  for await (const piece of pieces) {
    if (response.destroyed) continue; // read to the end: that closes the files
    if (!response.write(piece)) await drained(response);
  }
  response.end();
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    response.once('drain', resolve);
    response.once('close', resolve);
  });

async function answerApply(
  { pod, applier }: Served,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const frame = new Frame(request as AsyncIterable<Uint8Array>, {
    longestMs: pod.options.bodyIdleMs,
    onTooLong: () => request.destroy(new Error('the body fell silent')),
  });
  try {
    if (Number(request.headers['content-length'] ?? 0) > LIMITS.bodyBytes) {
      throw new BadRequest('the body is too large', 413);
    }
    const manifest = parseManifest(await frame.manifest());
    const outcome = await applier.apply({ manifest, frame, isGone: () => response.destroyed });
    send(response, outcome.outcome === 'rejected' ? 422 : 200, outcome);
  } catch (error: unknown) {
    answerFailure(pod, response, error);
  }
  await frame.discard();
}

function answerFailure(pod: Pod, response: ServerResponse, error: unknown): void {
  if (error instanceof Conflict) {
    const conflict: ApplyConflict = {
      conflict: error.reason,
      roles: rolesOf(pod.holding),
      highestEpoch: pod.holding.highestEpoch,
      ...(error.missing.length > 0 ? { missing: error.missing } : {}),
    };
    send(response, 409, conflict);
  } else if (error instanceof BadRequest) {
    send(response, error.status, { error: error.message });
  } else if (!(error instanceof ClientGone) && !response.destroyed) {
    send(response, 400, { error: messageOf(error) });
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}
