import { chmodSync, lstatSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AgentState } from '../../../src/protocol/answers.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { makeKeyPair } from '../../support/key-pairs.ts';
import { freePort, haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, planIdOf, sha256, treeOf, type Files } from './agent-bed.ts';

/** Between the agent and the worker: remembers every line that was said to the worker. */
class Eavesdropper {
  readonly heard: string[] = [];
  readonly #server: Server;

  constructor(path: string, worker: string) {
    this.#server = createServer({ allowHalfOpen: true }, (near) => {
      const far = connect({ path: worker, allowHalfOpen: true });
      near.on('data', (part: Buffer) => this.heard.push(...part.toString().split(/[;\n]/)));
      for (const side of [near, far]) side.on('error', () => near.destroy());
      near.pipe(far).pipe(near);
    });
    this.#server.listen(path);
  }

  /** What changes something, or may. */
  changing(): string[] {
    return this.heard.filter(
      (line) => line !== '' && !/^(show|get) |^set severity-output number$/.test(line),
    );
  }

  close(): void {
    this.#server.close();
  }
}

describe.each(haproxyVersions())('drift on HAProxy $version (G11)', ({ binary }) => {
  let bed: Bed;
  let files: Files;
  let ear: Eavesdropper;
  let site = '';
  let other = '';
  const pem = async (name: string): Promise<string> => {
    const { certificate, key } = await makeKeyPair([name]);
    return `${certificate.trim()}\n${key.trim()}\n`;
  };
  const web = ['s1 127.0.0.1:9 weight 3', 's2 127.0.0.1:9 disabled', 's3 127.0.0.1:9'];
  const hosts = 'a.example web\nb.example api\nc.example none\n';

  beforeAll(async () => {
    bed = await Bed.start(binary);
    const socket = join(bed.base, '..', 'ear.sock');
    ear = new Eavesdropper(socket, join(bed.base, 'haproxy-worker.sock'));
    await bed.agent.kill('SIGTERM');
    await bed.startAgent({
      fault: undefined,
      args: ['--worker-socket', socket, '--reload-interval-ms', '1'],
    });
    [site, other] = await Promise.all([pem('site.example'), pem('other.example')]);
    const more = { 'general/page.http': 'page', 'tls/site.pem': site };
    const extra = `frontend tls\n  bind 127.0.0.1:${await freePort()} ssl crt ${bed.base}/tls/site.pem`;
    files = bed.files({ web, hosts, more, extra });
  });

  afterAll(async () => {
    ear.close();
    await bed.stop();
  });

  beforeEach(async () => {
    await bed.apply({ files, plan: 'plan' });
    await bed.state(true); // the agent has seen what the worker holds
    ear.heard.length = 0;
  });

  const metrics = async (): Promise<string[]> => {
    const page = await (await fetch(`${bed.agent.url}/metrics`)).text();
    return page.split('\n').filter((line) => /^haptic_agent_drift_/.test(line));
  };

  /** Counters that have grown, and by how much. */
  const counted = async (work: () => Promise<unknown>): Promise<string[]> => {
    const before = await metrics();
    await work();
    const grown = (await metrics()).filter((line) => !before.includes(line));
    return grown.map((line) => {
      const [name = '', value] = line.split(' ');
      const old = before.find((one) => one.startsWith(`${name} `))?.split(' ')[1];
      return `${name.replace('haptic_agent_drift_', '')} ${Number(value) - Number(old)}`;
    });
  };

  const driftOf = async (state: Promise<AgentState>): Promise<AgentState['drift']> =>
    (await state).drift;

  test.each(['haproxy.cfg', 'maps/hosts.map', 'general/page.http', 'tls/site.pem'])(
    'an edit, a cut and a removal of %s are found, and the next apply writes it anew without a reload',
    async (path) => {
      const { workerPid } = (await bed.state()).haproxy;
      const edits: (() => void)[] = [
        () => writeFileSync(join(bed.base, path), 'by hand'),
        () => writeFileSync(join(bed.base, path), ''),
        () => rmSync(join(bed.base, path)),
      ];
      for (const edit of edits) {
        edit();
        const grown = await counted(async () => {
          const { files: found } = await bed.state(true);
          const digest = found.find((file) => file.path === path)?.digest;
          expect(digest).not.toBe(sha256(files[path] ?? ''));
        });
        expect(grown).toEqual(['found_total{kind="file"} 1']);
        expect(await counted(() => bed.state(true))).toEqual([]); // told once
        const { outcome } = await bed.apply({ files, mode: 'auto', reload: false });
        expect(outcome).toBe('files');
        expect(bed.tree()).toEqual(treeOf(files));
      }
      expect((await bed.state(true)).haproxy.workerPid).toBe(workerPid);
      expect(ear.changing()).toEqual([]);
    },
  );

  test('permissions of each kind of file are set right at once, and nothing else is written', async () => {
    const wrong = { 'haproxy.cfg': 0o666, 'maps/hosts.map': 0o600, 'tls/site.pem': 0o644 };
    for (const [path, mode] of Object.entries(wrong)) chmodSync(join(bed.base, path), mode);
    const inode = lstatSync(join(bed.base, 'tls/site.pem')).ino;
    const grown = await counted(async () => {
      const { drift, files: found, roles } = await bed.state(true);
      expect([...(drift?.modes ?? [])].sort()).toEqual(Object.keys(wrong).sort());
      expect(found.every(({ path, digest }) => digest === sha256(files[path] ?? ''))).toBe(true);
      expect(roles.applied).toBe(planIdOf(files));
    });
    expect(grown).toEqual(['found_total{kind="mode"} 3', 'repaired_total{kind="mode"} 3']);
    expect(bed.tree()).toEqual(treeOf(files));
    expect(lstatSync(join(bed.base, 'tls/site.pem')).ino).toBe(inode);
    expect(await driftOf(bed.state(true))).toEqual({ modes: [], runtime: [] });
  });

  test.each([
    ['a server that is disabled', 'set server web/s1 state maint', 'web/s1'],
    ['a server that is enabled', 'set server web/s2 state ready', 'web/s2'],
    ['a server that drains', 'set server web/s3 state drain', 'web/s3'],
    ['a weight', 'set server web/s1 weight 77', 'web/s1'],
    ['an address', 'set server web/s1 addr 127.0.0.9 port 99', 'web/s1'],
    ['a server that is added', 'add server web/s9 127.0.0.1:9', 'web/s9'],
    ['a map entry that is deleted', 'del map maps/hosts.map b.example', 'maps/hosts.map'],
    ['a map entry that is changed', 'set map maps/hosts.map a.example api', 'maps/hosts.map'],
    ['a map entry that is added', 'add map maps/hosts.map d.example web', 'maps/hosts.map'],
    ['a map that is emptied', 'clear map maps/hosts.map', 'maps/hosts.map'],
  ])(
    '%s by hand is found and repaired by operations, without a reload',
    async (_, command, target) => {
      const before = { servers: (await bed.servers('web')).sort(), hosts: await bed.hosts() };
      const { roles, haproxy } = await bed.state();
      await bed.runtime(command);
      const grown = await counted(async () => {
        expect(await driftOf(bed.state(true))).toEqual({ modes: [], runtime: [target] });
      });
      expect(grown).toEqual(['found_total{kind="runtime"} 1', 'repaired_total{kind="runtime"} 1']);
      await waitFor(async () => (await bed.state()).pendingDeletes === 0);
      await waitFor(async () => (await bed.servers('web')).sort().join() === before.servers.join());
      expect(await bed.hosts()).toEqual(before.hosts);
      const after = await bed.state(true);
      expect(after.drift).toEqual({ modes: [], runtime: [] });
      expect(after.roles).toEqual(roles); // it holds what it held, so nobody has to learn anything
      expect(after.haproxy).toEqual(haproxy);
      expect(bed.agent.lines.some((line) => line.includes('"the worker is not as'))).toBe(true);
    },
  );

  test('a certificate that is replaced by hand is found, and the worker has that of the file again', async () => {
    const path = join(bed.base, 'tls/site.pem');
    const fingerprint = async (): Promise<string | undefined> =>
      /SHA1 FingerPrint: (.*)/.exec(await bed.runtime(`show ssl cert ${path}`))?.[1];
    const before = await fingerprint();
    await bed.runtime(`set ssl cert ${path} <<\n${other}`);
    expect(await bed.runtime(`commit ssl cert ${path}`)).toContain('Success');
    expect(await fingerprint()).not.toBe(before);
    const grown = await counted(async () => {
      expect(await driftOf(bed.state(true))).toEqual({ modes: [], runtime: ['tls/site.pem'] });
    });
    expect(grown[0]).toBe('found_total{kind="runtime"} 1');
    await waitFor(async () => (await fingerprint()) === before);
    expect(bed.tree()).toEqual(treeOf(files));
    await waitFor(async () => (await bed.state()).pendingReload === null);
    expect(await driftOf(bed.state(true))).toEqual({ modes: [], runtime: [] });
  });

  test('while a file is not as it was left, nothing is loaded from it: the worker is repaired after the file', async () => {
    const { workerPid } = (await bed.state()).haproxy;
    writeFileSync(join(bed.base, 'haproxy.cfg'), bed.config({ web: ['evil 127.0.0.1:9'] }));
    writeFileSync(join(bed.base, 'tls/site.pem'), other);
    await bed.runtime('set server web/s1 weight 77');
    expect(await driftOf(bed.state(true))).toEqual({ modes: [], runtime: [] });
    expect((await bed.apply({ files, mode: 'auto', reload: false })).outcome).toBe('files');
    expect(await driftOf(bed.state(true))).toEqual({ modes: [], runtime: ['web/s1'] });
    expect((await bed.state()).haproxy.workerPid).toBe(workerPid);
  });

  test('a server that is deleted by hand comes back by a reload', async () => {
    const { workerPid } = (await bed.state()).haproxy;
    await bed.runtime('set server web/s3 state maint');
    await bed.runtime('del server web/s3');
    const grown = await counted(async () => {
      expect((await driftOf(bed.state(true)))?.runtime).toEqual(['web/s3']);
    });
    expect(grown).toEqual(['found_total{kind="runtime"} 1']);
    await waitFor(async () => (await bed.state()).haproxy.workerPid !== workerPid);
    expect(await bed.servers('web')).toHaveLength(3);
  });

  test('what operations have made of the worker is no drift, and their outcome is kept when repaired', async () => {
    const of = { backend: 'web' };
    const operations: Operation[] = [
      { kind: 'server_address', ...of, server: 's1', address: '::1', port: 10 },
      { kind: 'server_weight', ...of, server: 's1', weight: 0 },
      { kind: 'server_state', ...of, server: 's2', state: 'ready' },
      { kind: 'server_remove', ...of, server: 's3' },
      {
        kind: 'server_add',
        ...of,
        server: 's4',
        address: '0:0:0:0:0:0:0:1',
        port: 11,
        weight: 5,
        state: 'drain',
        keywords: [],
      },
      { kind: 'map_add', map: 'maps/hosts.map', key: 'd.example', value: 'v w "x" ;' },
      { kind: 'map_set', map: 'maps/hosts.map', key: 'a.example', value: 'api' },
      { kind: 'map_delete', map: 'maps/hosts.map', key: 'b.example' },
    ];
    const auto = { files, mode: 'auto', reload: false } as const;
    const replace: Operation = {
      kind: 'map_replace',
      map: 'maps/hosts.map',
      entries: [
        ['x.example', 'web'],
        ['y.example', 'api'],
      ],
    };
    for (const list of [operations, [replace]]) {
      expect((await bed.apply({ ...auto, operations: list })).outcome).toBe('runtime');
      expect(await driftOf(bed.state(true))).toEqual({ modes: [], runtime: [] });
    }
    await bed.runtime('set server web/s4 state ready');
    await bed.runtime('set server web/s1 weight 9');
    await bed.runtime('del map maps/hosts.map x.example');
    expect((await driftOf(bed.state(true)))?.runtime.toSorted()).toEqual([
      'maps/hosts.map',
      'web/s1',
      'web/s4',
    ]);
    await waitFor(async () => (await bed.servers('web')).length === 3);
    expect((await bed.servers('web')).sort()).toEqual([
      's1 ::1 10 0 0',
      's2 127.0.0.1 9 1 4', // disabled in the file, enabled since
      's4 ::1 11 5 8',
    ]);
    expect(await bed.hosts()).toEqual(['x.example web', 'y.example api']);
  });

  test('a match writes nothing, and says nothing to HAProxy that changes anything', async () => {
    await bed.fault({ do: 'nothing' });
    expect(await counted(() => bed.state(true))).toEqual([]);
    const calls = new Set(bed.calls().map(({ call }) => call));
    expect([...calls].sort()).toEqual(['lstat', 'open', 'read', 'readFile', 'stat']);
    expect(ear.changing()).toEqual([]);
    expect(ear.heard).toContain('show servers state web');
    expect(ear.heard).toContain('show map maps/hosts.map');
  });
});
