import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { httpServer, type HttpPath } from '../../../src/http/server.ts';
import { initialStatus, statusStep } from '../../../src/http/status.ts';

/** A server while the test runs; its port. */
const serving = (
  metrics: () => Promise<string> = () => Promise.resolve('up 1\n'),
  paths?: readonly HttpPath[],
) =>
  new Promise<number>((resolve, reject) => {
    const status = statusStep(initialStatus('2026-01-01T00:00:00Z', 1), {
      type: 'ConfigLoaded',
      generation: 'g',
      watched: [],
    });
    const subscription = httpServer({
      host: '127.0.0.1',
      port: 0,
      status: () => status,
      metrics,
      ...(paths && { paths }),
    }).subscribe({ next: resolve, error: reject });
    onTestFinished(() => {
      subscription.unsubscribe();
    });
  });

/** The answer to a request line, whatever it is. */
const answerTo = (port: number, line: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`${line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    });
    socket.on('data', (part: Buffer) => (text += part.toString()));
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });

describe('the status server (S23)', () => {
  it('answers only the paths it is for, so that what is internal can listen elsewhere', async () => {
    const at = `http://127.0.0.1:${String(await serving(undefined, ['/healthz', '/readyz']))}`;
    expect((await fetch(`${at}/healthz`)).status).toBe(200);
    const hidden = await fetch(`${at}/debug/vars`);
    expect(hidden.status).toBe(404);
    expect(await hidden.text()).toBe('there is /healthz, /readyz\n');
  });

  it('answers health, readiness with what is missing, metrics and variables', async () => {
    const at = `http://127.0.0.1:${String(await serving())}`;
    expect(await (await fetch(`${at}/healthz`)).text()).toBe('ok\n');
    const ready = await fetch(`${at}/readyz?verbose`);
    expect(ready.status).toBe(503);
    expect(await ready.text()).toBe(
      'watched resources have not synced yet\nno apply confirmed by any HAProxy pod yet\n',
    );
    const metrics = await fetch(`${at}/metrics`);
    expect(metrics.headers.get('content-type')).toContain('version=0.0.4');
    expect(await metrics.text()).toBe('up 1\n');
    const vars = await fetch(`${at}/debug/vars`);
    expect(await vars.json()).toMatchObject({ config: { generation: 'g' }, minPods: 1 });
    expect(vars.headers.get('cache-control')).toBe('no-store');
  });

  it.each(['/', '/metrics/', '/constructor', '/__proto__', '/toString', '//', '/%', 'http://['])(
    'knows no %s, and lives on',
    async (path) => {
      const port = await serving();
      expect(await answerTo(port, `GET ${path}`)).toMatch(/^HTTP\/1\.1 404 /);
      expect(await answerTo(port, 'GET /healthz')).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it('changes nothing, and answers HEAD without a body', async () => {
    const port = await serving();
    expect(await answerTo(port, 'POST /debug/vars')).toMatch(/^HTTP\/1\.1 405 /);
    const head = await answerTo(port, 'HEAD /healthz');
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    expect(head).not.toContain('ok\n');
  });

  it('tells a failure of its own as one', async () => {
    const port = await serving(() => Promise.reject(new Error('no metrics')));
    expect(await answerTo(port, 'GET /metrics')).toMatch(/^HTTP\/1\.1 500 [^]*no metrics/);
  });

  it('errors when its port is taken', async () => {
    const port = await serving();
    const error = await new Promise<unknown>((resolve) => {
      httpServer({
        host: '127.0.0.1',
        port,
        status: () => initialStatus(''),
        metrics: () => Promise.resolve(''),
      }).subscribe({ error: resolve });
    });
    expect(error).toMatchObject({ code: 'EADDRINUSE' });
  });
});
