/** A real HAProxy that runs the first configuration of the chart's pods. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { named, present, type Rendered } from './chart.ts';
import { freePort, haproxyVersions, startHaproxy } from './haproxy.ts';

/** What it answered. */
export interface Bootstrapped {
  /** Statuses by path, of the statistics port. */
  readonly health: Readonly<Record<string, number>>;
  /** Status of a request of a client. */
  readonly client: number;
  /** Labels of each metric it exports. */
  readonly metrics: Readonly<Record<string, readonly string[]>>;
}

/** Starts it with the directory and the ports replaced, asks, and stops it. */
export async function bootstrapped(
  objects: readonly Rendered[],
  version: string,
): Promise<Bootstrapped> {
  const { binary } = present(haproxyVersions().find((tested) => tested.version === version));
  const text = present(named(objects, 'ConfigMap', '-bootstrap').data?.['haproxy.cfg']);
  const dir = mkdtempSync(join(tmpdir(), 'boot-'));
  const [stats, http] = [await freePort(), await freePort()];
  const ports = [stats, http];
  writeFileSync(
    join(dir, 'haproxy.cfg'),
    text
      .replaceAll('/etc/haproxy', dir)
      .replace(/bind \S+:\d+/g, () => `bind 127.0.0.1:${ports.shift()}`),
  );
  const haproxy = await startHaproxy({
    binary,
    dir,
    configFile: 'haproxy.cfg',
    workerSocket: join(dir, 'haproxy-worker.sock'),
  });
  try {
    const ask = (port: number, path: string): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}${path}`);
    const exported = await (await ask(stats, '/metrics')).text();
    return {
      health: {
        '/healthz': (await ask(stats, '/healthz')).status,
        '/ready': (await ask(stats, '/ready')).status,
      },
      client: (await ask(http, '/')).status,
      metrics: metricsOf(exported),
    };
  } finally {
    await haproxy.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

const metricsOf = (text: string): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    [...text.matchAll(/^(haproxy_\w+)(?:\{([^}]*)\})? /gm)].map(([, name = '', labels = '']) => [
      name,
      [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
    ]),
  );
