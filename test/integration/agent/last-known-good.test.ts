import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, planIdOf, type Files } from './agent-bed.ts';

const [oldest] = haproxyVersions();

describe('what a pod goes back to, and what it says about its worker', () => {
  let bed: Bed;
  let first: Files;
  const web = ['s1 127.0.0.1:9'];
  const auto = { mode: 'auto', reload: false } as const;
  const scheduled = { mode: 'auto', reload: true } as const;

  beforeEach(async () => {
    bed = await Bed.start(oldest?.binary ?? '');
    first = bed.files({ web });
    await bed.apply({ files: first, plan: 'first' });
  });

  afterEach(() => bed.stop());

  const structural = (name: string): Files => bed.files({ web, extra: `backend ${name}` });
  const weight = (value: number): Operation => ({
    kind: 'server_weight',
    backend: 'web',
    server: 's1',
    weight: value,
  });
  const read = (path: string): string => readFileSync(join(bed.base, path), 'utf8');
  const statePath = (): string => join(bed.base, '.haptic-agent.json');

  test('a plan that was validated is not good while HAProxy has still to load it (G2)', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const bad = bed.files({ web, extra: `frontend taken\n  bind 127.0.0.1:${port}` });
    const planId = planIdOf(bad);
    await bed.apply({ files: bad, ...scheduled, reloadNotBeforeMs: 60_000 });
    const again = await bed.apply({
      files: bad,
      ...scheduled,
      reloadNotBeforeMs: 100,
      validated: planId,
      inPlaceOperations: [weight(3)],
    });
    expect(again.roles).toMatchObject({ applied: planId, lkg: planIdOf(first) });
    const state = await waitFor(async () => {
      const now = await bed.state();
      return now.lastReload?.planId === planId && now;
    });
    taken.close();
    expect(state.lastReload).toMatchObject({ ok: false });
    expect(state.roles).toMatchObject({ applied: planIdOf(first), lkg: planIdOf(first) });
    expect(read('haproxy.cfg')).toBe(first['haproxy.cfg']);
  });

  test('a stale leader changes nothing, not even what is good', async () => {
    const second = bed.files({ web, hosts: 'b.example web\n' });
    await bed.apply({ files: second, ...auto });
    const validated = planIdOf(second);
    expect(await bed.conflict({ files: second, ...auto, epoch: 0, validated })).toMatchObject({
      conflict: 'stale_epoch',
      roles: { lkg: planIdOf(first) },
    });
    const { roles } = await bed.apply({ files: second, ...auto, validated });
    expect(roles.lkg).toBe(validated);
  });

  test('files go back while nobody knows what the worker holds, and operations do not', async () => {
    const refused = structural('refused');
    await bed.apply({ files: refused, ...scheduled, reloadNotBeforeMs: 60_000 });
    await bed.agent.kill('SIGKILL');
    rmSync(statePath());
    await bed.startAgent();
    expect((await bed.state()).roles.running).toBeNull();
    const revert = { files: {}, mode: 'revert', reload: false } as const;
    const planId = planIdOf(first);
    expect(await bed.conflict({ ...revert, planId, operations: [weight(1)] })).toMatchObject({
      conflict: 'unknown_baseline',
    });
    expect(await bed.apply({ ...revert, planId })).toMatchObject({
      outcome: 'files',
      roles: { applied: planId, running: null, lkg: planId },
    });
    expect(read('haproxy.cfg')).toBe(first['haproxy.cfg']);
  });

  test('a plan that is to be reverted is not loaded, even when the revert is refused', async () => {
    const refused = structural('refused');
    await bed.apply({ files: refused, ...scheduled, reloadNotBeforeMs: 500 });
    const revert = { files: first, mode: 'revert', reload: false } as const;
    expect(await bed.conflict({ ...revert, epoch: 0 })).toMatchObject({ conflict: 'stale_epoch' });
    expect((await bed.state()).pendingReload?.planId).toBe(planIdOf(refused));
    const expected = { applied: planIdOf(first) };
    expect(await bed.conflict({ ...revert, expected })).toMatchObject({
      conflict: 'baseline_mismatch',
    });
    expect((await bed.state()).pendingReload).toBeNull();
    await sleep(800);
    expect((await bed.state()).roles.running).toBe(planIdOf(first));
  });

  test('operations without files are not forgotten when the agent dies between its two records (P8)', async () => {
    await sleep(1_100); // HAProxy tells its start in whole seconds
    expect((await bed.haproxy.reload()).success).toBe(true);
    const pid = await waitFor(async () => {
      const { haproxy, roles } = await bed.state();
      const text = readFileSync(statePath(), 'utf8');
      return roles.running !== null && text.includes(`${haproxy.workerPid}`) && haproxy.workerPid;
    });
    copyFileSync(statePath(), join(bed.base, '..', 'saved'));
    const remove: Operation = { kind: 'server_remove', backend: 'web', server: 's1' };
    const renamed = { files: first, planId: 'f'.repeat(64), send: [] };
    await bed.apply({ ...renamed, ...auto, operations: [remove] });
    await bed.state(true); // waits for the records
    await bed.agent.kill('SIGKILL');
    copyFileSync(join(bed.base, '..', 'saved'), statePath());
    await bed.startAgent();
    const { roles, haproxy } = await bed.state();
    expect(haproxy.workerPid).toBe(pid);
    expect(roles.running).toBeNull();
  });

  test('a plan that needs no reload any more takes the pending one back', async () => {
    await bed.apply({
      files: structural('second'),
      mode: 'auto',
      reload: true,
      reloadNotBeforeMs: 600,
    });
    const third = bed.files({ web, hosts: 'b.example web\n' });
    const outcome = await bed.apply({
      files: third,
      mode: 'auto',
      reload: false,
      operations: [weight(4)],
    });
    expect(outcome.outcome).toBe('runtime');
    expect((await bed.state()).pendingReload).toBeNull();
    await sleep(900);
    expect((await bed.state()).lastReload?.planId).toBe(planIdOf(first));
  });

  test('a revert cancels the pending reload, undoes by operations and reloads nothing', async () => {
    const refused = structural('refused');
    const { workerPid } = (await bed.state()).haproxy;
    await bed.apply({
      files: refused,
      mode: 'auto',
      reload: true,
      reloadNotBeforeMs: 700,
      inPlaceOperations: [weight(9)],
    });
    const outcome = await bed.apply({
      files: first,
      mode: 'revert',
      reload: false,
      refused: [planIdOf(refused)],
      operations: [weight(1)],
    });
    expect(outcome).toMatchObject({
      outcome: 'runtime',
      roles: { applied: planIdOf(first), running: planIdOf(first), workerOperations: 2 },
    });
    await sleep(1_000);
    const state = await bed.state();
    expect(state.haproxy.workerPid).toBe(workerPid);
    expect(state.pendingReload).toBeNull();
    expect(await bed.servers('web')).toEqual(['s1 127.0.0.1 9 1 0']);
  });

  test('a revert without files goes back to the last known good files of the pod itself', async () => {
    const refused = structural('refused');
    await bed.apply({
      files: { ...refused, 'general/new': 'x' },
      mode: 'auto',
      reload: true,
      reloadNotBeforeMs: 60_000,
      inPlaceOperations: [weight(9)],
    });
    const revert = { files: {}, mode: 'revert', reload: false, operations: [weight(1)] } as const;
    expect(await bed.conflict({ ...revert, planId: planIdOf(refused) })).toMatchObject({
      conflict: 'baseline_mismatch',
    });
    const outcome = await bed.apply({ ...revert, planId: planIdOf(first) });
    expect(outcome).toMatchObject({
      outcome: 'runtime',
      roles: { applied: planIdOf(first), running: planIdOf(first), lkg: planIdOf(first) },
    });
    const state = await bed.state(true);
    expect(state.pendingReload).toBeNull();
    expect(state.files.map(({ path }) => path).sort()).toEqual(Object.keys(first).sort());
    expect(read('haproxy.cfg')).toBe(first['haproxy.cfg']);
    expect(await bed.apply({ ...revert, operations: [], planId: planIdOf(first) })).toMatchObject({
      outcome: 'noop',
    });
  });

  test('a revert of a plan that runs meanwhile is answered target_running', async () => {
    const refused = structural('refused');
    await bed.apply({ files: refused });
    const answer = await bed.conflict({
      files: first,
      mode: 'revert',
      reload: false,
      refused: [planIdOf(refused)],
    });
    expect(answer).toMatchObject({
      conflict: 'target_running',
      roles: { running: planIdOf(refused) },
    });
    expect(read('haproxy.cfg')).toBe(refused['haproxy.cfg']);
  });
});
