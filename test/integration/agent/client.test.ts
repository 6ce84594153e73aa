import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Observable } from 'rxjs';
import { AgentError, type Pod } from '../../../src/ports.ts';
import { createAgentClient, type ClosableAgentClient } from '../../../src/sinks/agent-client.ts';
import { freePort, waitFor } from '../../support/haproxy.ts';
import { requestOf, valueOf } from './agent-bed.ts';

const ROLES = { applied: null, running: null, workerOperations: 0, lkg: null };
const STATE = {
  protocol: 1,
  agentVersion: '9',
  operationKinds: ['server_add', 'of_the_future'],
  features: [],
  roles: ROLES,
  highestEpoch: 3,
  haproxy: { version: '3.4.7', workerPid: 1, workerStartMs: 2, oldWorkers: 0 },
  files: [{ path: 'a', digest: 'b', size: 1, mode: 7 }],
  pendingReload: null,
  pendingDeletes: 0,
  lastReload: null,
};

/** An agent that answers whatever a test wants: a real one cannot be made to answer nonsense. */
describe('the client of the agents', () => {
  let server: Server;
  let client: ClosableAgentClient;
  let pod: Pod;
  let respond: (response: ServerResponse, body: Buffer) => void;
  let aborted = 0;

  beforeEach(async () => {
    aborted = 0;
    server = createServer((request, response) => {
      const parts: Buffer[] = [];
      response.on('close', () => (aborted += response.writableFinished ? 0 : 1));
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => respond(response, Buffer.concat(parts)));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    pod = {
      key: 'k',
      name: 'pod-1',
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    };
    client = createAgentClient({ token: 'token', timeoutMs: { state: 400, apply: 400 } });
  });

  afterEach(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });

  const answerWith =
    (status: number, body: unknown) =>
    (response: ServerResponse): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
  const codeOf = (call: Observable<unknown>): Promise<string> =>
    valueOf(call).then(
      () => 'no error',
      (error: unknown) => (error instanceof AgentError ? error.code : String(error)),
    );
  const state = (): Observable<unknown> => client.state(pod, { verify: false });

  test('reads what it knows and leaves out what it does not', async () => {
    respond = answerWith(200, { ...STATE, more: 'of a newer agent' });
    expect(await valueOf(state())).toEqual({
      ...STATE,
      files: [{ path: 'a', digest: 'b', size: 1 }],
    });
  });

  test('names each failure by a stable code', async () => {
    const cases: [number, unknown, string][] = [
      [401, { error: 'no' }, 'unauthorized'],
      [503, { error: 'starting' }, 'not-ready'],
      [400, { error: 'bad' }, 'protocol'],
      [500, '<html>', 'protocol'],
      [200, 'not json', 'protocol'],
      [200, { ...STATE, roles: null }, 'protocol'],
      [200, { ...STATE, files: [{ path: 1 }] }, 'protocol'],
      [200, [], 'protocol'],
    ];
    for (const [status, body, code] of cases) {
      respond = answerWith(status, body);
      expect([status, body, await codeOf(state())]).toEqual([status, body, code]);
    }
    respond = () => undefined;
    expect(await codeOf(state())).toBe('timeout');
    respond = (response) => response.destroy();
    expect(await codeOf(state())).toBe('unreachable');
    const nobody = { ...pod, url: `http://127.0.0.1:${await freePort()}` };
    expect(await codeOf(client.plan(nobody))).toBe('unreachable');
  });

  test('sends a frame, and takes outcomes and conflicts as answers', async () => {
    const outcome = {
      outcome: 'rejected',
      roles: ROLES,
      error: { stage: 'reload', message: 'no' },
      failedOperations: [],
      operationsRun: 0,
      timings: { stage: 0, write: 0, operations: 0, reload: 0, confirmed: 0, total: 0 },
    };
    const request = requestOf({ files: { a: 'AAA', empty: '', b: 'BB' }, plan: '{"ü":1}' });
    let body: Buffer = Buffer.alloc(0);
    respond = (response, received) => {
      body = received;
      answerWith(422, outcome)(response);
    };
    expect(await valueOf(client.apply(pod, request))).toEqual(outcome);
    expect(body.subarray(0, 4).toString()).toBe('HPT1');
    const length = body.readUInt32BE(4);
    expect(JSON.parse(body.subarray(8, 8 + length).toString())).toEqual(request.manifest);
    expect(body.subarray(8 + length).toString()).toBe('AAABB{"ü":1}');
    const conflict = { conflict: 'missing_content', roles: ROLES, highestEpoch: 1, missing: ['a'] };
    respond = answerWith(409, conflict);
    expect(await valueOf(client.apply(pod, request))).toEqual(conflict);
    respond = answerWith(409, { ...conflict, conflict: 'of_the_future' });
    expect(await codeOf(client.apply(pod, request))).toBe('protocol');
  });

  test('asks nothing before it is subscribed, and aborts when it is unsubscribed', async () => {
    let asked = 0;
    respond = () => (asked += 1);
    const call = state();
    expect(asked).toBe(0);
    const subscription = call.subscribe();
    await waitFor(() => asked === 1);
    subscription.unsubscribe();
    await waitFor(() => aborted === 1);
    expect(asked).toBe(1);
  });
});
