import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { haproxyVersions } from '../../support/haproxy.ts';
import { Bed, TOKEN, planIdOf, requestOf, sha256, type Files } from './agent-bed.ts';

const [oldest] = haproxyVersions();
/** A silence of a second ends a body. */
const IMPATIENT = { args: ['--body-idle-ms', '1000'] };

describe('what an agent refuses', () => {
  let bed: Bed;
  let good: Files;

  beforeAll(async () => {
    bed = await Bed.start(oldest?.binary ?? '', IMPATIENT);
    good = bed.files();
    await bed.apply({ files: good });
  });

  afterAll(() => bed.stop());

  const call = (
    path: string,
    init: { method?: string; body?: Uint8Array; token?: string } = {},
  ): Promise<Response> =>
    fetch(`${bed.agent.url}${path}`, {
      method: init.method ?? 'GET',
      headers: { authorization: `Bearer ${init.token ?? TOKEN}` },
      ...(init.body === undefined ? {} : { body: init.body as Uint8Array<ArrayBuffer> }),
    });
  const frame = (manifest: unknown, ...parts: Uint8Array[]): Buffer => {
    const json = Buffer.from(typeof manifest === 'string' ? manifest : JSON.stringify(manifest));
    const head = Buffer.from([0x48, 0x50, 0x54, 0x31, 0, 0, 0, 0]);
    head.writeUInt32BE(json.length, 4);
    return Buffer.concat([head, json, ...parts]);
  };
  const post = (body: Uint8Array): Promise<Response> => call('/v1/apply', { method: 'POST', body });
  const auto = { mode: 'auto', reload: false } as const;

  test('requests without the token, but health and metrics are for everybody', async () => {
    for (const path of ['/v1/state', '/v1/plan', '/v1/apply']) {
      expect((await fetch(`${bed.agent.url}${path}`)).status).toBe(401);
      expect((await call(path, { token: 'another-token-of-some-length' })).status).toBe(401);
    }
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect((await fetch(`${bed.agent.url}${path}`)).status).toBe(200);
    }
    const metrics = await (await fetch(`${bed.agent.url}/metrics`)).text();
    expect(metrics).toMatch(/^haptic_agent_applies_total\{outcome="reload"\} 1$/m);
    expect(metrics).toMatch(/^haptic_agent_reloads_total\{result="ok"\} 1$/m);
    expect((await call('/v1/nothing')).status).toBe(404);
  });

  test('paths that lead out of the tree or into its own files', async () => {
    const wrong = [
      '../x',
      'a/../../x',
      '/etc/x',
      'a//b',
      'a/',
      './a',
      '.haptic/journal.json',
      '.haptic-agent.json',
      'a/.b/c',
      'a\\b',
      'a\nb',
      'a\u0000b',
      `${'d/'.repeat(127)}xx`,
      '',
    ];
    for (const path of wrong) {
      const { manifest } = requestOf({ files: good, ...auto });
      const [file] = manifest.files;
      const answer = await post(frame({ ...manifest, files: [{ ...file, path }] }));
      expect([path, answer.status]).toEqual([path, 400]);
    }
    const longest = `${'d/'.repeat(127)}x`;
    const files = { ...good, [longest]: 'x' };
    expect((await bed.apply({ files, ...auto })).outcome).toBe('files');
    expect((await bed.apply({ files: good, ...auto })).outcome).toBe('files');
  });

  test('symbolic links at a path and on the way to it', async () => {
    const outside = join(bed.base, '..', 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'kept'), 'kept');
    symlinkSync(outside, join(bed.base, 'link'));
    mkdirSync(join(bed.base, 'general'), { recursive: true });
    symlinkSync(join(outside, 'kept'), join(bed.base, 'general/file'));
    for (const path of ['link/new', 'link/kept', 'general/file']) {
      const outcome = await bed.apply({ files: { ...good, [path]: 'x' }, ...auto });
      expect(outcome).toMatchObject({ outcome: 'rejected', error: { stage: 'stage' } });
      expect(outcome.roles.applied).toBe(planIdOf(good));
    }
    expect(readdirSync(outside)).toEqual(['kept']);
    expect(readFileSync(join(outside, 'kept'), 'utf8')).toBe('kept');
    expect(lstatSync(join(bed.base, 'general/file')).isSymbolicLink()).toBe(true);
    rmSync(join(bed.base, 'general/file'));
    // A directory that becomes a link after it was written is not followed either.
    const files = { ...good, 'dir/a': 'one' };
    await bed.apply({ files, ...auto });
    rmSync(join(bed.base, 'dir'), { recursive: true });
    symlinkSync(outside, join(bed.base, 'dir'));
    const state = await bed.state(true);
    expect(state.files.find(({ path }) => path === 'dir/a')?.digest).toBe('');
    expect(await bed.apply({ files, ...auto })).toMatchObject({ outcome: 'rejected' });
    expect(readdirSync(outside)).toEqual(['kept']);
    rmSync(join(bed.base, 'dir'));
    expect((await bed.apply({ files: good, ...auto })).outcome).toBe('files');
  });

  test('bodies that are no frame, too long, too short, or contradict themselves', async () => {
    const { manifest, parts } = requestOf({ files: { ...good, 'general/x': 'xyz' }, ...auto });
    const whole = frame(manifest, ...parts);
    const [file] = manifest.files;
    const deep = { ...file, path: 'haproxy.cfg/x' };
    const cases: [string, Uint8Array, number][] = [
      ['nothing', new Uint8Array(0), 400],
      ['another magic', Buffer.from('GET / HTTP/1.1\r\n'), 400],
      ['half a head', whole.subarray(0, 6), 400],
      ['half a manifest', whole.subarray(0, 60), 400],
      ['half a part', whole.subarray(0, whole.length - 1), 400],
      ['bytes after the end', Buffer.concat([whole, Buffer.from('!')]), 400],
      ['not JSON', frame('{"protocol":1'), 400],
      ['not an object', frame('[]'), 400],
      ['another protocol', frame({ ...manifest, protocol: 2 }), 400],
      ['a wrong digest', frame({ ...manifest, planId: 'ABC' }), 400],
      ['a file twice', frame({ ...manifest, files: [file, file] }), 400],
      ['a file as a directory', frame({ ...manifest, files: [file, deep] }), 400],
      ['an operation that is no object', frame({ ...manifest, operations: [7] }), 400],
      [
        'a number as a name',
        frame({ ...manifest, operations: [{ kind: 'server_remove', backend: 1, server: 's' }] }),
        400,
      ],
      ['no files at all', frame({ ...manifest, files: [] }), 400],
      ['too many operations', frame({ ...manifest, operations: new Array(8_001).fill(0) }), 400],
      ['a huge manifest', Buffer.from([0x48, 0x50, 0x54, 0x31, 0xff, 0, 0, 0]), 413],
      ['a huge plan', frame({ ...manifest, planLength: 1e9 }), 413],
    ];
    for (const [name, body, status] of cases) {
      const answer = await post(body);
      expect([name, answer.status]).toEqual([name, status]);
      expect(await answer.json()).toHaveProperty('error');
    }
    expect(existsSync(join(bed.base, 'general/x'))).toBe(false);
    expect((await bed.state()).roles.applied).toBe(planIdOf(good));
    expect((await bed.apply({ files: { ...good, 'general/x': 'xyz' }, ...auto })).outcome).toBe(
      'files',
    );
  });

  test('a body that falls silent, without standing in the way of the next', async () => {
    const files = { ...good, 'general/slow': 'never all of it' };
    const { manifest, parts } = requestOf({ files, ...auto });
    const whole = frame(manifest, ...parts);
    const url = new URL(`${bed.agent.url}/v1/apply`);
    const request = httpRequest(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-length': String(whole.length) },
    });
    const failed = new Promise<string>((resolve) => {
      request.on('error', (error) => resolve(error.message));
      request.on('response', (response) => resolve(String(response.statusCode)));
    });
    request.write(whole.subarray(0, whole.length - 3));
    await sleep(200);
    const next = await bed.apply({ files: good, ...auto });
    expect(await failed).toMatch(/hang up|reset/);
    expect(next.roles.applied).toBe(planIdOf(good));
    expect(existsSync(join(bed.base, 'general/slow'))).toBe(false);
  });

  test('no body that only waits: for a slow reload, or unread behind the lock', async () => {
    process.kill(bed.haproxy.pid, 'SIGSTOP');
    const slow = bed.apply({ files: { ...good, run: 'slow' } });
    await sleep(200);
    const files = { ...good, run: 'slow', 'general/large': 'x'.repeat(8_000_000) };
    const behind = bed.apply({ files, ...auto });
    const further = requestOf({ files: { ...good, 'general/slow': 'never' }, ...auto });
    const silent = post(frame(further.manifest, ...further.parts).subarray(0, -3)).catch(String);
    await sleep(2_500);
    process.kill(bed.haproxy.pid, 'SIGCONT');
    expect((await slow).outcome).toBe('reload');
    expect((await behind).outcome).toBe('files');
    expect(await silent).not.toHaveProperty('ok', true);
    expect((await bed.apply({ files: good, ...auto })).outcome).toBe('files');
  });

  test('a change that the disk has no room for, and leaves everything as it was', async () => {
    await bed.agent.kill('SIGTERM');
    await bed.startAgent({ fileBytes: 200_000 });
    const files = {
      ...bed.files({ hosts: 'b.example web\n' }),
      'general/big': 'x'.repeat(400_000),
    };
    const outcome = await bed.apply({ files, ...auto });
    expect(outcome).toMatchObject({ outcome: 'rejected', error: { stage: 'stage' } });
    expect(outcome.error?.message).toMatch(/EFBIG|ENOSPC/);
    const state = await bed.state(true);
    expect(state.roles.applied).toBe(planIdOf(good));
    expect(state.files.find(({ path }) => path === 'maps/hosts.map')?.digest).toBe(
      sha256('a.example web\n'),
    );
    await bed.agent.kill('SIGTERM');
    await bed.startAgent();
    expect((await bed.apply({ files, ...auto })).outcome).toBe('files'); // not remembered as bad
    expect((await bed.apply({ files: good, ...auto })).outcome).toBe('files');
  });

  test('never tells tokens, plans or file contents in its log', async () => {
    const secret = 'secret-in-a-file';
    await bed.apply({
      files: { ...good, 'certs/a.pem': secret },
      plan: 'secret-in-a-plan',
      ...auto,
      operations: [
        { kind: 'map_add', map: 'maps/hosts.map', key: 'k', value: 'secret-in-a-value' },
      ],
    });
    const log = bed.agent.lines.join('\n');
    expect(log).toContain('applied');
    expect(log).not.toMatch(/secret-in/);
    expect(log).not.toContain(TOKEN);
  });
});
