import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { bootstrapped } from '../support/chart-bootstrap.ts';
import { container, named, ofKind, present, rendered } from '../support/chart.ts';
import { haproxyVersions } from '../support/haproxy.ts';
import { run } from './harness/run.ts';

describe('the first configuration of HAProxy', () => {
  test.each(haproxyVersions().map(({ version }) => version))(
    'R11: on %s is alive and not ready, and serves nobody',
    async (version) => {
      for (const values of ['defaults', 'customised'] as const) {
        const { health, client } = await bootstrapped(await rendered({ values }), version);
        expect(health).toStrictEqual({ '/healthz': 200, '/ready': 503 });
        expect(client).toBe(503);
      }
    },
  );

  test('listens where the probes and the Service look for it', async () => {
    for (const values of ['defaults', 'customised'] as const) {
      const objects = await rendered({ values });
      const text = present(named(objects, 'ConfigMap', '-bootstrap').data?.['haproxy.cfg']);
      const bound = [...text.matchAll(/bind \S*:(\d+)$/gm)].map(([, port]) => Number(port));
      const ports = container(named(objects, 'Deployment', '-haproxy'), 'haproxy').ports ?? [];
      const portOf = (name: string): number | undefined =>
        ports.find((port) => port.name === name)?.containerPort;
      expect(bound).toStrictEqual([portOf('stats'), portOf('http')]);
    }
  });
});

describe('helm test', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  /** A server that answers every request with a status, and writes down the paths. */
  const answering = async (status: () => number): Promise<{ port: number; paths: string[] }> => {
    const paths: string[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url ?? '');
      response.writeHead(status()).end();
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { port: (server.address() as AddressInfo).port, paths };
  };

  test('asks the controller and HAProxy until all of them are ready', async () => {
    const objects = await rendered();
    const [pod] = ofKind(objects, 'Pod');
    const { command, args } = container(present(pod), 'test');
    expect(command).toStrictEqual(['/usr/local/bin/node', '-e']);
    let asked = 0;
    const controller = await answering(() => (asked++ < 2 ? 503 : 200));
    const haproxy = await answering(() => 200);
    // As Kubernetes tells the addresses of Services.
    const env = {
      HAPTIC_CONTROLLER_SERVICE_HOST: '127.0.0.1',
      HAPTIC_CONTROLLER_SERVICE_PORT_HEALTHZ: String(controller.port),
      HAPTIC_HAPROXY_METRICS_SERVICE_HOST: '127.0.0.1',
      HAPTIC_HAPROXY_METRICS_SERVICE_PORT_STATS: String(haproxy.port),
      HAPTIC_HAPROXY_METRICS_SERVICE_PORT_AGENT_METRICS: String(haproxy.port),
    };
    const outcome = await run([process.execPath, '-e', present(args?.[0])], { env });
    expect(outcome.status, outcome.stdout + outcome.stderr).toBe(0);
    expect(controller.paths).toStrictEqual(['/readyz', '/readyz', '/readyz']);
    expect(haproxy.paths).toStrictEqual(['/healthz', '/ready', '/healthz']);
    expect(outcome.stdout.match(/: 200$/gm)).toHaveLength(4);
  });

  test('asks Services that are there, by the names that their variables have', async () => {
    for (const values of ['defaults', 'customised'] as const) {
      const objects = await rendered({ values });
      const script = present(container(present(ofKind(objects, 'Pod')[0]), 'test').args?.[0]);
      const asked = [...script.matchAll(/at\('(\w+)', '\S+'\)\('(\w+)'\)/g)].map(
        ([, service = '', port = '']) => `${service} ${port}`,
      );
      const variable = (name: string): string => name.toUpperCase().replaceAll('-', '_');
      const there = ofKind(objects, 'Service').flatMap(({ metadata, spec }) =>
        (spec?.ports ?? []).map(
          ({ name }) => `${variable(metadata.name)} ${variable(present(name))}`,
        ),
      );
      expect(asked.length).toBe(4);
      for (const one of asked) expect(there).toContain(one);
    }
  });
});
