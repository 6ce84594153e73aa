import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AgentState } from '../../../src/protocol/answers.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, planIdOf, type Files } from './agent-bed.ts';

describe.each(haproxyVersions())('reload pacing on HAProxy $version', ({ binary }) => {
  let bed: Bed;
  let first: Files;
  const web = ['s1 127.0.0.1:9'];

  beforeEach(async () => {
    bed = await Bed.start(binary);
    first = bed.files({ web });
    await bed.apply({ files: first, plan: 'first' });
  });

  afterEach(() => bed.stop());

  const weight = (value: number): Operation => ({
    kind: 'server_weight',
    backend: 'web',
    server: 's1',
    weight: value,
  });
  const structural = (name: string): Files => bed.files({ web, extra: `backend ${name}` });
  const reloaded = (planId: string): Promise<AgentState> =>
    waitFor(
      async () => {
        const state = await bed.state();
        return state.lastReload?.planId === planId && state.pendingReload === null && state;
      },
      { what: 'the scheduled reload' },
    );

  test('a reload inside the interval answers scheduled at once and runs at its end; the newest wins (G6)', async () => {
    const { lastReload } = await bed.state();
    const [second, third] = [structural('second'), structural('third')];
    const paced = { mode: 'auto', reload: true, reloadIntervalMs: 2_000 } as const;
    const one = await bed.apply({ files: second, ...paced, plan: 'second' });
    expect(one).toMatchObject({
      outcome: 'scheduled',
      roles: { applied: planIdOf(second), running: planIdOf(first) },
    });
    const two = await bed.apply({ files: third, ...paced, plan: 'third' });
    expect(two.outcome).toBe('scheduled');
    expect(two.reloadInMs).toBeLessThanOrEqual(2_000);
    expect((await bed.state()).pendingReload?.planId).toBe(planIdOf(third));
    const state = await reloaded(planIdOf(third));
    const distance = (state.lastReload?.atMs ?? 0) - (lastReload?.atMs ?? 0);
    expect(distance).toBeGreaterThanOrEqual(2_000);
    expect(distance).toBeLessThan(3_500);
    expect(state.roles).toEqual({
      applied: planIdOf(third),
      running: planIdOf(third),
      workerOperations: 0,
      lkg: planIdOf(third),
    });
    expect(await bed.plan()).toMatchObject({ plan: 'third', operations: [] });
    expect(reloadCount(bed)).toBe(2); // the first full state and the last of the two
  });

  test('in-place operations run at once while a reload is pending (G7)', async () => {
    const second = structural('second');
    const outcome = await bed.apply({
      files: second,
      mode: 'auto',
      reload: true,
      reloadNotBeforeMs: 60_000,
      inPlaceOperations: [weight(9)],
    });
    expect(outcome).toMatchObject({
      outcome: 'scheduled',
      operationsRun: 1,
      roles: { running: planIdOf(first), workerOperations: 1 },
    });
    expect(await bed.servers('web')).toEqual(['s1 127.0.0.1 9 9 0']);
    expect(await bed.plan()).toEqual({
      planId: planIdOf(first),
      plan: 'first',
      operations: [weight(9)],
    });
  });

  test('a server that only a reload removes is removed, whatever runtime changes come between', async () => {
    await bed.agent.kill('SIGTERM');
    await bed.startAgent({ args: ['--reload-interval-ms', '1800'] });
    const tied = (servers: readonly string[]): Files =>
      bed.files({ web, extra: [...servers, ''].join('\n') });
    const before = tied(['  server x 127.0.0.1:9', '  use-server x if { always_true }']);
    await bed.apply({ files: before });
    const after = tied(['']);
    const auto = { files: after, mode: 'auto', reload: false } as const;
    await bed.apply({
      ...auto,
      operations: [{ kind: 'server_remove', backend: 'api', server: 'x' }],
    });
    await waitFor(async () => (await bed.state()).pendingReload?.planId === planIdOf(after));
    const last = bed.files({ web, hosts: 'b.example web\n', extra: '\n' });
    const outcome = await bed.apply({ ...auto, files: last, operations: [weight(7)] });
    expect(outcome.outcome).toBe('runtime');
    expect((await bed.state()).pendingReload?.planId).toBe(planIdOf(last));
    await reloaded(planIdOf(last));
    expect(await bed.servers('api')).toEqual([]);
  });

  test('a scheduled reload that HAProxy refuses restores the last known good files', async () => {
    const bad = bed.files({ web, extra: '  no-such-keyword' });
    const planId = planIdOf(bad);
    await bed.apply({
      files: structural('second'),
      mode: 'auto',
      reload: true,
      reloadNotBeforeMs: 60_000,
    });
    await bed.apply({
      files: bad,
      mode: 'auto',
      reload: true,
      reloadNotBeforeMs: 300,
      inPlaceOperations: [weight(3)],
    });
    const state = await reloaded(planId);
    expect(state.lastReload).toMatchObject({ ok: false });
    expect(state.lastReload?.message).toContain('no-such-keyword');
    expect(state.roles).toEqual({
      applied: planIdOf(first),
      running: planIdOf(first),
      workerOperations: 1,
      lkg: planIdOf(first),
    });
    expect(readFileSync(join(bed.base, 'haproxy.cfg'), 'utf8')).toBe(first['haproxy.cfg']);
  });

  test('an agent that restarts with a reload pending fires it', async () => {
    const second = structural('second');
    await bed.apply({ files: second, mode: 'auto', reload: true, reloadNotBeforeMs: 1_500 });
    await bed.agent.kill('SIGTERM');
    await bed.startAgent();
    const state = await reloaded(planIdOf(second));
    expect(state.lastReload?.ok).toBe(true);
    expect(state.roles.running).toBe(planIdOf(second));
  });

  test('an operation that comes during a reload goes to the new worker', async () => {
    const second = structural('second');
    process.kill(bed.haproxy.pid, 'SIGSTOP'); // the reload is asked for and waits
    const reload = bed.apply({ files: second });
    const path = join(bed.base, 'haproxy.cfg');
    await waitFor(() => readFileSync(path, 'utf8') === second['haproxy.cfg']);
    const operations = [weight(8)];
    const after = bed.apply({ files: second, mode: 'auto', reload: false, operations });
    await sleep(50);
    process.kill(bed.haproxy.pid, 'SIGCONT');
    expect([(await reload).outcome, (await after).outcome]).toEqual(['reload', 'runtime']);
    expect(await bed.servers('web')).toEqual(['s1 127.0.0.1 9 8 0']);
    expect((await bed.state()).roles.workerOperations).toBe(1);
  });

  test('HAProxy that is started anew runs the applied files, and the agent knows', async () => {
    const second = bed.files({ web, hosts: 'b.example web\n' });
    await bed.apply({ files: second, mode: 'auto', reload: false, operations: [weight(5)] });
    const { haproxy } = bed;
    await haproxy.stop();
    const down = await bed.state();
    expect(down.haproxy).toMatchObject({ version: '', workerPid: 0 });
    expect(down.roles).toMatchObject({ applied: planIdOf(second), running: planIdOf(first) });
    await sleep(1_100); // HAProxy tells its start in whole seconds
    await bed.startHaproxy();
    const state = await waitFor(async () => {
      const now = await bed.state();
      return now.haproxy.workerPid !== 0 && now;
    });
    expect(state.roles).toEqual({
      applied: planIdOf(second),
      running: planIdOf(second),
      workerOperations: 0,
      lkg: planIdOf(second),
    });
    expect(await bed.hosts()).toEqual(['b.example web']);
  });

  test('a reload by somebody else onto the applied files is noticed and understood', async () => {
    await bed.apply({ files: first, mode: 'auto', reload: false, operations: [weight(5)] });
    await sleep(1_100);
    expect((await bed.haproxy.reload()).success).toBe(true);
    const state = await waitFor(async () => {
      const now = await bed.state();
      return now.roles.workerOperations === 0 && now;
    });
    expect(state.roles).toMatchObject({ applied: planIdOf(first), running: planIdOf(first) });
    expect(await bed.plan()).toEqual({ planId: planIdOf(first), plan: 'first', operations: [] });
  });

  test('a worker that started from files the agent did not write is unknown', async () => {
    await sleep(1_100);
    const path = join(bed.base, 'maps/hosts.map');
    writeFileSync(path, 'evil.example web\n');
    expect((await bed.haproxy.reload()).success).toBe(true);
    const state = await waitFor(async () => {
      const now = await bed.state();
      return now.roles.running === null && now;
    });
    expect(state.roles).toMatchObject({ applied: planIdOf(first), running: null });
    expect(
      await bed.conflict({
        files: first,
        mode: 'auto',
        reload: false,
        send: ['haproxy.cfg', 'maps/hosts.map'],
      }),
    ).toMatchObject({ conflict: 'unknown_baseline' });
    expect((await bed.apply({ files: first })).outcome).toBe('reload');
    expect(await bed.hosts()).toEqual(['a.example web']);
  });

  test('what is applied while HAProxy is down is loaded when it comes back', async () => {
    await bed.haproxy.stop();
    const second = structural('second');
    const outcome = await bed.apply({
      files: second,
      mode: 'auto',
      reload: true,
      inPlaceOperations: [weight(2)],
    });
    expect(outcome).toMatchObject({ outcome: 'scheduled', operationsRun: 0 });
    await bed.startHaproxy();
    await bed.agent.kill('SIGTERM'); // it was told the path of the former master socket
    await bed.startAgent();
    const state = await waitFor(async () => {
      const now = await bed.state();
      return now.roles.running === planIdOf(second) && now;
    });
    expect(state.roles.applied).toBe(planIdOf(second));
    expect(state.pendingReload).toBeNull();
  });
});

const reloadCount = (bed: Bed): number =>
  bed.agent.lines.filter((line) => line.includes('"msg":"reloaded"')).length;
