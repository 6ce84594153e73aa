import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { of } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { curlLines } from '../../../src/cli/curl.ts';
import { demoBackends, demoPorts } from '../../../src/cli/demo.ts';
import { findHaproxy } from '../../../src/cli/haproxy-binary.ts';
import { endOrphans } from '../../../src/cli/orphans.ts';
import { claimPort, portOf } from '../../../src/cli/ports.ts';
import {
  defaultStateDirectory,
  lockStateDirectory,
  openStateDirectory,
} from '../../../src/cli/state-directory.ts';
import { ingress, slice, snapshotOf, type IngressWords } from '../../support/objects.ts';

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'hc-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true, force: true });
  });
  return path;
};

describe('ports', () => {
  it.each([
    ['0', 0],
    ['80', 80],
    ['65535', 65_535],
  ])('%s is a port', (text, port) => {
    expect(portOf(text, 'http-port')).toBe(port);
  });

  it.each(['', '-1', '65536', '80a', '0x50', '1e3', ' 80', undefined, true])(
    '%s is none',
    (value) => {
      expect(() => portOf(value, 'http-port')).toThrow(
        '--http-port takes a port number from 0 to 65535',
      );
    },
  );

  it('a free port is claimed, a taken one is refused with its flag', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    await expect(claimPort(port, 'stats-port', '127.0.0.1')).rejects.toThrow(
      `port ${String(port)} is taken; choose another one with --stats-port`,
    );
    server.close();
    await once(server, 'close');
    expect(await claimPort(port, 'stats-port', '127.0.0.1')).toBe(port);
    expect(await claimPort(0, 'stats-port', '127.0.0.1')).toBeGreaterThan(1_023);
  });
});

describe('the state directory', () => {
  it('lies below the state folder of the user, one for each manifest directory', () => {
    const one = defaultStateDirectory('/a', { XDG_STATE_HOME: '/state' });
    expect(one).toMatch(/^\/state\/haptic\/[0-9a-f]{12}$/);
    expect(defaultStateDirectory('/a/../a', { XDG_STATE_HOME: '/state' })).toBe(one);
    expect(defaultStateDirectory('/b', { XDG_STATE_HOME: '/state' })).not.toBe(one);
  });

  it('is readable for this user alone', async () => {
    const { base, mirror } = await openStateDirectory(join(folder(), 'state'));
    for (const path of [base, mirror]) expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('is refused when it is too long for sockets, or cannot be made', async () => {
    await expect(openStateDirectory(join(folder(), 'x'.repeat(100)))).rejects.toThrow(
      /is too long for unix sockets; choose a shorter one with --state-dir$/,
    );
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    await expect(openStateDirectory(file)).rejects.toThrow(
      /^cannot create the state directory: ENOTDIR.*choose another one with --state-dir$/,
    );
  });

  it('belongs to one process at a time', async () => {
    const root = folder();
    const unlock = await lockStateDirectory(root);
    await expect(lockStateDirectory(root)).rejects.toThrow(
      `another HAPTIC uses the state directory ${root}; stop it, or choose another one with --state-dir`,
    );
    await unlock();
    await (
      await lockStateDirectory(root)
    )();
  });

  it('is free again when its process was killed', async () => {
    const root = folder();
    const program = `const { lockStateDirectory } = await import(${JSON.stringify(
      new URL('../../../src/cli/state-directory.ts', import.meta.url).href,
    )}); await lockStateDirectory(${JSON.stringify(root)}); console.log('locked'); setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(holder.stdout, 'data');
    await expect(lockStateDirectory(root)).rejects.toThrow('another HAPTIC');
    holder.kill('SIGKILL');
    await once(holder, 'close');
    await (
      await lockStateDirectory(root)
    )();
  });
});

describe('orphans', () => {
  const sleeper = async (...words: readonly string[]) => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', ...words], {
      stdio: 'ignore',
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child, 'spawn');
    return child;
  };

  it('R12: what runs on the same base directory is ended, nothing else', async () => {
    const base = join(folder(), 'haproxy');
    const agent = await sleeper('--base-dir', base);
    const haproxy = await sleeper('-S', `${base}/haproxy-master.sock,mode,600,level,admin`);
    const neighbour = await sleeper('--base-dir', `${base}-2`);
    const reader = await sleeper('-f', `${base}/haproxy.cfg`);
    const ended = await endOrphans(base);
    expect([...ended].sort()).toStrictEqual([agent.pid, haproxy.pid].sort());
    expect([agent.signalCode ?? (await once(agent, 'exit'))[1]]).toStrictEqual(['SIGTERM']);
    expect(
      [neighbour, reader].map(({ exitCode, signalCode }) => exitCode ?? signalCode),
    ).toStrictEqual([null, null]);
    expect(await endOrphans(base)).toStrictEqual([]);
  });
});

describe('lines to paste', () => {
  const at = { httpPort: 8080, httpsPort: 8443 };
  const linesFor = (words: IngressWords) => curlLines(snapshotOf([ingress('web', words)]), at);

  it('name hosts with their scheme and resolve those that nobody knows', () => {
    expect(
      linesFor({
        rules: [
          ['a.localhost', '/x', 'web:80'],
          ['b.example.com', '/', 'web:80'],
          ['*.c.localhost', '/', 'web:80'],
          ['', '/any', 'web:80'],
        ],
        tls: [['', 'b.example.com']],
      }),
    ).toStrictEqual([
      'curl -k --resolve b.example.com:8443:127.0.0.1 https://b.example.com:8443/',
      'curl http://a.localhost:8080/x',
      'curl http://any.c.localhost:8080/',
      'curl http://localhost:8080/any',
    ]);
  });

  it.each([
    '$(reboot)',
    '`id`',
    'a;b',
    'a b',
    "a'b",
    'a"b',
    'a\nb',
    '-o/etc/x',
    'A&B',
    'x'.repeat(300),
  ])('R8: never contain the host or path %j', (text) => {
    const safe = text.startsWith('-') ? [] : linesFor({ rules: [[text, '/', 'web:80']] });
    expect(safe).toStrictEqual([]);
    expect(linesFor({ rules: [['a.localhost', `/${text}`, 'web:80']] }).join()).not.toMatch(
      /[$`;'"\n&]|x{300}| b/,
    );
  });

  it('are six at most', () => {
    const rules = Array.from(
      { length: 9 },
      (_, at) => [`h${String(at)}.localhost`, '/', 'w:80'] as const,
    );
    expect(linesFor({ rules })).toHaveLength(6);
  });

  it('survive an Ingress of any shape', () => {
    const odd = {
      ...ingress('odd'),
      spec: { rules: [null, 1, { host: 5 }, { http: { paths: {} } }], tls: 'x' },
    };
    expect(curlLines(snapshotOf([odd]), at)).toStrictEqual(['curl http://localhost:8080/']);
  });
});

describe('demo backends', () => {
  it('answer on the loopback endpoints, each port once', () => {
    expect(
      demoPorts([
        slice('a', { endpoints: ['127.0.0.1'], ports: { '': 9001, b: 9000 } }),
        slice('b', { endpoints: ['127.0.0.1', '10.0.0.1'], ports: { '': 9001 } }),
        slice('c', { endpoints: ['10.0.0.1'], ports: { '': 9002 } }),
        slice('d', { endpoints: ['127.0.0.1'], ports: { '': 80 } }),
        { ...slice('e'), endpoints: null, ports: 'x' },
      ]),
    ).toStrictEqual([9000, 9001]);
  });

  it('tell who answered, and one port that is taken spoils no other', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port: taken } = server.address() as { port: number };
    const free = await claimPort(0, 'port', '127.0.0.1');
    const told = new Map<number, string | undefined>();
    const subscription = demoBackends(of(taken, free, free)).subscribe(({ port, error }) => {
      told.set(port, error);
    });
    await expect.poll(() => told.size).toBe(2);
    expect(told.get(taken)).toContain('EADDRINUSE');
    expect(told.get(free)).toBeUndefined();
    const answer = await fetch(`http://127.0.0.1:${String(free)}/x?y`);
    expect(await answer.text()).toContain(`demo backend on port ${String(free)}: GET `);
    subscription.unsubscribe();
    server.close();
  });
});

describe('the HAProxy to run', () => {
  const script = (path: string, version: string): string => {
    writeFileSync(path, `#!/bin/sh\necho 'HAProxy version ${version} 2026/01/01'\n`, {
      mode: 0o755,
    });
    return path;
  };

  it('is the one that is named, else $HAPROXY, else the one on PATH', async () => {
    const path = folder();
    const [named, other] = [script(join(path, 'a'), '3.4.1'), script(join(path, 'b'), '3.2.2')];
    script(join(path, 'haproxy'), '3.0.3');
    const environment = { HAPROXY: other, PATH: `/nowhere:${path}` };
    expect(await findHaproxy(named, environment)).toStrictEqual({ path: named, version: '3.4.1' });
    expect((await findHaproxy(undefined, environment)).version).toBe('3.2.2');
    expect(await findHaproxy(undefined, { PATH: environment.PATH })).toStrictEqual({
      path: join(path, 'haproxy'),
      version: '3.0.3',
    });
  });

  it('is refused with what to do when it is missing, too old, or none', async () => {
    const path = folder();
    await expect(findHaproxy(undefined, { PATH: path })).rejects.toThrow(
      /no haproxy on PATH; install HAProxy 3\.0 or newer, or name one with --haproxy/,
    );
    await expect(findHaproxy(script(join(path, 'old'), '2.8.5'), {})).rejects.toThrow(
      /is HAProxy 2\.8\.5; HAPTIC needs 3\.0 or newer/,
    );
    await expect(findHaproxy(join(path, 'none'), {})).rejects.toThrow(
      /^cannot run .*none: no such file$/,
    );
    await expect(findHaproxy(path, {})).rejects.toThrow(/: it is not executable$/);
    await expect(findHaproxy(script(join(path, 'odd'), 'x'), {})).rejects.toThrow(
      /does not look like HAProxy/,
    );
  });
});
