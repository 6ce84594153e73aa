import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DeleteQueue } from '../../../agent/haproxy/deletes.ts';
import { persist, type Pod } from '../../../agent/pod.ts';
import { recover } from '../../../agent/apply/recovery.ts';
import { exchange } from '../../../agent/haproxy/socket.ts';
import { reloadNow } from '../../../agent/haproxy/reload.ts';
import { observeWorker } from '../../../agent/haproxy/worker-watch.ts';
import { ScriptedSocket, infoOf, podIn } from './scripted-haproxy.ts';

const PLAN = 'c'.repeat(64);
const PROCESSES =
  '#<PID> <type> <reloads> <uptime> <version>\n1 master 0 0d 3.0\n10 worker 0 0d 3.0\n';

describe('an agent and a HAProxy that behaves badly', () => {
  let base = '';
  let pod: Pod;
  let sockets: ScriptedSocket[];

  beforeEach(async () => {
    base = mkdtempSync(join(tmpdir(), 'agu-'));
    sockets = [];
    pod = await podIn(base);
    await recover(pod);
    Object.assign(pod.holding, { applied: PLAN, running: 'd'.repeat(64), generation: 1 });
    pod.holding.pending = { planId: PLAN, dueMs: 0 };
    await persist(pod);
  });

  afterEach(() => {
    for (const socket of sockets) socket.close();
    rmSync(base, { recursive: true, force: true });
  });

  const worker = (answer: (line: string) => string | undefined): ScriptedSocket => {
    const socket = new ScriptedSocket(join(base, 'worker.sock'), answer);
    sockets.push(socket);
    return socket;
  };
  const master = (reload: string, processes: string | undefined = PROCESSES): void => {
    const answer = (line: string): string | undefined => (line === 'reload' ? reload : processes);
    sockets.push(new ScriptedSocket(join(base, 'master.sock'), answer));
  };

  test('an old worker that did not answer before a reload is not taken for the new one', async () => {
    let asked = 0;
    master('Success=1\n--\n');
    worker(() => {
      asked += 1;
      if (asked === 1) return undefined;
      return asked < 8 ? infoOf(10, 1) : infoOf(11, 2);
    });
    expect(await reloadNow(pod, PLAN)).toEqual({ kind: 'done' });
    expect(pod.holding.worker?.pid).toBe(11);
  });

  test('a reload after which nobody can tell the workers apart leaves running unknown', async () => {
    let asked = 0;
    sockets.push(
      new ScriptedSocket(join(base, 'master.sock'), (line) =>
        line === 'reload' ? 'Success=1\n--\n' : undefined,
      ),
    );
    worker(() => ((asked += 1) === 1 ? undefined : infoOf(10, 1)));
    expect(await reloadNow(pod, PLAN)).toMatchObject({ kind: 'failed' });
    expect(pod.holding).toMatchObject({ running: null, pending: null });
    expect(pod.holding.lastReload).toMatchObject({ planId: PLAN, ok: false });
  });

  test.each([
    ['is refused', 'Success=0\n--\n[ALERT] no\n', '[ALERT] no'],
    ['gets no clear answer', 'What?\n', undefined],
    ['gets no answer', undefined, undefined],
  ])(
    'a plan whose reload %s is known as bad only by the words of HAProxy',
    async (_, said, known) => {
      const heard = (line: string): string | undefined => (line === 'reload' ? said : PROCESSES);
      sockets.push(new ScriptedSocket(join(base, 'master.sock'), heard));
      worker(() => infoOf(10, 1));
      pod.holding.lkg = pod.holding.applied;
      expect(await reloadNow(pod, PLAN)).toMatchObject({ kind: 'failed' });
      expect(pod.knownBad.find(PLAN, performance.now())).toBe(known);
      // A clear refusal leaves the old worker alone; after anything else nobody knows which one runs.
      expect(pod.holding.running).toBe(known === undefined ? null : 'd'.repeat(64));
      expect(pod.holding.lastReload).toMatchObject({ planId: PLAN, ok: false });
    },
  );

  test('a reload while HAProxy does not run is none: nothing goes back', async () => {
    expect(await reloadNow(pod, PLAN)).toEqual({ kind: 'down' });
    expect(pod.holding).toMatchObject({ applied: PLAN, lastReload: null });
  });

  test('a socket that hangs is given up at the deadline of its command', async () => {
    const socket = new ScriptedSocket(join(base, 'worker.sock'), () => null);
    sockets.push(socket);
    const began = performance.now();
    expect(await pod.worker.info(50)).toBeNull();
    const late = exchange(join(base, 'worker.sock'), { text: 'show info\n', timeoutMs: 50 });
    await expect(late).rejects.toMatchObject({ message: 'no answer within 50 ms', refused: false });
    expect(performance.now() - began).toBeGreaterThanOrEqual(95);
    expect(socket.heard).toEqual(['show info', 'show info']);
  });

  test.each([
    ['succeeds', 'Success=1\n--\n'],
    ['is refused', 'Success=0\n--\n[ALERT] no\n'],
  ])('a reload that %s is never seen both pending and done', async (_, verdict) => {
    let asked = 0;
    const seen = new Set<string>();
    const watch = setInterval(() => {
      const { pending, lastReload, running } = pod.holding;
      if (pending === null || lastReload === null) return;
      seen.add(running === PLAN ? 'runs' : 'failed');
    });
    pod.plans.restart = () => sleep(30); // a slow disk
    master(verdict);
    worker(() => infoOf((asked += 1) === 1 ? 10 : 11, 1));
    await reloadNow(pod, PLAN);
    clearInterval(watch);
    expect([...seen]).toEqual([]);
    expect(pod.holding.pending).toBeNull();
    expect(pod.holding.lastReload?.ok).toBe(verdict.startsWith('Success=1'));
  });

  test('a worker that has started from a file that somebody else had changed is unknown', async () => {
    pod.tree.held.set('a', { kind: 'general', digest: 'e'.repeat(64), size: 1 });
    writeFileSync(join(base, 'a'), 'by hand');
    expect(await pod.tree.verify()).toEqual(['a']);
    worker(() => infoOf(11, Math.ceil(Date.now() / 1000) + 100));
    await observeWorker(pod);
    expect(pod.holding).toMatchObject({ applied: PLAN, running: null, lkg: null });
  });

  test('operations that no record tells of leave the same worker unknown at the next start (P8)', async () => {
    const start = Math.floor(Date.now() / 1000) + 100; // a clock that went back
    await pod.workshop.write({
      generation: pod.holding.generation,
      from: PLAN,
      to: PLAN,
      operations: true,
      changes: [],
    });
    rmSync(join(base, '.haptic-agent.json'));
    worker(() => infoOf(10, start));
    const next = await podIn(base);
    await recover(next);
    await observeWorker(next);
    expect(next.holding).toMatchObject({ applied: PLAN, running: null });
  });

  test('deletions end at the first that is not answered, and rest', async () => {
    const queue = new DeleteQueue();
    for (let index = 0; index < 100; index += 1) queue.add(`web/s${index}`);
    const socket = worker(() => undefined);
    await queue.attempt(pod.worker);
    await queue.attempt(pod.worker);
    expect(socket.heard).toHaveLength(1);
    expect(queue.size).toBe(100);
  });
});
