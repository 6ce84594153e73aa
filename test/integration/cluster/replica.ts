/** `haptic run` as a process of its own, over a fake API server, with files of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { freePort, waitFor } from '../../support/haproxy.ts';
import { projectSecret } from '../../support/secret-volume.ts';
import { type FakeCluster, NAMESPACE } from './fake-cluster.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

/** What a replica is started with. */
export interface ReplicaOptions {
  readonly cluster: FakeCluster;
  readonly haproxy: string;
  readonly pair: TestKeyPair;
  /** Certificate of the authority of the agents. */
  readonly authority: string;
  readonly identity?: string;
  /** Further flags. */
  readonly flags?: readonly string[];
}

/** A replica of the controller that runs, or has ended. */
export class Replica {
  readonly lines: string[] = [];
  readonly #dir: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #ports: { readonly health: number; readonly metrics: number; readonly debug: number };

  private constructor(options: ReplicaOptions, ports: typeof Replica.prototype.ports) {
    const { cluster, haproxy, pair, authority, identity = 'replica-1', flags = [] } = options;
    this.#ports = ports;
    this.#dir = mkdtempSync('/tmp/hr-');
    const kubeconfig = join(this.#dir, 'kubeconfig');
    writeFileSync(kubeconfig, cluster.kubeconfig);
    const tlsDir = join(this.#dir, 'tls');
    projectSecret(tlsDir, {
      'tls.crt': pair.certificate,
      'tls.key': pair.key,
      'ca.crt': authority,
    });
    mkdirSync(join(this.#dir, 'work'));
    const listen = (port: number): string => `127.0.0.1:${String(port)}`;
    this.#child = spawn(
      process.execPath,
      [
        ...[MAIN, 'run', '--namespace', NAMESPACE, '--identity', identity],
        ...['--haproxy', haproxy, '--work-dir', join(this.#dir, 'work')],
        ...['--agent-tls-dir', tlsDir, '--health-listen', listen(ports.health)],
        ...['--metrics-listen', listen(ports.metrics), '--debug-listen', listen(ports.debug)],
        ...flags,
      ],
      {
        env: { PATH: process.env['PATH'], KUBECONFIG: kubeconfig },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.#ended = once(this.#child, 'exit');
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      this.lines.push(line);
    });
  }

  static async start(options: ReplicaOptions): Promise<Replica> {
    const [health, metrics, debug] = [await freePort(), await freePort(), await freePort()];
    return new Replica(options, { health, metrics, debug });
  }

  get ports(): { readonly health: number; readonly metrics: number; readonly debug: number } {
    return this.#ports;
  }

  /** What the log says, one message a line. */
  get log(): string {
    return this.lines.map((line) => (JSON.parse(line) as { msg: string }).msg).join('\n');
  }

  /** Status and text of `/readyz`. */
  async readiness(): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${String(this.#ports.health)}/readyz`);
    return `${String(response.status)} ${await response.text()}`;
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${String(this.#ports.metrics)}/metrics`)).text();
  }

  async debugVars(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${String(this.#ports.debug)}/debug/vars`)).text();
  }

  async untilReady(timeoutMs = 100_000): Promise<void> {
    await waitFor(async () => (await this.readiness()).startsWith('200'), {
      what: 'the replica to be ready',
      timeoutMs,
    }).catch((error: unknown) => {
      throw new Error(`not ready:\n${this.log}`, { cause: error });
    });
  }

  async untilLogged(pattern: RegExp, timeoutMs = 100_000): Promise<void> {
    await waitFor(() => pattern.test(this.log), { what: String(pattern), timeoutMs }).catch(
      (error: unknown) => {
        throw new Error(`not logged: ${String(pattern)}\n${this.log}`, { cause: error });
      },
    );
  }

  /** Asks it to end; its exit status, and how long that took in milliseconds. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<{ status: number | null; ms: number }> {
    const startedAt = performance.now();
    this.#child.kill(signal);
    await this.#ended;
    return { status: this.#child.exitCode, ms: performance.now() - startedAt };
  }

  async dispose(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.end('SIGKILL');
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
