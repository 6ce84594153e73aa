import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  startHaproxy,
  haproxyVersions,
  waitFor,
  type RunningHaproxy,
} from '../../support/haproxy.ts';
import { TOKEN, spawnAgent, type AgentProcess } from './agent-bed.ts';

const [oldest] = haproxyVersions();

describe('an agent that starts before its HAProxy, as in a pod', () => {
  let root: string;
  let base: string;
  let agent: AgentProcess | undefined;
  let haproxy: RunningHaproxy | undefined;

  const bootstrap = (): string => join(root, 'bootstrap.cfg');
  const main = (): string => join(base, 'haproxy.cfg');
  const start = async (until = 'listening'): Promise<AgentProcess> => {
    const args = ['--bootstrap', bootstrap(), '--master-socket', join(root, 'master.sock')];
    agent = await spawnAgent(base, { args, until });
    return agent;
  };
  const status = async (path: string): Promise<number> => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    return (await fetch(`${agent?.url ?? ''}${path}`, { headers })).status;
  };

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'boot-'));
    base = join(root, 'base');
    mkdirSync(base);
    writeFileSync(join(root, 'token'), `${TOKEN}\n`);
    const lines = [
      'global',
      `  stats socket ${join(base, 'haproxy-worker.sock')} mode 600 level admin`,
      'defaults',
      '  mode http',
      '  timeout connect 1s',
      '  timeout client 1s',
      '  timeout server 1s',
      'frontend fe',
      `  bind unix@${join(root, 'fe.sock')}`,
      '',
    ];
    writeFileSync(bootstrap(), lines.join('\n'), { mode: 0o444 });
  });

  afterEach(async () => {
    await Promise.all([agent?.kill('SIGKILL'), haproxy?.stop()]);
    [agent, haproxy] = [undefined, undefined];
    rmSync(root, { recursive: true, force: true });
  });

  test('has the bootstrap file in place when it is healthy, and finds HAProxy at once', async () => {
    const { lines } = await start();
    expect(await status('/healthz')).toBe(200);
    expect(readFileSync(main(), 'utf8')).toBe(readFileSync(bootstrap(), 'utf8'));
    expect(statSync(main()).mode & 0o777).toBe(0o600);
    expect(await status('/readyz')).toBe(503);
    expect(await status('/v1/state')).toBe(503);
    haproxy = await startHaproxy({
      binary: oldest?.binary ?? '',
      dir: root,
      configFile: main(),
      workerSocket: join(base, 'haproxy-worker.sock'),
    });
    await waitFor(() => lines.some((line) => line.includes('"ready"')), { timeoutMs: 5_000 });
    expect(await status('/v1/state')).toBe(200);
  });

  test('keeps the main file that is there, so that HAProxy starts from what was applied', async () => {
    writeFileSync(main(), 'what was applied');
    const { lines } = await start();
    expect(readFileSync(main(), 'utf8')).toBe('what was applied');
    expect(lines.join()).not.toContain('bootstrap file was put');
  });

  test('takes back a first apply that was interrupted and still has a main file then', async () => {
    mkdirSync(join(base, '.haptic'));
    const next = { digest: 'a'.repeat(64), size: 1, kind: 'config' };
    const record = {
      version: 1,
      generation: 1,
      from: null,
      to: 'b'.repeat(64),
      operations: false,
      changes: [{ path: 'haproxy.cfg', previous: null, next }],
    };
    writeFileSync(join(base, '.haptic', 'journal.json'), JSON.stringify(record));
    const { lines } = await start();
    await waitFor(() => lines.filter((line) => line.includes('was put in place')).length === 2);
    expect(readFileSync(main(), 'utf8')).toBe(readFileSync(bootstrap(), 'utf8'));
  });

  test('says what is wrong and ends when the bootstrap file cannot be read', async () => {
    rmSync(bootstrap());
    await expect(start()).rejects.toThrow(/ENOENT.*bootstrap\.cfg/);
  });
});
