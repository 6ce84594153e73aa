import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  freePort,
  haproxyVersions,
  runtimeCommand,
  startHaproxy,
  waitFor,
} from '../support/haproxy.ts';

let dir = '';

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hap-'));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function writeConfig(port: number, body: string): string {
  const lines = [
    'defaults',
    '    mode http',
    '    timeout client 5s',
    '    timeout server 5s',
    '    timeout connect 5s',
    'frontend test',
    `    bind 127.0.0.1:${port}`,
    `    http-request return status 200 content-type text/plain string "${body}"`,
    '',
  ];
  writeFileSync(join(dir, 'haproxy.cfg'), lines.join('\n'));
  return 'haproxy.cfg';
}

async function isGone(pid: number): Promise<boolean> {
  return waitFor(() => {
    try {
      process.kill(-pid, 0);
      return false;
    } catch {
      return true;
    }
  });
}

describe.each(haproxyVersions())('HAProxy $version', ({ binary, version }) => {
  test('is of the branch that it is listed as', async () => {
    const haproxy = await startHaproxy({
      binary,
      dir,
      configFile: writeConfig(await freePort(), 'one'),
    });
    const info = await runtimeCommand(haproxy.workerSocket, 'show info');
    expect(info).toMatch(new RegExp(`^Version: ${version.replace('.', '\\.')}[.-]`, 'm'));
    expect(await runtimeCommand(haproxy.masterSocket, 'show proc')).toContain(String(haproxy.pid));
  });

  test('serves, reloads into a new configuration, and is gone when stopped', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const configFile = writeConfig(port, 'one');
    const haproxy = await startHaproxy({ binary, dir, configFile });
    expect(await (await fetch(url)).text()).toBe('one');

    writeConfig(port, 'two');
    expect(await haproxy.reload()).toMatchObject({ success: true });
    expect(await waitFor(async () => (await (await fetch(url)).text()) === 'two')).toBe(true);

    await haproxy.stop();
    await haproxy.stop();
    expect(await isGone(haproxy.pid)).toBe(true);
    await expect(fetch(url)).rejects.toThrow();
  });

  test('says in its own words why it reloads or starts not', async () => {
    const port = await freePort();
    const configFile = writeConfig(port, 'one');
    const haproxy = await startHaproxy({ binary, dir, configFile });
    writeFileSync(join(dir, configFile), 'frontend broken\n    no-such-keyword\n');
    const refused = await haproxy.reload();
    expect(refused).toMatchObject({ success: false });
    await expect(startHaproxy({ binary, dir, configFile })).rejects.toThrow(/no-such-keyword/);
  });
});
