import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { persist, promote, type Pod } from '../../../agent/pod.ts';
import { recover } from '../../../agent/apply/recovery.ts';
import { restoreLastKnownGood } from '../../../agent/haproxy/reload.ts';
import { Transition } from '../../../agent/files/transition.ts';
import type { Change } from '../../../agent/files/tree.ts';
import { podIn } from './scripted-haproxy.ts';

const OLD = { 'haproxy.cfg': 'old', 'a/1': 'one', 'a/2': 'two', gone: 'bye' };
const NEW = { 'haproxy.cfg': 'new', 'a/1': 'ONE', 'a/2': 'two', 'b/3': 'three', 'c/4': 'four' };
const OLD_ID = 'a'.repeat(64);
const NEW_ID = 'b'.repeat(64);

const REFUSED = { planId: NEW_ID, ok: false, message: 'no', atMs: 1, durationMs: 1 };

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('a change of the tree', () => {
  let base = '';

  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'agu-'));
  });

  afterEach(() => rmSync(base, { recursive: true, force: true }));

  /** A process that starts: nothing is kept in memory from the one before. */
  const start = async (): Promise<Pod> => {
    const pod = await podIn(base);
    await recover(pod);
    return pod;
  };

  const changesTo = (pod: Pod, files: Readonly<Record<string, string>>): Change[] =>
    pod.tree.changesTo(
      Object.entries(files).map(([path, text]) => ({
        path,
        kind: path === 'haproxy.cfg' ? 'config' : 'general',
        digest: sha256(text),
        size: text.length,
      })),
    );

  const begin = async (
    pod: Pod,
    files: Readonly<Record<string, string>>,
    [from, to]: readonly [string | null, string],
  ): Promise<Transition> => {
    const transition = await Transition.begin(pod.tree, pod.workshop, {
      generation: pod.holding.generation + 1,
      from,
      to,
      operations: false,
      changes: changesTo(pod, files),
    });
    for (const { path, next } of transition.record.changes) {
      if (next !== null) writeFileSync(transition.stagePath(path), files[path] ?? '');
    }
    return transition;
  };

  const commit = async (pod: Pod, transition: Transition): Promise<void> => {
    pod.holding.generation += 1;
    pod.holding.applied = transition.record.to;
    for (const { path, previous } of transition.record.changes) {
      if (!pod.holding.lkgDelta.has(path)) pod.holding.lkgDelta.set(path, previous);
    }
    await persist(pod);
  };

  const holds = (files: Readonly<Record<string, string>>): boolean => {
    const all = new Set([...Object.keys(OLD), ...Object.keys(NEW)]);
    return [...all].every((path) => {
      const there = existsSync(join(base, path));
      if (!(path in files)) return !there;
      return there && readFileSync(join(base, path), 'utf8') === files[path];
    });
  };

  const withOld = async (): Promise<Pod> => {
    const pod = await start();
    const transition = await begin(pod, OLD, [null, OLD_ID]);
    await transition.install();
    await commit(pod, transition);
    expect(holds(OLD)).toBe(true);
    return pod;
  };

  test.each([0, 1, 2, 3, 4, 5])(
    'that ends after %i steps is taken back at the next start, or is complete (P8)',
    async (steps) => {
      const pod = await withOld();
      const transition = await begin(pod, NEW, [OLD_ID, NEW_ID]);
      // The steps in the order of an install: writes with the main file last, then deletions.
      const order = ['a/1', 'b/3', 'c/4', 'haproxy.cfg', 'gone'];
      for (const path of order.slice(0, steps)) {
        const change = transition.record.changes.find((one) => one.path === path);
        if (change?.next === null) rmSync(join(base, path));
        else {
          await mkdir(dirname(join(base, path)), { recursive: true });
          writeFileSync(join(base, 'new'), NEW[path as keyof typeof NEW]);
          renameSync(join(base, 'new'), join(base, path));
        }
      }
      const after = await start();
      const complete = steps === order.length;
      expect(after.holding.applied).toBe(complete ? NEW_ID : OLD_ID);
      expect(holds(complete ? NEW : OLD)).toBe(true);
      expect([...after.tree.held.keys()].sort()).toEqual(Object.keys(complete ? NEW : OLD).sort());
      expect(existsSync(join(base, '.haptic/journal.json'))).toBe(false);
    },
  );

  test('that fails in the middle is put back byte for byte', async () => {
    const pod = await withOld();
    const transition = await begin(pod, NEW, [OLD_ID, NEW_ID]);
    transition.stagePath('c/4'); // a name under which nothing was staged
    await expect(transition.install()).rejects.toThrow(/ENOENT/);
    expect(await transition.rollback()).toBe(true);
    expect(holds(OLD)).toBe(true);
    expect([...pod.tree.held.keys()].sort()).toEqual(Object.keys(OLD).sort());
  });

  test.each([
    ['before', { running: null, workerOperations: 0 }],
    ['after', { running: OLD_ID, workerOperations: 1 }],
  ])(
    'that was taken back although its operations had run, ended %s that was written down (P8)',
    async (end, found) => {
      const pod = await withOld();
      pod.holding.running = OLD_ID;
      await persist(pod);
      const transition = await Transition.begin(pod.tree, pod.workshop, {
        generation: pod.holding.generation + 1,
        from: OLD_ID,
        to: NEW_ID,
        operations: true,
        changes: changesTo(pod, NEW),
      });
      expect(await transition.rollback()).toBe(true);
      pod.holding.workerOperations = 1;
      if (end === 'after') await persist(pod);
      expect((await start()).holding).toMatchObject({ applied: OLD_ID, ...found });
    },
  );

  test('that nobody can take back is called unknown', async () => {
    const pod = await withOld();
    await begin(pod, NEW, [OLD_ID, NEW_ID]);
    writeFileSync(join(base, 'haproxy.cfg'), 'neither');
    rmSync(join(base, '.haptic/objects'), { recursive: true });
    const after = await start();
    expect(after.holding.applied).toBeNull();
  });

  test('replaces the main file after all others and deletes after that', async () => {
    const pod = await withOld();
    const transition = await begin(pod, NEW, [OLD_ID, NEW_ID]);
    const seen: string[] = [];
    await pod.tree
      .install(transition.record.changes, ({ path }) => {
        seen.push(path);
        expect(existsSync(join(base, 'gone'))).toBe(true);
        return join(base, '.haptic/stage', String(seen.length - 1));
      })
      .catch(() => undefined);
    expect(seen.at(-1)).toBe('haproxy.cfg');
  });

  test('over several plans goes back to the last known good tree, whatever came between', async () => {
    const pod = await withOld();
    pod.holding.lkg = OLD_ID;
    pod.holding.lkgDelta.clear();
    pod.holding.generation += 1;
    await persist(pod);
    const steps = [{ ...OLD, 'a/1': 'x' }, NEW, { 'haproxy.cfg': 'z', 'b/3': 'y' }];
    for (const files of steps) {
      const transition = await begin(pod, files, [pod.holding.applied, NEW_ID]);
      await transition.install();
      await commit(pod, transition);
    }
    const restarted = await start();
    await restoreLastKnownGood(restarted, REFUSED);
    expect(holds(OLD)).toBe(true);
    expect(restarted.holding).toMatchObject({ applied: OLD_ID, lkg: OLD_ID });
    expect((await start()).holding.applied).toBe(OLD_ID);
  });

  test('whose way back is gone leaves no name behind that says more than is so', async () => {
    const pod = await withOld();
    Object.assign(pod.holding, { lkg: OLD_ID, confirmed: true });
    pod.holding.lkgDelta.clear();
    const transition = await begin(pod, NEW, [OLD_ID, NEW_ID]);
    await transition.install();
    await commit(pod, transition);
    await pod.workshop.objects.clear();
    await restoreLastKnownGood(pod, REFUSED);
    expect(pod.holding).toMatchObject({ applied: null, lkg: null, pending: null });
    expect(pod.holding.lastReload).toEqual(REFUSED);
    expect((await start()).holding).toMatchObject({ applied: null, lkg: null, confirmed: true });
  });

  test('over a file that somebody else changed does not call that file good', async () => {
    const pod = await withOld();
    promote(pod);
    writeFileSync(join(base, 'a/1'), 'by hand');
    expect(await pod.tree.verify()).toEqual(['a/1']);
    promote(pod);
    const transition = await begin(pod, NEW, [OLD_ID, NEW_ID]);
    await transition.install();
    expect(pod.tree.intact).toBe(true);
    await commit(pod, transition);
    await restoreLastKnownGood(pod, REFUSED);
    expect(pod.tree.intact).toBe(false);
    const after = await start();
    expect([...after.tree.drifted]).toEqual(['a/1']);
    promote(after);
    expect(after.holding.lkgDelta.size).toBe(0);
  });
});
