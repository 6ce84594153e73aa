import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LIMITS, type Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, planIdOf, treeOf, type Files } from './agent-bed.ts';

const [oldest] = haproxyVersions();
const web = ['s1 127.0.0.1:9'];
/** A worker that hangs is found out by deadlines of some seconds each, so this takes its time. */
const HANGING = process.env['HAPTIC_LONG'] === '1' ? ['SIGSTOP' as const] : [];
const auto = { mode: 'auto', reload: false } as const;

const weight = (value: number, server = 's1'): Operation => ({
  kind: 'server_weight',
  backend: 'web',
  server,
  weight: value,
});

const metric = async (bed: Bed, name: string): Promise<number> => {
  const page = await (await fetch(`${bed.agent.url}/metrics`)).text();
  return Number(
    page
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  );
};

const isReady = async (bed: Bed): Promise<boolean> =>
  (await fetch(`${bed.agent.url}/readyz`)).ok && (await fetch(`${bed.agent.url}/healthz`)).ok;

describe('an agent when things fail', () => {
  let bed: Bed;
  let first: Files;

  beforeEach(async () => {
    bed = await Bed.start(oldest?.binary ?? '');
    first = bed.files({ web });
    await bed.apply({ files: first, plan: 'first' });
  });

  afterEach(() => bed.stop());

  const structural = (name: string): Files => bed.files({ web, extra: `backend ${name}` });
  const read = (path: string): string => readFileSync(join(bed.base, path), 'utf8');

  test('an operation and then the reload refused: taken back with the words of HAProxy', async () => {
    const bad = bed.files({ web, extra: '  no-such-keyword' });
    const apply = { files: bad, ...auto, operations: [weight(3, 'nobody')] };
    const outcome = await bed.apply(apply);
    expect(outcome).toMatchObject({
      outcome: 'rejected',
      error: { stage: 'reload' },
      failedOperations: [{ target: 'web/nobody' }],
      roles: { applied: planIdOf(first), running: planIdOf(first), lkg: planIdOf(first) },
    });
    expect(outcome.error?.message).toContain('no-such-keyword');
    expect(bed.tree()).toEqual(treeOf(first));
    expect(await isReady(bed)).toBe(true);
  });

  test('HAProxy and the agent started anew while a reload waits: it is loaded once, and told', async () => {
    const second = structural('second');
    await bed.apply({ files: second, mode: 'auto', reload: true, reloadNotBeforeMs: 60_000 });
    await bed.state(true); // it is written down that a reload waits
    await Promise.all([bed.agent.kill('SIGKILL'), bed.haproxy.stop()]);
    await sleep(1_100); // HAProxy tells its start in whole seconds
    await bed.startHaproxy();
    await bed.startAgent();
    const { roles, pendingReload, lastReload } = await bed.state();
    const planId = planIdOf(second);
    expect(roles).toEqual({ applied: planId, running: planId, workerOperations: 0, lkg: planId });
    expect(pendingReload).toBeNull();
    expect(lastReload).toMatchObject({ planId, ok: true });
    expect(await metric(bed, 'haptic_agent_reloads_total{result="ok"}')).toBe(0);
  });

  test('HAProxy gone and the agent killed with files it has not loaded: both are known afterwards', async () => {
    await bed.haproxy.stop();
    const second = structural('second');
    expect((await bed.apply({ files: second, mode: 'auto', reload: true })).outcome).toBe(
      'scheduled',
    );
    await bed.state(true); // it is written down; killed before, only the controller leads out of what is unknown
    await bed.agent.kill('SIGKILL');
    await sleep(1_100);
    await bed.startHaproxy();
    await bed.startAgent();
    const state = await waitFor(async () => {
      const now = await bed.state();
      return now.roles.running === planIdOf(second) && now;
    });
    expect(state.pendingReload).toBeNull();
    expect(state.lastReload).toMatchObject({ ok: true });
  });

  test.each(HANGING)(
    'a worker that hangs (%s): every command has a deadline, and the reload brings a new one',
    async (signal) => {
      const { workerPid } = (await bed.state()).haproxy;
      const apply = { files: bed.files({ web, hosts: 'b.example web\n' }), ...auto };
      process.kill(workerPid, signal);
      try {
        // It does not answer even which one it is, so the files wait for a reload.
        const outcome = await bed.apply({ ...apply, operations: [weight(5)] });
        expect(outcome).toMatchObject({ outcome: 'scheduled', operationsRun: 0 });
        expect(await isReady(bed)).toBe(true);
        const state = await waitFor(
          async () => {
            const now = await bed.state();
            return now.haproxy.workerPid !== 0 && now.haproxy.workerPid !== workerPid && now;
          },
          { timeoutMs: 60_000 },
        );
        expect(state.roles.running).toBe(planIdOf(apply.files));
        expect(state.haproxy.oldWorkers).toBe(1);
      } finally {
        process.kill(workerPid, 'SIGKILL');
      }
      expect((await bed.apply({ ...apply, operations: [weight(6)] })).outcome).toBe('runtime');
    },
  );

  test('old workers are counted until their last connection or hard-stop-after ends them', async () => {
    const app = await bed.backend('app');
    const files = bed.files({ web: [`s1 127.0.0.1:${app.port}`] });
    await bed.apply({ files });
    const slow = bed.request('a.example', '/slow').catch(() => 'cut');
    await waitFor(async () => /(^|\n)web,s1,\d+,\d+,1,/.test(await bed.runtime('show stat')));
    const next = bed.files({ web: [`s1 127.0.0.1:${app.port}`], extra: 'backend second' });
    await bed.apply({ files: next });
    expect((await bed.state()).haproxy.oldWorkers).toBe(1);
    expect(await metric(bed, 'haptic_agent_workers')).toBe(2);
    await waitFor(async () => (await bed.state()).haproxy.oldWorkers === 0, { timeoutMs: 20_000 });
    expect(await slow).not.toContain('-done'); // hard-stop-after
    expect(await metric(bed, 'haptic_agent_workers')).toBe(1);
  });

  test('more servers to delete than may wait: a reload instead', async () => {
    const names = Array.from({ length: LIMITS.pendingDeletes + 1 }, (_, at) => `s${at}`);
    await bed.apply({ files: bed.files({ web: names.map((name) => `${name} 127.0.0.1:9`) }) });
    const operations = names.map((server): Operation => ({
      kind: 'server_remove',
      backend: 'web',
      server,
    }));
    const outcome = await bed.apply({ files: bed.files(), ...auto, operations });
    expect(outcome).toMatchObject({ outcome: 'reload', operationsRun: 0 });
    expect(outcome.failedOperations).toMatchObject([
      { message: expect.stringMatching(/^too many /) as string },
    ]);
    expect(await bed.servers('web')).toEqual([]);
    expect((await bed.state()).pendingDeletes).toBe(0);
  });

  test('a reload that the agent owes and HAProxy refuses: it stays ready, and owes it still', async () => {
    await bed.agent.kill('SIGTERM');
    await bed.startAgent({ args: ['--reload-interval-ms', '1'] });
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const extra = `frontend later\n  bind 127.0.0.1:${port}`;
    const config = bed.config({ web, extra });
    writeFileSync(join(bed.base, 'haproxy.cfg'), config); // by hand, and its port is taken
    await bed.apply({ files: first, ...auto, planId: 'e'.repeat(64), operations: [weight(5)] });
    await bed.runtime('set server web/s1 weight 6');
    const state = await waitFor(async () => {
      const now = await bed.state();
      return now.lastReload?.ok === false && now;
    });
    taken.close();
    expect(state.pendingReload).toBeNull();
    expect(await isReady(bed)).toBe(true);
    const { workerPid } = state.haproxy;
    await bed.state(true);
    const repaired = await bed.apply({ files: first, ...auto });
    expect(repaired.roles.applied).toBe(planIdOf(first));
    expect(read('haproxy.cfg')).toBe(first['haproxy.cfg']);
    await waitFor(async () => (await bed.state()).haproxy.workerPid !== workerPid);
    expect(await bed.servers('web')).toEqual(['s1 127.0.0.1 9 1 0']);
  });

  test('two leaders: the older one is fenced off, also after a restart and whatever it sends', async () => {
    const [older, newer] = [{ epoch: 3 }, { epoch: 4 }];
    await bed.apply({ files: first, ...auto, ...older });
    const second = bed.files({ web, hosts: 'b.example web\n' });
    await bed.apply({ files: second, ...auto, ...newer });
    const before = bed.tree();
    for (const mode of ['auto', 'reload', 'revert'] as const) {
      const stale = { files: first, mode, reload: mode === 'reload', ...older };
      expect(await bed.conflict({ ...stale, operations: [weight(9)] })).toMatchObject({
        conflict: 'stale_epoch',
        highestEpoch: 4,
      });
    }
    await bed.agent.kill('SIGKILL');
    rmSync(join(bed.base, '.haptic-agent.json'));
    await bed.startAgent();
    expect(await bed.conflict({ files: first, ...older })).toMatchObject({ highestEpoch: 4 });
    expect(bed.tree()).toEqual(before);
    expect(await bed.servers('web')).toEqual(['s1 127.0.0.1 9 1 0']);
  });
});
