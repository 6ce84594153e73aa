import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { bootstrapConfiguration } from '../../../src/cli/bootstrap.ts';
import { endOrphans } from '../../../src/cli/orphans.ts';
import { freePort, haproxyVersions, startHaproxy } from '../../support/haproxy.ts';
import { ingress, service, slice } from '../../support/objects.ts';
import { haptic, type Printed } from '../../support/terminal.ts';
import { configured } from './instance.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const [{ binary: newest } = { binary: '' }] = haproxyVersions().slice(-1);

const directory = (objects: readonly object[]): string => {
  const path = mkdtempSync(join(tmpdir(), 'hm-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true, force: true });
  });
  writeFileSync(join(path, 'all.yaml'), objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  return path;
};

const WEB = [
  service('web'),
  slice('web', { endpoints: ['10.0.0.1'] }),
  ingress('web', { rules: [['shop.example.com', '/', 'web:80']] }),
];

/** Prints a line that HAProxy refuses into every backend of a route. */
const REFUSED = configured({
  templateSnippets: { 'backend-600-bad': { template: '    timeout server soon\n' } },
});

describe.each(haproxyVersions())('on HAProxy $version', ({ binary }) => {
  it('the configuration before the first apply is accepted, and answers 503', async () => {
    const base = mkdtempSync('/tmp/hb-');
    onTestFinished(() => {
      rmSync(base, { recursive: true, force: true });
    });
    const httpPort = await freePort();
    writeFileSync(join(base, 'haproxy.cfg'), bootstrapConfiguration({ base, httpPort }));
    const haproxy = await startHaproxy({
      binary,
      dir: base,
      configFile: join(base, 'haproxy.cfg'),
      workerSocket: join(base, 'haproxy-worker.sock'),
    });
    const answer = await fetch(`http://127.0.0.1:${String(httpPort)}/`);
    expect(answer.status).toBe(503);
    expect(await answer.text()).toBe('starting');
    // About being root HAProxy may complain, about the configuration not.
    expect(haproxy.output()).not.toMatch(/ALERT|WARNING.*(?:parsing|config :)/);
    await haproxy.stop();
  });

  it('S63: validate accepts what HAProxy accepts', async () => {
    expect(await haptic(['validate', directory(WEB), '--haproxy', binary])).toStrictEqual({
      status: 0,
      out: 'HAProxy accepts the result\n',
      err: '',
    });
  });

  it('S63: validate refuses what HAProxy refuses, with its words, the template and the object', async () => {
    const path = directory([...WEB, REFUSED]);
    const { status, out, err } = await haptic(['validate', path, '--haproxy', binary]);
    expect(status).toBe(1);
    expect(out).toMatch(
      /^HAProxy refuses the result:\n.*haproxy\.cfg line \d+: .*'timeout server'/,
    );
    expect(err).toMatch(/^error: .*backend-600-bad.*:1: Service default\/web: RefusedByHAProxy: /);
  });
});

describe('haptic validate', () => {
  it('gives verdict and problems as JSON', async () => {
    const words = ['--haproxy', newest, '--output', 'json'];
    const good = await haptic(['validate', directory(WEB), ...words]);
    expect(JSON.parse(good.out)).toStrictEqual({ verdict: { result: 'passed' }, problems: [] });
    const bad = await haptic(['validate', directory([...WEB, REFUSED]), ...words]);
    expect({ status: bad.status, err: bad.err }).toStrictEqual({ status: 1, err: '' });
    expect(JSON.parse(bad.out)).toMatchObject({
      verdict: { result: 'refused' },
      problems: [{ reason: 'RefusedByHAProxy', object: { kind: 'Service', name: 'web' } }],
    });
  });

  it('fails on errors in the input that HAProxy never sees', async () => {
    const lost = ingress('lost', { rules: [['lost.example.com', '/', 'nothing:80']] });
    const { status, out, err } = await haptic([
      'validate',
      directory([...WEB, lost]),
      '--haproxy',
      newest,
    ]);
    expect(status).toBe(1);
    expect(out).toBe('1 error in the input; HAProxy accepts the rest\n');
    expect(err).toContain('ServiceNotFound');
  });

  it('leaves nothing behind', async () => {
    const manifests = directory(WEB);
    const dir = mkdtempSync(join(tmpdir(), 'haptic-leftovers-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    vi.stubEnv('TMPDIR', dir);
    onTestFinished(() => void vi.unstubAllEnvs());
    await haptic(['validate', manifests, '--haproxy', newest]);
    expect(readdirSync(dir)).toStrictEqual([]);
  });
});

/** The program as people start it. */
const started = async (...words: readonly string[]): Promise<Printed> => {
  const options = { env: { PATH: process.env['PATH'] ?? '' } };
  const run = promisify(execFile)(process.execPath, [MAIN, ...words], options);
  return run.then(
    ({ stdout, stderr }) => ({ status: 0, out: stdout, err: stderr }),
    (error: unknown) => {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { status: code, out: stdout, err: stderr };
    },
  );
};

describe('the program', () => {
  it('ends with the status of its command: 0 good, 1 bad input, 2 could not run', async () => {
    expect(await started('--help')).toMatchObject({ status: 0, err: '' });
    expect(await started('up', '--help')).toMatchObject({ status: 0, err: '' });
    expect(await started('render', '/nowhere')).toStrictEqual({
      status: 1,
      out: '',
      err: 'haptic render: /nowhere is no directory; name one that holds Kubernetes manifests (YAML or JSON)\n',
    });
    expect(await started('up', '/nowhere')).toMatchObject({ status: 1, out: '' });
    expect(await started('up', '/', '--bogus')).toMatchObject({ status: 2, out: '' });
    expect((await started('up', '/', '--log-level', 'loud')).err).toBe(
      'haptic up: --log-level takes debug, info, warn, error; see haptic up --help\n',
    );
    expect((await started('validate', '/', '--haproxy', '/nowhere')).err).toMatch(
      /^haptic validate: cannot run \/nowhere: no such file\n$/,
    );
  });
});

describe('haptic up that cannot end', () => {
  /** Calls itself HAProxy and does not listen to SIGTERM. */
  const DEAF =
    '#!/bin/sh\n[ "$1" = -v ] && { echo "HAProxy version 3.2.1"; exit; }\ntrap "" TERM\nwhile :; do sleep 1; done\n';

  it('G14: ends at once with status 130 at the second Ctrl-C, a second after the first', async () => {
    const [haproxy, state] = [join(directory([]), 'haproxy'), mkdtempSync('/tmp/hd-')];
    writeFileSync(haproxy, DEAF, { mode: 0o755 });
    onTestFinished(async () => {
      await endOrphans(join(state, 'haproxy'));
      rmSync(state, { recursive: true, force: true });
    });
    const ports = ['http', 'https', 'stats', 'metrics'].flatMap((name) => [`--${name}-port`, '0']);
    const words = [MAIN, 'up', directory(WEB), '--state-dir', state, '--haproxy', haproxy];
    const child = spawn(process.execPath, [...words, ...ports], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { PATH: process.env['PATH'] ?? '' },
    });
    let out = '';
    child.stdout.on('data', (data) => (out += String(data)));
    const ended = once(child, 'exit');
    await expect.poll(() => out, { timeout: 20_000 }).toContain('haproxy runs, pid');
    expect(out).toContain("HAProxy's own, with every request, at --log-level debug");
    child.kill('SIGINT');
    child.kill('SIGINT');
    await sleep(1_500);
    expect(child.exitCode).toBeNull();
    const at = performance.now();
    child.kill('SIGINT');
    expect(await ended).toStrictEqual([130, null]);
    expect(performance.now() - at).toBeLessThan(1_000);
  });
});
