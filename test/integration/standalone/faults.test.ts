import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type EchoBackend, startEcho } from '../../support/echo.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { ingress } from '../../support/objects.ts';
import { configured, Instance, kill, serviceOn } from './instance.ts';
import { startLoad } from './load.ts';

const HOST = 'shop.example.com';
const [{ binary } = { binary: '' }] = haproxyVersions().slice(-1);

interface Bed {
  readonly instance: Instance;
  readonly one: EchoBackend;
  readonly two: EchoBackend;
}

/** An instance that serves `one`, and a second backend that it may be told of. */
const serving = async (haproxy = binary): Promise<Bed> => {
  const [one, two] = [await startEcho('one'), await startEcho('two')];
  const instance = await Instance.start({
    haproxy,
    manifests: {
      'config.yaml': [configured({ dataplane: { minDeploymentInterval: '300ms' } })],
      'shop.yaml': serviceOn('shop', [one.port]),
      'ingress.yaml': [ingress('shop', { rules: [[HOST, '/', 'shop:80']] })],
    },
  });
  await instance.serves(HOST, '/', '"one"');
  return { instance, one, two };
};

/** The pipeline is whole: a change of endpoints gets through. */
const goesOn = async ({ instance, one, two }: Bed): Promise<void> => {
  instance.write('shop.yaml', serviceOn('shop', [two.port]));
  await instance.serves(HOST, '/', '"two"');
  await Promise.all([one.stop(), two.stop()]);
};

describe('what dies', () => {
  it('R12: a killed controller leaves HAProxy serving; the next start ends what was left and goes on', async () => {
    const bed = await serving();
    const { instance } = bed;
    const load = startLoad({ port: instance.ports.http, host: HOST });
    const orphans = [...instance.children('haproxy'), ...instance.children('agent')];

    // HAProxy tells its start in whole seconds: one within the second of an apply could not be told from one before it.
    await pause(1_100);
    await instance.stop('SIGKILL');
    const answers = load.answers.get('one') ?? 0;
    await instance.until('traffic', () => (load.answers.get('one') ?? 0) > answers + 50);
    await load.stop();
    expect(load.errors).toStrictEqual([]);
    expect(orphans.filter((pid) => instance.children('haproxy').includes(pid))).not.toHaveLength(0);

    // A start that cannot succeed leaves alone what serves.
    instance.launch(['--haproxy', '/nowhere']);
    expect((await instance.ended()).code).toBe(2);
    await instance.serves(HOST, '/', '"one"');

    await instance.up();
    expect(instance.children('haproxy').filter((pid) => orphans.includes(pid))).toStrictEqual([]);
    expect(instance.children('agent')).toHaveLength(1);
    await instance.serves(HOST, '/', '"one"');
    expect(await instance.reloads()).toBe(0);
    await goesOn(bed);
  });

  it.each(haproxyVersions())(
    'a killed master of HAProxy $version is started again from what was applied',
    async ({ binary: haproxy }) => {
      const bed = await serving(haproxy);
      const { instance } = bed;
      kill(instance.master(), 'SIGKILL');
      await instance.line(/haproxy ended with signal SIGKILL; starting it again/);
      await instance.serves(HOST, '/', '"one"');
      await goesOn(bed);
    },
  );

  it('a killed worker is replaced by one from what was applied', async () => {
    const bed = await serving();
    const { instance } = bed;
    const master = instance.master();
    for (const pid of instance.children('haproxy')) if (pid !== master) kill(pid, 'SIGKILL');
    await instance.line(/haproxy ended with .*; starting it again/);
    await instance.serves(HOST, '/', '"one"');
    await goesOn(bed);
  });

  it('a killed agent is started again, without an error or a reload for traffic', async () => {
    const bed = await serving();
    const { instance } = bed;
    const load = startLoad({ port: instance.ports.http, host: HOST });
    const reloads = await instance.reloads();
    const [agent = 0] = instance.children('agent');
    kill(agent, 'SIGKILL');
    await instance.line(/ended with signal SIGKILL; starting it again/);
    instance.write('shop.yaml', serviceOn('shop', [bed.one.port, bed.two.port]));
    await instance.until('two to answer', () => (load.answers.get('two') ?? 0) > 0);
    await load.stop();
    expect(load.errors).toStrictEqual([]);
    expect(await instance.reloads()).toBe(reloads);
    await goesOn(bed);
  });

  it('a tree that HAProxy does not start from gives way, and is written anew', async () => {
    const bed = await serving();
    const { instance } = bed;
    await instance.stop();
    writeFileSync(join(instance.stateDir, 'haproxy/haproxy.cfg'), 'nonsense\n');
    instance.forgetOutput();
    instance.launch();
    const message = await instance.line(/haproxy ended with status 1.*starting it again/);
    expect(message).toContain("unknown keyword 'nonsense'");
    await instance.serves(HOST, '/', '"one"');
    await goesOn(bed);
  });

  it('a directory that vanishes changes nothing, and goes on when it is back', async () => {
    const bed = await serving();
    const { instance } = bed;
    const away = `${instance.manifests}-away`;
    renameSync(instance.manifests, away);
    const message = await instance.line(/director/);
    expect(message).toContain(instance.manifests);
    await instance.serves(HOST, '/', '"one"');
    expect((await instance.vars()).sourceProblems).toHaveLength(1);
    renameSync(away, instance.manifests);
    await instance.until('the problem to go', async () => {
      return (await instance.vars()).sourceProblems.length === 0;
    });
    await instance.serves(HOST, '/', '"one"');
    await goesOn(bed);
  });
});

describe('what is taken', () => {
  it('a second HAPTIC on one state directory is refused, the first goes on', async () => {
    const bed = await serving();
    const second = await Instance.prepare({
      haproxy: binary,
      manifests: {},
      stateDir: bed.instance.stateDir,
    });
    second.launch();
    expect((await second.ended()).code).toBe(2);
    expect(second.err).toBe(
      `haptic up: another HAPTIC uses the state directory ${bed.instance.stateDir}; stop it, or choose another one with --state-dir\n`,
    );
    await goesOn(bed);
  });

  it.each(['http', 'https', 'stats', 'metrics'] as const)(
    'a taken %s port is named with its flag',
    async (name) => {
      const instance = await Instance.prepare({ haproxy: binary, manifests: {} });
      const other = await listening(instance.ports[name]);
      instance.launch();
      expect((await instance.ended()).code).toBe(2);
      expect(instance.err).toBe(
        `haptic up: port ${String(instance.ports[name])} is taken; choose another one with --${name}-port\n`,
      );
      other.close();
    },
  );

  it('a port named twice is refused', async () => {
    const instance = await Instance.prepare({ haproxy: binary, manifests: {} });
    instance.launch(['--https-port', String(instance.ports.http)]);
    expect((await instance.ended()).code).toBe(2);
    expect(instance.err).toContain('--http-port and --https-port are both');
  });
});

describe('a full disk', () => {
  it('keeps HAPTIC from starting, with one line that says so', async () => {
    const instance = await Instance.prepare({ haproxy: binary, manifests: {} });
    mkdirSync(instance.stateDir);
    symlinkSync('/dev/full', join(instance.stateDir, 'token'));
    instance.launch();
    expect((await instance.ended()).code).toBe(2);
    expect(instance.err).toMatch(
      /^haptic up: cannot write to the state directory \S+: ENOSPC.*; make room, or choose another one with --state-dir\n$/,
    );
  });

  it('refuses what cannot be written, keeps serving, and goes on when there is room', async () => {
    const bed = await serving();
    const { instance } = bed;
    const [agent = 0] = instance.children('agent');
    await limitFiles(agent, '1');
    instance.forgetOutput();
    const rule = ingress('more', { rules: [['more.example.com', '/', 'shop:80']] });
    instance.write('more.yaml', [rule]);
    const message = await instance.line(/^haproxy: rejected: /);
    expect(message).toMatch(/EFBIG|ENOSPC/);
    expect(message).toMatch(/next try in/);
    await instance.serves(HOST, '/', '"one"');
    expect((await instance.vars()).agents['haproxy']?.lastError).toMatch(/EFBIG|ENOSPC/);

    await limitFiles(agent, 'unlimited');
    await instance.serves('more.example.com', '/', '"one"');
    await goesOn(bed);
  });
});

/**
 * Bounds the size of every file that a process writes, in bytes: what does not fit fails in the middle of the write, as on a
 * full disk, for this one process and without privileges.
 */
const limitFiles = async (pid: number, bytes: string): Promise<void> => {
  await promisify(execFile)('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
};

const listening = (port: number): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(port, '0.0.0.0', () => resolve(server));
  });
