import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Applier } from './apply/apply.ts';
import type { Log } from './log.ts';
import type { AgentOptions, ListenAddress } from './options.ts';
import { Pacer } from './haproxy/pacer.ts';
import { createPod, persist } from './pod.ts';
import { verify } from './drift/verify.ts';
import { recover } from './apply/recovery.ts';
import { createControlServer, createPublicServer, type Served } from './http/server.ts';
import type { Guard, GuardReports } from './http/guard.ts';
import { createMutualTlsGuard } from './http/mutual-tls.ts';
import { createTokenGuard } from './http/token-guard.ts';
import { placeBootstrap } from './files/bootstrap.ts';
import { observeWorker } from './haproxy/worker-watch.ts';

/** A running agent. */
export interface RunningAgent {
  /** Real addresses, as `host:port`. */
  readonly listen: string;
  readonly metricsListen: string | undefined;
  /** Lets the apply in flight end, then stops. */
  readonly close: () => Promise<void>;
}

/** How long a start waits for HAProxy before the agent serves without it, in milliseconds. */
const FIRST_WORKER_MS = 10_000;

/**
 * Starts an agent: puts the bootstrap file in place where one is needed, listens at once (answering 503 until it knows what
 * the pod holds), recovers, waits for HAProxy.
 *
 * @throws when token, credentials or bootstrap file are not usable, a port is taken, or the base directory is not
 */
export async function startAgent(options: AgentOptions, log: Log): Promise<RunningAgent> {
  const pod = await createPod(options, log);
  await bootstrapped(options, log);
  const guard = await guardOf(options, pod);
  const pacer = new Pacer(pod);
  let started = false;
  const served: Served = {
    pod,
    applier: new Applier(pod, pacer),
    guard,
    verify: () => verify(pod, () => pacer.owe()),
    isStarted: () => started,
  };
  const servers: Server[] = [createControlServer(served)];
  const listen = await listening(servers[0], options.listen);
  let metricsListen: string | undefined;
  if (options.metricsListen !== undefined) {
    const server = createPublicServer(served);
    servers.push(server);
    metricsListen = await listening(server, options.metricsListen);
  }
  log.info('listening', { listen, metricsListen: metricsListen ?? null, pid: process.pid });
  await recover(pod);
  await bootstrapped(options, log); // a first apply that was interrupted is taken back, its main file too
  await firstWorker(pod, performance.now() + FIRST_WORKER_MS);
  started = true;
  pacer.start();
  log.info('ready', { running: pod.holding.running });
  const close = async (): Promise<void> => {
    pacer.stop();
    guard.close();
    for (const server of servers) server.close();
    for (const server of servers) server.closeIdleConnections();
    await pod.lock.idle();
    await persist(pod);
    for (const server of servers) server.closeAllConnections();
  };
  return { listen, metricsListen, close };
}

const guardOf = ({ access }: AgentOptions, reports: GuardReports): Promise<Guard> =>
  access.kind === 'token'
    ? createTokenGuard(access.tokenFile, reports)
    : createMutualTlsGuard(access, reports);

async function bootstrapped(options: AgentOptions, log: Log): Promise<void> {
  if (await placeBootstrap(options)) log.info('the bootstrap file was put in place');
}

async function firstWorker(
  pod: Awaited<ReturnType<typeof createPod>>,
  deadline: number,
): Promise<void> {
  while (performance.now() < deadline) {
    const info = await pod.lock.run(() => observeWorker(pod));
    if (info !== null) return;
    await sleep(100);
  }
  pod.log.warn('HAProxy does not answer yet');
}

function listening(server: Server | undefined, { host, port }: ListenAddress): Promise<string> {
  return new Promise((resolve, reject) => {
    if (server === undefined) {
      reject(new Error('no server'));
      return;
    }
    server.once('error', reject);
    server.listen({ host, port }, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') {
        reject(new Error('no address'));
        return;
      }
      const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
      resolve(`${name}:${address.port}`);
    });
  });
}
