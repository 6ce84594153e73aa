/** Objects served by a real HAProxy: rendered by the engine, written as an agent would, requested over HTTP and HTTPS. */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import type { Render } from '../../src/render/render.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { Echo } from './echo.ts';
import { freePort, startHaproxy, waitFor, type RunningHaproxy } from './haproxy.ts';
import type { TestKeyPair } from './key-pairs.ts';
import { snapshotFor } from './objects.ts';
import { libraryEngine, renderAll, writeRender } from './rendered.ts';

/** One request. */
export interface ProxiedRequest {
  readonly scheme: 'http' | 'https';
  /** Value of the Host header; for HTTPS its name is the server name too. */
  readonly host: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as a POST. Default: a GET without a body. */
  readonly body?: string;
}

/** What came back. */
export interface ProxiedAnswer {
  readonly status: number;
  readonly location: string | undefined;
  /** What the backend was asked, when one answered. */
  readonly echo: Echo | undefined;
  readonly body: string;
  /** Alternative names of the certificate that was served. */
  readonly certificate: string | undefined;
}

/** A HAProxy with rendered objects. */
export interface Proxied {
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly statsPort: number;
  readonly directory: string;
  readonly haproxy: RunningHaproxy;
  readonly get: (request: ProxiedRequest) => Promise<ProxiedAnswer>;
  /** Serves other objects from now on, after a reload. */
  readonly serve: (objects: readonly KubeObject[]) => Promise<Render>;
  readonly stop: () => Promise<void>;
}

const pemOf = ({ certificate, key }: TestKeyPair): string =>
  `${certificate.trim()}\n${key.trim()}\n`.replaceAll('\r', '');

/** Starts HAProxy with no object at all; then {@link Proxied.serve} some. */
export const startProxied = async (
  binary: string,
  defaultPair: TestKeyPair,
  config?: KubeObject,
): Promise<Proxied> => {
  const directory = mkdtempSync(join(tmpdir(), 'hap-'));
  const [httpPort, httpsPort, statsPort] = [await freePort(), await freePort(), await freePort()];
  const extraContext = { bindAddress: '127.0.0.1', httpPort, httpsPort, statsPort, maxconn: 500 };
  const engine = await libraryEngine({
    ...(config === undefined ? {} : { config }),
    overrides: { baseDir: directory, extraContext },
    defaultPem: pemOf(defaultPair),
  });
  writeRender(renderAll(engine, snapshotFor(engine.watched, [])), directory);
  const haproxy = await startHaproxy({
    binary,
    dir: directory,
    configFile: 'haproxy.cfg',
    workerSocket: join(directory, 'haproxy-worker.sock'),
    args: ['-dr'],
  });
  const clients = new Clients(httpPort, httpsPort);
  const get = (request: ProxiedRequest): Promise<ProxiedAnswer> => clients.get(request);
  const serve = async (objects: readonly KubeObject[]): Promise<Render> => {
    const render = renderAll(engine, snapshotFor(engine.watched, objects));
    writeRender(render, directory);
    const { success, output } = await haproxy.reload();
    if (!success) throw new Error(`HAProxy refuses the render: ${output}`);
    clients.renew();
    const old = { scheme: 'http', host: 'settled.test', path: '/' } as const;
    await waitFor(async () => (await get(old)).status > 0, { what: 'the new worker' });
    return render;
  };
  const stop = async (): Promise<void> => {
    clients.renew();
    await haproxy.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  return { httpPort, httpsPort, statsPort, directory, haproxy, get, serve, stop };
};

class Clients {
  readonly #ports: { readonly http: number; readonly https: number };
  #http = new HttpAgent({ keepAlive: true });
  #https = new HttpsAgent({ keepAlive: true });

  constructor(http: number, https: number) {
    this.#ports = { http, https };
  }

  /** Drops kept connections, which lead to the old worker. */
  renew(): void {
    this.#http.destroy();
    this.#https.destroy();
    [this.#http, this.#https] = [
      new HttpAgent({ keepAlive: true }),
      new HttpsAgent({ keepAlive: true }),
    ];
  }

  get({ scheme, host, path, headers, body }: ProxiedRequest): Promise<ProxiedAnswer> {
    const options: RequestOptions = {
      host: '127.0.0.1',
      port: this.#ports[scheme],
      path,
      ...(body === undefined ? {} : { method: 'POST' }),
      headers: { ...headers, host },
      timeout: 5_000,
    };
    const servername = host.replace(/:\d+$/, '').toLowerCase();
    return new Promise((resolve, reject) => {
      const request =
        scheme === 'http'
          ? httpRequest({ ...options, agent: this.#http })
          : httpsRequest({
              ...options,
              agent: this.#https,
              servername,
              rejectUnauthorized: false,
            });
      request.on('error', reject);
      request.on('timeout', () => request.destroy(new Error(`no answer for ${host}${path}`)));
      request.on('response', (response) => {
        const { socket } = response;
        const certificate =
          socket instanceof TLSSocket ? socket.getPeerCertificate().subjectaltname : undefined;
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('end', () => {
          const text = Buffer.concat(parts).toString();
          const isEcho = response.headers['content-type'] === 'application/json';
          resolve({
            status: response.statusCode ?? 0,
            location: response.headers.location,
            echo: isEcho ? (JSON.parse(text) as Echo) : undefined,
            body: text,
            certificate,
          });
        });
      });
      request.end(body);
    });
  }
}
