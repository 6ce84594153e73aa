import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lastValueFrom, type Subscription } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type CheckerOptions,
  createChecker,
  type HaproxyChecker,
} from '../../../src/gate/checker.ts';
import type { Checked } from '../../../src/gate/verdict.ts';
import type { Render } from '../../../src/render/render.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { configText, ingressRef, makeRender } from '../../support/renders.ts';

const versions = haproxyVersions();
const newest = versions.at(-1)!;
const cleanUp: (() => unknown)[] = [];

afterEach(async () => {
  for (const task of cleanUp.splice(0).reverse()) await task();
});

/** A folder that is gone after the test. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'gate-'));
  cleanUp.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A checker with its mirror in a folder of the test, so that the test can look into it. */
function checker(options: Partial<CheckerOptions> = {}): HaproxyChecker & { tree: () => string } {
  const memoryDir = options.memoryDir ?? folder();
  const made = createChecker({ binary: newest.binary, dir: folder(), memoryDir, ...options });
  cleanUp.push(() => made.close());
  const tree = (): string => join(memoryDir, readdirSync(memoryDir)[0] ?? 'nothing', 'tree');
  return {
    check: made.check,
    close: () => made.close(),
    get isolation() {
      return made.isolation;
    },
    tree,
  };
}

const ask = (gate: HaproxyChecker, render: Render): Promise<Checked> =>
  lastValueFrom(gate.check(render), { defaultValue: NO_VERDICT });

/** Fails every comparison. */
const NO_VERDICT: Checked = {
  planId: 'none',
  verdict: { result: 'inconclusive', cause: 'the check ended without a verdict' },
  durationMs: 0,
};

const verdictOf = async (gate: HaproxyChecker, render: Render) => (await ask(gate, render)).verdict;

/** Enough for a check to take its time and its memory. */
const big = (backends: number): string =>
  configText(
    Array.from(
      { length: backends },
      (_, index) => `backend b${index}\n    server a 127.0.0.1:80\n    server b 127.0.0.1:81\n`,
    ).join(''),
  );

/** A configuration whose Lua runs for as long as it is let. */
const endless = {
  config: `global\n    lua-load endless.lua\n${configText()}`.replace(
    'global\n    lua-load endless.lua\nglobal\n    default-path origin /etc/haproxy\n',
    'global\n    default-path origin /etc/haproxy\n    lua-load endless.lua\n',
  ),
  files: { 'endless.lua': 'while true do end\n' },
};

describe.each(versions)('the checker with HAProxy $version', ({ binary }) => {
  it('passes a valid configuration whose files are in the mirror', async () => {
    const render = makeRender({
      config: configText('    use_backend %[path,map(maps/hosts.map)]\nbackend be\n'),
      files: { 'maps/hosts.map': '/a be\n' },
    });
    expect(await ask(checker({ binary }), render)).toEqual({
      planId: render.plan.id,
      verdict: { result: 'passed' },
      durationMs: expect.any(Number) as number,
    });
  });

  it('passes it without isolation too', async () => {
    const gate = checker({ binary, isolate: 'off' });
    expect(await verdictOf(gate, makeRender())).toEqual({ result: 'passed' });
  });

  it('finds files by absolute paths below the base directory where it can show them there', async () => {
    const gate = checker({ binary });
    const config = configText('    use_backend %[path,map(/etc/haproxy/maps/hosts.map)]\n');
    const files = { 'maps/hosts.map': '/a be\n' };
    const { result } = await verdictOf(gate, makeRender({ config, files }));
    expect(result).toBe(gate.isolation.filesystem ? 'passed' : 'refused');
  });

  it('knows the accounts, hosts and resolvers that a configuration names', async () => {
    const config = configText(
      '    bind localhost:8081\nresolvers dns\n    parse-resolv-conf\n',
    ).replace('global\n', 'global\n    user nobody\n');
    expect(await verdictOf(checker({ binary }), makeRender({ config }))).toEqual({
      result: 'passed',
    });
  });

  it('does not take a host name for a mistake where it has no network to look it up', async () => {
    const gate = checker({ binary });
    const config = configText('    bind log.example.invalid:80\n');
    const { result } = await verdictOf(gate, makeRender({ config }));
    expect(result).toBe(gate.isolation.network ? 'inconclusive' : 'refused');
  });

  it('refuses an unknown keyword and says which template and object wrote the line', async () => {
    const render = makeRender({
      config: configText('    fooo bar\n'),
      provenance: { 10: { template: 'ingress/snippet', line: 4, object: ingressRef('shop') } },
    });
    const verdict = await verdictOf(checker({ binary }), render);
    expect(verdict).toMatchObject({
      result: 'refused',
      message: expect.stringContaining("unknown keyword 'fooo' in 'frontend' section") as string,
      problems: [{ object: ingressRef('shop'), place: { source: 'ingress/snippet', line: 4 } }],
    });
    expect(JSON.stringify(verdict)).not.toContain('/tree');
  });

  it('refuses a missing backend, which HAProxy reports without a line, and finds the line', async () => {
    const render = makeRender({
      config: configText('    use_backend nope if { path /a }\n'),
      provenance: { 10: { template: 'ingress/routes', line: 1, object: ingressRef('shop') } },
    });
    expect(await verdictOf(checker({ binary }), render)).toMatchObject({
      result: 'refused',
      problems: [{ object: ingressRef('shop'), place: { source: 'ingress/routes', line: 1 } }],
    });
  });

  it.each([
    ['a server with a bad port', configText('backend be\n    server a 127.0.0.1:99999\n')],
    ['a certificate that is none', configText('    bind :443 ssl crt ssl/bad.pem\n')],
    ['a file that is not there', configText('    use_backend %[path,map(maps/no.map)]\n')],
    ['two backends of one name', configText('backend a\nbackend a\n')],
  ])('refuses %s', async (_name, config) => {
    const render = makeRender({ config, files: { 'ssl/bad.pem': 'garbage\n' } });
    expect(await verdictOf(checker({ binary }), render)).toMatchObject({ result: 'refused' });
  });

  it('cannot say when memory runs out over a valid configuration', async () => {
    const gate = checker({ binary, memoryMb: 150 });
    expect(await verdictOf(gate, makeRender({ config: big(10_000) }))).toMatchObject({
      result: 'inconclusive',
      cause: expect.stringMatching(/memory|allocate/i) as string,
    });
  });

  it('passes the same configuration with its default memory', async () => {
    const verdict = await verdictOf(checker({ binary }), makeRender({ config: big(10_000) }));
    expect(verdict).toEqual({ result: 'passed' });
  });

  it('cannot say when the check takes too long, and ends it', async () => {
    const gate = checker({ binary, timeoutMs: 700 });
    expect(await verdictOf(gate, makeRender(endless))).toEqual({
      result: 'inconclusive',
      cause: 'HAProxy could not be asked: the check took longer than 700 ms',
    });
    await waitFor(() => processesIn(gate.tree()) === 0, { what: 'the check to be gone' });
  });

  it('leaves no process of a check that is cancelled, and judges the next one', async () => {
    const gate = checker({ binary });
    const check: Subscription = gate.check(makeRender(endless)).subscribe();
    await waitFor(() => processesIn(gate.tree()) > 0, { what: 'the check to run' });
    check.unsubscribe();
    await waitFor(() => processesIn(gate.tree()) === 0, { what: 'the check to be gone' });
    expect(await verdictOf(gate, makeRender())).toEqual({ result: 'passed' });
  });

  it('lets Lua at check time neither open a socket nor read other files, where it can isolate', async () => {
    const server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUp.push(() => server.close());
    const { port } = server.address() as { port: number };
    const secret = join(folder(), 'secret');
    writeFileSync(secret, 'token', { mode: 0o644 });
    const gate = checker({ binary });
    const said = await canary(gate, { port, secret });
    expect(said).toContain(gate.isolation.filesystem ? 'FILE=closed' : 'FILE=open');
    expect(said).toContain(gate.isolation.network ? 'SOCKET=closed' : 'SOCKET=open');
  });
});

/** Processes whose command line names the directory. */
function processesIn(tree: string): number {
  const commandLine = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
      return ''; // it has ended meanwhile
    }
  };
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => commandLine(pid).includes(tree)).length;
}

/** What a script that HAProxy loads can do; it tells by refusing the configuration. */
async function canary(
  gate: HaproxyChecker,
  { port, secret }: { port: number; secret: string },
): Promise<string> {
  const lua = `
    local file = io.open("${secret}") and "open" or "closed"
    local ok = os.execute("exec 3<>/dev/tcp/127.0.0.1/${port}") or os.execute("/bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}'")
    error("FILE=" .. file .. " SOCKET=" .. (ok and "open" or "closed") .. " END")`;
  const render = makeRender({ config: endless.config, files: { 'endless.lua': lua } });
  const verdict = await verdictOf(gate, render);
  return verdict.result === 'refused' ? verdict.message : JSON.stringify(verdict);
}

describe('isolation', () => {
  it('without it the canary sees the machine, so the test above can fail', async () => {
    const server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUp.push(() => server.close());
    const { port } = server.address() as { port: number };
    const secret = join(folder(), 'secret');
    writeFileSync(secret, 'token');
    const gate = checker({ isolate: 'off' });
    expect(await canary(gate, { port, secret })).toContain('FILE=open SOCKET=open');
    expect(gate.isolation).toMatchObject({ network: false, filesystem: false });
    expect(gate.isolation.detail).toContain('network not cut off, file system not restricted');
  });

  it('is found out beside everything else, and told from the first check on', async () => {
    const gate = checker();
    expect(gate.isolation).toMatchObject({ user: false, detail: 'not yet known' });
    expect(await verdictOf(gate, makeRender())).toEqual({ result: 'passed' });
    expect(gate.isolation.detail).toMatch(/^(?:no network|network not cut off), .* memory/);
  });

  it('leaves no mirror of a checker that is closed before that', async () => {
    const memoryDir = folder();
    await checker({ memoryDir }).close();
    expect(readdirSync(memoryDir)).toEqual([]);
  });

  it('passes no environment on', async () => {
    process.env['GATE_TEST_SECRET'] = 'in the environment';
    cleanUp.push(() => delete process.env['GATE_TEST_SECRET']);
    const lua = 'error("GOT=" .. (os.getenv("GATE_TEST_SECRET") or "nothing") .. " END")';
    const render = makeRender({ config: endless.config, files: { 'endless.lua': lua } });
    expect(await verdictOf(checker(), render)).toMatchObject({
      result: 'refused',
      message: expect.stringContaining('GOT=nothing') as string,
    });
  });

  it('does not run as root and cannot write into the mirror', async () => {
    const gate = checker();
    const lua = `
      local written = io.open("written", "w") and "yes" or "no"
      local uid = io.popen("id -u"):read("*l")
      error("WRITTEN=" .. written .. " UID=" .. tostring(uid) .. " END")`;
    const verdict = await verdictOf(
      gate,
      makeRender({ config: endless.config, files: { 'endless.lua': lua } }),
    );
    const { message } = verdict as { message: string };
    if (gate.isolation.filesystem) expect(message).toContain('WRITTEN=no');
    if (process.getuid?.() === 0 && gate.isolation.user) expect(message).not.toContain('UID=0 ');
    expect(verdict.result).toBe('refused');
  });
});

describe('the mirror', () => {
  const files = { 'maps/a.map': 'a b\n', 'ssl/key.pem': 'secret\n' };

  it('keeps directories at 0700 and files at 0600', async () => {
    const gate = checker();
    await ask(gate, makeRender({ files }));
    const mode = (path: string): string =>
      (statSync(join(gate.tree(), path)).mode & 0o777).toString(8);
    expect(['..', '.', 'ssl', 'maps'].map(mode)).toEqual(['700', '700', '700', '700']);
    expect(['ssl/key.pem', 'maps/a.map', 'haproxy.cfg'].map(mode)).toEqual(['600', '600', '600']);
  });

  it('writes only what differs, and removes what is gone', async () => {
    const gate = checker();
    const previous = makeRender({ files });
    await ask(gate, previous);
    const time = (path: string): number => statSync(join(gate.tree(), path)).mtimeMs;
    const before = ['haproxy.cfg', 'maps/a.map', 'ssl/key.pem'].map(time);
    await sleep(20);
    // The configuration shares its text with the render before; the key is equal, but in another chunk.
    const rendered = makeRender({ files: { ...files, 'maps/a.map': 'a c\n' } });
    const config = previous.files.get('haproxy.cfg')!;
    await ask(gate, { ...rendered, files: new Map([...rendered.files, [config.path, config]]) });
    const after = ['haproxy.cfg', 'maps/a.map', 'ssl/key.pem'].map(time);
    expect(after.map((at, index) => at === before[index])).toEqual([true, false, true]);
    await ask(gate, makeRender({ files: { 'maps/a.map': 'a c\n' } }));
    expect(existsSync(join(gate.tree(), 'ssl/key.pem'))).toBe(false);
  });

  it('changes the base directory of the configuration and not one other byte', async () => {
    const gate = checker();
    const config = configText('    http-request set-header X "default-path origin /etc/haproxy"\n');
    await ask(gate, makeRender({ config }));
    const written = readFileSync(join(gate.tree(), 'haproxy.cfg'), 'utf8');
    expect(written).toBe(
      config.replace(
        '    default-path origin /etc/haproxy',
        `    default-path origin ${gate.tree()}`,
      ),
    );
  });

  it('a file gives way to a folder of its name and back', async () => {
    const gate = checker();
    for (const names of [['x'], ['x/y'], ['x']]) {
      const named = Object.fromEntries(names.map((name) => [name, 'text\n']));
      expect(await verdictOf(gate, makeRender({ files: named }))).toEqual({ result: 'passed' });
    }
  });

  it.each(['../outside', '/etc/passwd', 'a/../../b', 'a//b'])(
    'writes no path that leaves it: %s',
    async (path) => {
      expect(await verdictOf(checker(), makeRender({ files: { [path]: 'x' } }))).toMatchObject({
        result: 'inconclusive',
        cause: expect.stringContaining('leaves the directory of the check') as string,
      });
    },
  );

  it('is gone after closing, and a check afterwards is inconclusive', async () => {
    const memoryDir = folder();
    const gate = checker({ memoryDir });
    await ask(gate, makeRender({ files }));
    await gate.close();
    expect(readdirSync(memoryDir)).toEqual([]);
    expect(await verdictOf(gate, makeRender())).toMatchObject({ result: 'inconclusive' });
  });

  it('that a killed process left behind is removed, that of a living one is not', () => {
    const memoryDir = folder();
    const [dead, living] = ['haptic-check-4194999-abc', `haptic-check-${process.ppid}-abc`];
    for (const name of [dead, living]) mkdirSync(join(memoryDir, name));
    checker({ memoryDir });
    expect(existsSync(join(memoryDir, dead))).toBe(false);
    expect(existsSync(join(memoryDir, living))).toBe(true);
  });
});

describe('what keeps HAProxy from judging is inconclusive', () => {
  it('a binary that is not there', async () => {
    const gate = checker({ binary: '/nowhere/haproxy' });
    expect(await verdictOf(gate, makeRender())).toMatchObject({
      result: 'inconclusive',
      cause: expect.stringContaining('/nowhere/haproxy') as string,
    });
    expect(gate.isolation).toMatchObject({ network: false, filesystem: false });
  });

  it('a binary that is no HAProxy', async () => {
    expect(await verdictOf(checker({ binary: '/bin/false' }), makeRender())).toMatchObject({
      result: 'inconclusive',
    });
  });

  it('a binary that dies of a signal', async () => {
    const binary = join(folder(), 'haproxy');
    writeFileSync(binary, '#!/bin/sh\n[ "$1" = -v ] || kill -9 $$\n', { mode: 0o755 });
    expect(await verdictOf(checker({ binary, isolate: 'off' }), makeRender())).toMatchObject({
      result: 'inconclusive',
      cause: expect.stringContaining('SIGKILL') as string,
    });
  });

  it('no directory to write in, and it works again once there is one', async () => {
    const dir = join(folder(), 'later');
    const gate = checker({ dir, memoryDir: '/nowhere' });
    expect(await verdictOf(gate, makeRender())).toMatchObject({ result: 'inconclusive' });
    mkdirSync(dir);
    expect(await verdictOf(gate, makeRender())).toEqual({ result: 'passed' });
  });
});
