import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createMirror } from '../../../src/gate/mirror.ts';

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'mirror-'));
});
afterEach(() => {
  rmSync(parent, { recursive: true, force: true });
});

it('removes what a process of the same number left, as in a container that was started again', () => {
  const left = [
    `haptic-check-${String(process.pid)}-1-abc`,
    `haptic-check-${String(process.pid)}-abc`,
  ];
  for (const name of left) mkdirSync(join(parent, name));
  createMirror(parent);
  expect(readdirSync(parent).filter((name) => left.includes(name))).toStrictEqual([]);
});

it('leaves the other mirrors of its own process, and of others that run', () => {
  createMirror(parent);
  const other = `haptic-check-${String(process.ppid)}-1-abc`;
  mkdirSync(join(parent, other));
  createMirror(parent);
  expect(readdirSync(parent)).toHaveLength(3);
});
