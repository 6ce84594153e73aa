import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { digest, discardOld, keep } from '../../cluster/harness/cache.ts';

let dir = '';
const folder = (): string => join(dir, 'cluster');

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hap-'));
  vi.stubEnv('HAPTIC_CACHE', dir);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

/** Something that takes a while to be made, and counts how often it was. */
function slowThing(...madeFrom: string[]): { make: () => Promise<string>; times: () => number } {
  let times = 0;
  const make = async (path: string): Promise<void> => {
    times++;
    mkdirSync(path);
    await sleep(30);
    writeFileSync(join(path, 'whole'), 'yes');
  };
  return { make: () => keep({ kind: 'thing', madeFrom, make }), times: () => times };
}

describe('keep', () => {
  test('makes a thing once, and another one when what it is made from has changed', async () => {
    const thing = slowThing('a');
    expect(await thing.make()).toBe(await thing.make());
    expect(thing.times()).toBe(1);
    expect(await slowThing('b').make()).not.toBe(await thing.make());
  });

  test('lets the second of two wait, so that both get a whole one that was made once', async () => {
    const thing = slowThing('a');
    const paths = await Promise.all([thing.make(), thing.make()]);
    expect(thing.times()).toBe(1);
    for (const path of paths) expect(readFileSync(join(path, 'whole'), 'utf8')).toBe('yes');
  });

  test('keeps nothing of a thing that could not be made, and nobody waits for it', async () => {
    const make = async (path: string): Promise<void> => {
      mkdirSync(path);
      throw new Error('no compiler');
    };
    await expect(keep({ kind: 'thing', madeFrom: ['a'], make })).rejects.toThrow('no compiler');
    const path = await slowThing('a').make();
    expect(readdirSync(path)).toEqual(['whole']);
  });

  test.each([
    ['has ended', String(spawnSync('true').pid)],
    ['has ended, and whose number another one has', `${process.pid} 1`],
  ])('takes over from a process that %s in the middle', async (_, holder) => {
    const path = join(folder(), `thing-${digest(['a'])}`);
    mkdirSync(`${path}.making`, { recursive: true });
    writeFileSync(join(`${path}.making`, 'half'), '');
    writeFileSync(`${path}.lock`, holder);
    expect(await slowThing('a').make()).toBe(path);
    expect(readdirSync(path)).toEqual(['whole']);
    expect(readdirSync(folder())).toHaveLength(1);
  });
});

describe('digest', () => {
  test('tells parts from each other', () => {
    expect(digest(['ab', 'c'])).not.toBe(digest(['a', 'bc']));
  });
});

describe('discardOld', () => {
  test('removes all but the last used ones of one kind', async () => {
    const paths: string[] = [];
    for (const name of ['a', 'b', 'c']) paths.push(await slowThing(name).make());
    const foreign = join(folder(), 'thing-of-another-kind-0123456789abcdef');
    writeFileSync(foreign, '');
    for (const [age, path] of paths.entries()) utimesSync(path, 1000 - age, 1000 - age);
    discardOld('thing', 2);
    expect(paths.map((path) => existsSync(path))).toEqual([true, true, false]);
    expect(existsSync(foreign)).toBe(true);
  });
});
