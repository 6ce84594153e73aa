import { setTimeout as pause } from 'node:timers/promises';
import { expect, describe, it } from 'vitest';
import { startEcho } from '../../support/echo.ts';
import { freePort, haproxyVersions } from '../../support/haproxy.ts';
import { ingress } from '../../support/objects.ts';
import { configured, Instance, processesOf, serviceOn } from './instance.ts';

const HOST = 'shop.example.com';
const INGRESS = [ingress('shop', { rules: [[HOST, '/', 'shop:80']] })];
const [{ binary: newest } = { binary: '' }] = haproxyVersions().slice(-1);
/** The hard stop comes after 10 s; a loaded machine may be slow. */
const ORDERLY_MS = 6_000;

describe.each(haproxyVersions())('stop and start on HAProxy $version', ({ binary }) => {
  it('R12: serves the same before anything is rendered, and reloads nothing that did not change', async () => {
    const [one, two] = [await startEcho('one'), await startEcho('two')];
    const instance = await Instance.start({
      haproxy: binary,
      manifests: { 'shop.yaml': serviceOn('shop', [one.port]), 'ingress.yaml': INGRESS },
    });
    await instance.serves(HOST, '/', '"one"');
    // Served by a runtime operation: the worker was started from other files than those on disk.
    instance.write('shop.yaml', serviceOn('shop', [two.port]));
    await instance.serves(HOST, '/', '"two"');
    const { planId } = (await instance.vars()).render ?? {};

    // HAProxy tells its start in whole seconds: one within the second of an apply could not be told from one before it.
    await pause(1_100);
    const ended = await instance.stop('SIGTERM');
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(ended.ms).toBeLessThan(ORDERLY_MS);
    expect(processesOf(instance.stateDir)).toStrictEqual([]);

    // Nothing can be rendered now, what was applied last is served all the same.
    instance.write('config.yaml', [configured({ haproxyConfigg: {} })]);
    instance.forgetOutput();
    instance.launch();
    await instance.line(/configuration refused/);
    await instance.serves(HOST, '/', '"two"');
    expect((await instance.status('/readyz')).body).toContain('no valid configuration');

    instance.remove('config.yaml');
    await instance.until('ready', async () => (await instance.status('/readyz')).status === 200);
    const vars = await instance.vars();
    expect(vars.render?.planId).toBe(planId);
    expect(vars.epoch).toBe(2);
    expect(await instance.reloads()).toBe(0);
    await instance.serves(HOST, '/', '"two"');
    await Promise.all([one.stop(), two.stop()]);
  });
});

describe('haptic up', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'G14: ends in order at %s, with status 0 and nothing left behind',
    async (signal) => {
      const instance = await Instance.start({ haproxy: newest, manifests: {} });
      const ended = await instance.stop(signal);
      expect(ended).toMatchObject({ code: 0, signal: null });
      expect(ended.ms).toBeLessThan(ORDERLY_MS);
      expect(instance.messages()).toContain('shutting down, work in flight ends');
      expect(processesOf(instance.stateDir)).toStrictEqual([]);
    },
  );

  it('G14: ends in order when it never had a configuration', async () => {
    const instance = await Instance.prepare({
      haproxy: newest,
      manifests: { 'config.yaml': [configured({ nonsense: {} })] },
    });
    instance.launch();
    await instance.line(/configuration refused/);
    await instance.line(/haproxy runs/);
    const ended = await instance.stop();
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(ended.ms).toBeLessThan(ORDERLY_MS);
    expect(processesOf(instance.stateDir)).toStrictEqual([]);
  });

  it('G14: ends in order while it starts', async () => {
    const instance = await Instance.prepare({ haproxy: newest, manifests: {} });
    instance.launch();
    await instance.until('the first words', () => instance.out.includes('HAPTIC standalone'));
    const ended = await instance.stop();
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(ended.ms).toBeLessThan(ORDERLY_MS);
    expect(processesOf(instance.stateDir)).toStrictEqual([]);
  });

  it('prints what runs and lines to paste', async () => {
    const instance = await Instance.start({
      haproxy: newest,
      manifests: { 'shop.yaml': serviceOn('shop', [9]), 'ingress.yaml': INGRESS },
    });
    await instance.until('the lines', () => instance.out.includes('Ctrl-C'));
    const { http, metrics } = instance.ports;
    expect(instance.out).toContain(`HAPTIC standalone over ${instance.manifests}`);
    expect(instance.out).toContain(`http://127.0.0.1:${String(metrics)}/debug/vars`);
    expect(instance.out).toContain(
      `  curl --resolve ${HOST}:${String(http)}:127.0.0.1 http://${HOST}:${String(http)}/\n`,
    );
  });

  it('answers for loopback endpoints with --demo, also for those that come later', async () => {
    const [first, second] = [await freePort(), await freePort()];
    const instance = await Instance.start({
      haproxy: newest,
      manifests: { 'shop.yaml': serviceOn('shop', [first]), 'ingress.yaml': INGRESS },
      flags: ['--demo'],
    });
    await instance.serves(
      HOST,
      '/hello',
      `demo backend on port ${String(first)}: GET ${HOST}/hello`,
    );
    instance.write('shop.yaml', serviceOn('shop', [second]));
    await instance.serves(HOST, '/', `demo backend on port ${String(second)}`);
  });

  it('prints JSON lines and nothing else with --output json', async () => {
    const instance = await Instance.start({
      haproxy: newest,
      manifests: { 'shop.yaml': serviceOn('shop', [9]), 'ingress.yaml': INGRESS },
      flags: ['--output', 'json'],
    });
    await instance.line(/^serving$/);
    await instance.stop();
    const lines = instance.out.split('\n').filter((line) => line !== '');
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(entries.find(({ msg }) => msg === 'starting')).toMatchObject({
      manifests: instance.manifests,
      httpPort: instance.ports.http,
    });
    expect(entries.find(({ msg }) => msg === 'serving')).toMatchObject({
      try: [expect.stringContaining(`http://${HOST}`) as string],
    });
  });

  it('S23: tells each step of a change in a line', async () => {
    const instance = await Instance.start({
      haproxy: newest,
      manifests: { 'shop.yaml': serviceOn('shop', [9]), 'ingress.yaml': INGRESS },
    });
    instance.forgetOutput();
    instance.write('shop.yaml', serviceOn('shop', [9, 10]));
    await instance.line(/changed: endpointslices default\/shop-1 added/);
    await instance.line(/rendered [0-9a-f]{10} in .*: \d+ cells? evaluated, \d+ reused/);
    await instance.line(/haproxy: applied [0-9a-f]{10} by 1 runtime operation, no reload in/);
    await instance.line(/checked [0-9a-f]{10}: passed in/);
    // The start and the change.
    await instance.until('the latency', async () => {
      return (await instance.metric('haptic_change_to_applied_seconds_count')) >= 2;
    });
  });
});
