import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, planIdOf, requestOf, sha256, type Files } from './agent-bed.ts';

describe.each(haproxyVersions())('an apply on HAProxy $version', ({ binary, version }) => {
  let bed: Bed;

  beforeEach(async () => {
    bed = await Bed.start(binary);
  });

  afterEach(() => bed.stop());

  const read = (path: string): string => readFileSync(join(bed.base, path), 'utf8');
  const now = (files: Files, more: object = {}): Promise<string> =>
    bed.apply({ files, ...more }).then(({ outcome }) => outcome);

  test('brings the first full state with a reload, and serves it', async () => {
    const app = await bed.backend('one');
    const before = await bed.state();
    expect(before.roles).toEqual({ applied: null, running: null, workerOperations: 0, lkg: null });
    expect(before.haproxy.version.startsWith(`${version}.`)).toBe(true);
    const files = bed.files({
      web: [`s1 127.0.0.1:${app.port}`],
      more: { 'certs/a.pem': 'not loaded' },
    });
    const planId = planIdOf(files);
    const outcome = await bed.apply({ files, plan: '{"a":"\\"é\u{1f600}"}' });
    expect(outcome.outcome).toBe('reload');
    expect(outcome.roles).toEqual({
      applied: planId,
      running: planId,
      workerOperations: 0,
      lkg: planId,
    });
    expect(await bed.request('a.example')).toBe('200 one');
    const after = await bed.state();
    expect(after.haproxy.workerPid).not.toBe(before.haproxy.workerPid);
    expect(after.lastReload).toMatchObject({ planId, ok: true });
    expect(after.files.map(({ path }) => path).sort()).toEqual(Object.keys(files).sort());
    expect(await bed.plan()).toEqual({ planId, plan: '{"a":"\\"é\u{1f600}"}', operations: [] });
    expect(statSync(join(bed.base, 'certs/a.pem')).mode & 0o777).toBe(0o600);
    expect(await now(files, { mode: 'auto', reload: false, send: [] })).toBe('noop');
  });

  test('deletes owned files that are listed no more, and no others', async () => {
    writeFileSync(join(bed.base, 'mine.txt'), 'by hand');
    await now(bed.files({ more: { 'errors/500.http': 'x' } }));
    expect(existsSync(join(bed.base, 'errors/500.http'))).toBe(true);
    expect(await now(bed.files(), { mode: 'auto', reload: false })).toBe('files');
    expect(existsSync(join(bed.base, 'errors/500.http'))).toBe(false);
    expect(read('mine.txt')).toBe('by hand');
    expect(await now(bed.files({ more: { errors: 'a file now' } }))).toBe('reload');
    expect(await now(bed.files({ more: { 'errors/500.http': 'a folder again' } }))).toBe('reload');
    expect(read('errors/500.http')).toBe('a folder again');
  });

  test('takes a patch of what it holds and asks for the whole file when it holds something else', async () => {
    const files = bed.files({ more: { 'general/text': 'abcdefgh' } });
    await now(files);
    const next = { ...files, 'general/text': 'abXYZefgh' };
    const request = requestOf({ files: next, mode: 'auto', reload: false, send: ['general/text'] });
    const patched = request.manifest.files.map((file) =>
      file.path === 'general/text'
        ? {
            ...file,
            inline: { length: 3, base: sha256('abcdefgh'), offset: 2, replaced: 2 },
          }
        : file,
    );
    const send = (): Promise<Response> =>
      post(bed, { ...request.manifest, files: patched }, [Buffer.from('XYZ')]);
    const done = await send();
    expect([done.status, ((await done.json()) as { outcome: string }).outcome]).toEqual([
      200,
      'files',
    ]);
    expect(read('general/text')).toBe('abXYZefgh');
    await now(files, { mode: 'auto', reload: false });
    writeFileSync(join(bed.base, 'general/text'), 'tampered');
    const refused = await send();
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({
      conflict: 'missing_content',
      missing: ['general/text'],
    });
    expect(read('general/text')).toBe('tampered');
    expect(await now(next, { mode: 'auto', reload: false })).toBe('files');
    expect(read('general/text')).toBe('abXYZefgh');
  });

  test('is fenced: another baseline, an older epoch or missing bytes write nothing', async () => {
    const files = bed.files();
    await now(files, { epoch: 7 });
    const planId = planIdOf(files);
    const next = bed.files({ hosts: 'b.example web\n' });
    const auto = { files: next, mode: 'auto', reload: false, epoch: 7 } as const;
    const wrong = sha256('something else');
    const cases = [
      [{ epoch: 6 }, 'stale_epoch'],
      [{ expected: { applied: wrong } }, 'baseline_mismatch'],
      [{ expected: { applied: null } }, 'baseline_mismatch'],
      [{ expected: { applied: planId, running: wrong } }, 'worker_mismatch'],
      [{ expected: { workerOperations: 3 } }, 'worker_mismatch'],
      [{ mode: 'revert', refused: [planId] }, 'target_running'],
      [{ send: [] }, 'missing_content'],
    ] as const;
    for (const [more, conflict] of cases) {
      const answer = await bed.conflict({ ...auto, ...more });
      expect(answer).toMatchObject({ conflict, roles: { applied: planId }, highestEpoch: 7 });
    }
    expect(read('maps/hosts.map')).toBe('a.example web\n');
    expect(
      await now(next, {
        ...auto,
        expected: { applied: planId, running: planId, workerOperations: 0 },
      }),
    ).toBe('files');
    await bed.agent.kill('SIGKILL');
    await bed.startAgent();
    expect((await bed.state()).highestEpoch).toBe(7);
    expect(await bed.conflict({ ...auto, epoch: 6 })).toMatchObject({ conflict: 'stale_epoch' });
  });

  test('R13: of two leaders of one epoch it obeys the first, after a restart too', async () => {
    const files = bed.files();
    const first = { files, epoch: 7, leader: 'controller-a' } as const;
    await now(files, first);
    const auto = { ...first, mode: 'auto', reload: false } as const;
    const second = { ...auto, leader: 'controller-b' } as const;
    const fenced = { conflict: 'stale_epoch', highestEpoch: 7 };
    expect(await bed.conflict(second)).toMatchObject(fenced);
    expect(await now(files, auto)).toBe('noop');
    await bed.agent.kill('SIGKILL');
    await bed.startAgent();
    expect(await bed.conflict(second)).toMatchObject(fenced);
    expect(await now(files, { ...second, epoch: 8 })).toBe('noop');
    expect(await bed.conflict({ ...auto, epoch: 8 })).toMatchObject({ highestEpoch: 8 });
  });

  test('needs a full state with a reload while the baseline is unknown', async () => {
    const files = bed.files();
    const auto = { files, mode: 'auto', reload: false } as const;
    expect(await bed.conflict(auto)).toMatchObject({ conflict: 'unknown_baseline' });
    expect(await now(files, { mode: 'auto', reload: true })).toBe('reload');
    expect(await now(files, auto)).toBe('noop');
  });

  test('installs nothing of a body whose bytes have another digest', async () => {
    await now(bed.files());
    const files = bed.files({ hosts: 'b.example web\n' });
    const { manifest, parts } = requestOf({ files, mode: 'auto', reload: false });
    const corrupt = parts.map((part) => Buffer.from(part.toString().replace('b.ex', 'c.ex')));
    const answer = await post(bed, manifest, corrupt);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({
      error: 'the bytes of maps/hosts.map do not have its digest',
    });
    expect(read('maps/hosts.map')).toBe('a.example web\n');
    expect((await bed.state()).roles.applied).toBe(planIdOf(bed.files()));
  });

  test('that HAProxy refuses to load goes back to the last known good files', async () => {
    const app = await bed.backend('one');
    const web = [`s1 127.0.0.1:${app.port}`];
    const good = bed.files({ web });
    await now(good);
    // Applied at run time only, so the last tree a worker was started from is still the good one.
    await now(bed.files({ web, hosts: 'b.example web\n' }), { mode: 'auto', reload: false });
    const pid = (await bed.state()).haproxy.workerPid;
    const bad = bed.files({ web, extra: '  no-such-keyword', more: { 'general/new': 'x' } });
    const outcome = await bed.apply({ files: bad });
    expect(outcome.outcome).toBe('rejected');
    expect(outcome.error?.stage).toBe('reload');
    expect(outcome.error?.message).toContain("unknown keyword 'no-such-keyword'");
    expect(outcome.roles).toMatchObject({ applied: planIdOf(good), lkg: planIdOf(good) });
    expect(read('haproxy.cfg')).toBe(good['haproxy.cfg']);
    expect(read('maps/hosts.map')).toBe('a.example web\n');
    expect(existsSync(join(bed.base, 'general/new'))).toBe(false);
    expect((await bed.state()).haproxy.workerPid).toBe(pid);
    expect(await bed.request('a.example')).toBe('200 one');
    const again = await bed.apply({ files: bad });
    expect(again).toMatchObject({ outcome: 'rejected', timings: { reload: 0 } });
    expect(await now(good, { reloadIntervalMs: 0 })).toBe('reload');
  });

  test('that is refused first of all puts the bootstrap configuration back', async () => {
    const bootstrap = read('haproxy.cfg');
    const outcome = await bed.apply({ files: bed.files({ extra: '  no-such-keyword' }) });
    expect(outcome).toMatchObject({ outcome: 'rejected', roles: { applied: null, lkg: null } });
    expect(read('haproxy.cfg')).toBe(bootstrap);
    expect(existsSync(join(bed.base, 'maps/hosts.map'))).toBe(false);
  });

  test('falls back to what the gate has passed, when that was applied', async () => {
    const first = bed.files();
    await now(first);
    const passed = bed.files({ hosts: 'b.example web\n' });
    await now(passed, { mode: 'auto', reload: false });
    expect((await bed.state()).roles.lkg).toBe(planIdOf(first));
    const bad = bed.files({ extra: '  no-such-keyword' });
    const outcome = await bed.apply({ files: bad, validated: planIdOf(passed) });
    expect(outcome.roles).toMatchObject({ applied: planIdOf(passed), lkg: planIdOf(passed) });
    expect(read('maps/hosts.map')).toBe('b.example web\n');
  });

  test('waits for the one before it, and is fenced by its result', async () => {
    await now(bed.files());
    const expected = { applied: planIdOf(bed.files()) };
    const answers = await Promise.all(
      ['b.example', 'c.example'].map((host) =>
        bed.send({
          files: bed.files({ hosts: `${host} web\n` }),
          mode: 'auto',
          reload: false,
          expected,
        }),
      ),
    );
    const kinds = answers.map((answer) => ('outcome' in answer ? answer.outcome : answer.conflict));
    expect(kinds.sort()).toEqual(['baseline_mismatch', 'files']);
  });

  test('finds a changed file by verification and repairs it without a reload', async () => {
    const files = bed.files();
    await now(files);
    writeFileSync(join(bed.base, 'maps/hosts.map'), 'evil.example web\n');
    const state = await bed.state(true);
    const digest = state.files.find(({ path }) => path === 'maps/hosts.map')?.digest;
    expect(digest).toBe(sha256('evil.example web\n'));
    const missing = await bed.conflict({ files, mode: 'auto', reload: false, send: [] });
    expect(missing.missing).toEqual(['maps/hosts.map']);
    expect(await now(files, { mode: 'auto', reload: false })).toBe('files');
    expect(read('maps/hosts.map')).toBe('a.example web\n');
    const pid = (await waitFor(() => bed.state(true))).haproxy.workerPid;
    expect((await bed.state()).haproxy.workerPid).toBe(pid);
  });
});

async function post(bed: Bed, manifest: object, parts: readonly Buffer[]): Promise<Response> {
  const json = Buffer.from(JSON.stringify(manifest));
  const head = Buffer.alloc(8);
  head.write('HPT1');
  head.writeUInt32BE(json.length, 4);
  return fetch(`${bed.agent.url}/v1/apply`, {
    method: 'POST',
    headers: { authorization: 'Bearer a-token-only-for-tests' },
    body: Buffer.concat([head, json, ...parts]),
  });
}
